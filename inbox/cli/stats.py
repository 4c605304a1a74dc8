"""`inbox stats`."""

import click

from inbox_orch.shared.blocks import Facts, Table
from inbox_orch.shared.commandline import Verb, shell_of

from ..domain import states
from ..services.reading import Reading
from .base import open_group


@click.command("stats", cls=Verb, agent=True, examples=("inbox stats", "inbox stats --json"))
@click.option(
    "--mailbox", "mailboxes", multiple=True, metavar="MAILBOX", help="Only these; repeatable."
)
@click.pass_context
def command(context: click.Context, mailboxes: tuple[str, ...]) -> None:
    """Print how many threads are in which state, by mailbox. Changes nothing."""
    seen = open_group(context, Reading, looks=True).stats(mailboxes=mailboxes)
    rows = tuple(
        (entry["mailbox"], *(entry[state] for state in states.THREAD_STATES))
        for entry in seen.mailboxes
    )
    headings = ("MAILBOX", *(state.upper() for state in states.THREAD_STATES))
    shell_of(context).output.result(
        seen.as_json(),
        Table(headings, rows, "no threads"),
        Facts((("database bytes", seen.database_bytes), ("wal bytes", seen.wal_bytes))),
    )
