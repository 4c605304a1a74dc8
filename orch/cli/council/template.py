"""`orch council template`."""

import json

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...council.prompts import template


@click.command(
    "template",
    cls=Verb,
    examples=("orch council template", "orch council template --json > template.json"),
)
@click.pass_context
def command(context: click.Context) -> None:
    """Print what a reviewer is sent, the ready lenses, and the JSON Schema of a reply.

    Needs no database. To build a reviewer, begin here.
    """
    made = template()
    output = shell_of(context).output
    if output.as_json:
        output.result(made)
        return
    lenses = [f"Lens of {name}:\n{text}" for name, text in made["lenses"].items()]
    schemas = [
        f"JSON Schema of a {name}:\n{json.dumps(made[f'{name}_schema'], indent=2)}\n"
        for name in ("reply", "ballot")
    ]
    output.text("\n".join([made["prompt"], *lenses, *schemas]))
