"""`inbox prime`."""

from typing import TYPE_CHECKING

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import printable
from inbox_orch.shared.shell.declaring import Context, shell_of, verb
from inbox_orch.shared.shell.texts import packaged

from .base import open_bus
from .given_lease import Given, given_lease

if TYPE_CHECKING:
    from ..bus import Bus

# The whole text stays under 2,000 bytes, wherever the database is.
_LONGEST_PATH = 300


@verb("prime", agent=True, examples=("inbox prime --agent w1", "inbox prime"))
def command(context: Context) -> None:
    """Print what an agent must know to use `inbox` correctly, in at most 2,000 bytes.

    The rules come first; then which database it is, and who the agent is. Without a database it
    says so, and is exit 0 all the same.
    """
    shell = shell_of(context)
    bus = _opened(context)
    path = None if bus is None else bus.database.address
    here = _here(path, shell.agent, given_lease(bus))
    text = packaged("inbox_orch.inbox", "prime.txt").format(here=here)
    if shell.output.as_json:
        database = None if bus is None else {"path": path, "id": bus.database.id}
        shell.output.result({"text": text, "database": database, "agent": shell.agent})
    else:
        shell.output.text(text)


def _opened(context: Context) -> "Bus | None":
    """The bus, None where there is no database. Errors: those of opening."""
    try:
        return open_bus(context, looks=True)
    except InboxOrchError as error:
        if error.code != "no_database":
            raise
        return None


def _here(path: str | None, agent: str | None, given: Given | None) -> str:
    lines = []
    if path is None:
        lines.append("There is no database here. Do not make one: ask for INBOX_DB.")
    elif len(path.encode("utf-8", "backslashreplace")) > _LONGEST_PATH:
        lines.append("Database: `inbox where` prints it.")
    else:
        lines.append(f"Database: {printable(path, _LONGEST_PATH)}")
    if agent is None:
        lines.append("Your NAME is not set: ask for it, then give --agent NAME.")
    else:
        lines.append(f"Your NAME: {printable(agent, 64)}")
    if given is not None:
        lines.append(_lease(given))
    return "\n".join(lines)


def _lease(given: Given) -> str:
    """What to do about INBOX_THREAD and INBOX_TOKEN."""
    if not given.holds:
        return f"You hold nothing. {given.why}: unset both, then claim."
    held = (
        "You hold a thread already (INBOX_THREAD, INBOX_TOKEN): do not claim, and leave "
        "THREAD and --token out."
    )
    return f"{held} Its lease is over: `inbox renew` at once." if given.overdue else held
