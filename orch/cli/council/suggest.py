"""`orch council suggest`."""

import click

from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.council_base import chosen_council, in_words, one_council


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
    output = shell_of(context).output
    people_read = bool(data["items"]) and output.terminal and not output.as_json
    whole = scheduler.tally_of(run).tally.whole_words() if people_read else {}
    rows = tuple(
        (pair["score"], *pair["items"], " / ".join(pair["titles"]), in_words(pair["shared"], whole))
        for pair in data["items"]
    )
    headings = ("SCORE", "ITEM", "ITEM", "TITLES", "SHARED")
    output.result(data, Table(headings, rows, "no pairs", fixed=(0, 1, 2), folded=(3, 4)))
