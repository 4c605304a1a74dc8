"""`inbox stats`."""

from inbox_orch.shared.blocks import Facts, Table
from inbox_orch.shared.declaring import Context, option, shell_of, verb

from ..domain import states
from ..services.reading import Reading
from .base import open_group


@verb("stats", agent=True, examples=("inbox stats", "inbox stats --json"))
@option("--mailbox", "mailboxes", multiple=True, metavar="MAILBOX", help="Only these; repeatable.")
def command(context: Context, mailboxes: tuple[str, ...]) -> None:
    """Print how many threads are in which state, by mailbox. Changes nothing."""
    seen = open_group(context, Reading).stats(mailboxes=mailboxes)
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
