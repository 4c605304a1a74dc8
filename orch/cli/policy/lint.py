"""`orch policy lint`."""

import os

import click

from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.commandline import PATH, Verb, shell_of

from ...patches.linting import oddities
from ..parts.documents import policies_in
from ..parts.policies import tracked_at


@click.command(
    "lint",
    cls=Verb,
    agent=True,
    examples=("orch policy lint mine.yaml", "orch policy lint plan.yaml --json"),
)
@click.argument("path", type=PATH, metavar="FILE|-")
@click.pass_context
def command(context: click.Context, path: str) -> None:
    """Look at the policies of a file: a policy, the config of a run, or a plan.

    What cannot be gone by is an error, all of it at once with its line (exit 2), as is an inner
    layer that loosens an outer one. What is odd is listed: rules that say nothing, or more than was
    meant. Needs no database; in a repository patterns are tried on its files.
    """
    shell = shell_of(context)
    layers = policies_in(shell, path)
    found = oddities(layers, tracked_at(os.getcwd()))
    data = {
        "path": path,
        "layers": [{"name": name, "given": dict(given)} for name, given in layers],
        "items": [each._asdict() for each in found],
        "truncated": False,
        "next_cursor": None,
    }
    rows = tuple((each.layer, each.rule, each.text) for each in found)
    table = Table(("LAYER", "RULE", "WHAT IS ODD"), rows, "nothing is odd", (0, 1), (2,))
    shell.output.result(data, table)
