"""`orch council suggest`."""

import click

from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.council_base import chosen_council, one_council


@click.command(
    "suggest",
    cls=Verb,
    agent=True,
    examples=("orch council suggest", "orch council suggest --json > pairs.json"),
)
@one_council
@click.pass_context
def command(context: click.Context, council_name: str | None) -> None:
    """List pairs that may be one recommendation, the likeliest first.

    With --json: fill in `"decision": "merge"` or `"keep"`, and give the file to
    `orch council apply`.
    """
    scheduler, run = chosen_council(context, council_name, shows=True)
    data = scheduler.suggestions(run)
    rows = tuple(
        (pair["score"], *pair["items"], " / ".join(pair["titles"]), pair["shared"])
        for pair in data["items"]
    )
    headings = ("SCORE", "ITEM", "ITEM", "TITLES", "SHARED")
    shell_of(context).output.result(
        data, Table(headings, rows, "no pairs", fixed=(0, 1, 2), folded=(3, 4))
    )
