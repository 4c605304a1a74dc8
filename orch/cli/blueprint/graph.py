"""`orch blueprint graph`."""

import click

from inbox_orch.shared.shell.blocks import Lines, plain
from inbox_orch.shared.shell.commandline import NAME, Choice, Verb, shell_of

from ..parts.blueprints import as_json, named


@click.command(
    "graph",
    cls=Verb,
    examples=(
        "orch blueprint graph standard_task",
        "orch blueprint graph ./mine.yaml --format dot | dot -Tsvg > mine.svg",
    ),
)
@click.argument("name", type=NAME, metavar="ID|FILE")
@click.option(
    "--format",
    "form",
    type=Choice(("text", "mermaid", "dot")),
    default="text",
    show_default=True,
)
@click.pass_context
def command(context: click.Context, name: str, form: str) -> None:
    """Draw the stages of a blueprint and where each leads.

    What follows an error or a skipped stage is drawn where the blueprint says so. Needs no
    database.
    """
    from ...pictures import blueprints

    output = shell_of(context).output
    blueprint = named(shell_of(context), name)
    lines = Lines(tuple(tuple(line) for line in blueprints.text_lines(blueprint)))
    drawn = {"mermaid": blueprints.mermaid, "dot": blueprints.dot}
    text = plain(lines) if form == "text" else drawn[form](blueprint)
    if output.as_json:
        output.result({"blueprint": as_json(blueprint), "format": form, "text": text})
    elif form == "text":
        output.result({}, lines)
    else:
        output.text(text)
