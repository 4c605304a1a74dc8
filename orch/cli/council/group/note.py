"""`orch council group note`."""

import click

from inbox_orch.shared.shell.commandline import TEXT, Verb

from ....council.settling import Settled
from ...parts.council_base import council_option
from ..settle import settle


@click.command(
    "note",
    cls=Verb,
    agent=True,
    examples=("orch council group note ada/wal --body 'planned for May'",),
)
@council_option
@click.argument("group")
@click.option(
    "--body", type=TEXT, required=True, metavar="TEXT", help="Stands in every later report."
)
@click.pass_context
def command(context: click.Context, council_name: str | None, group: str, body: str) -> None:
    """Add a note to a group, named by one of its items."""
    settle(context, council_name, [Settled("note", (group,), body)])
