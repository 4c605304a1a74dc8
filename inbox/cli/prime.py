"""`inbox prime`."""

import os

from inbox_orch.shared.declaring import Context, shell_of, verb
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import printable
from inbox_orch.shared.texts import packaged

from ..services.desk import Desk
from .base import open_group

# The whole text stays under 2,000 bytes, wherever the database is.
_LONGEST_PATH = 300


@verb("prime", agent=True, examples=("inbox prime --agent w1", "inbox prime"))
def command(context: Context) -> None:
    """Print what an agent must know to use `inbox` correctly, in at most 2,000 bytes.

    The rules come first; then which database it is, and who the agent is. Without a database it
    says so, and is exit 0 all the same.
    """
    shell = shell_of(context)
    path, database_id = _database(context)
    text = packaged("inbox_orch.inbox", "prime.txt").format(here=_here(path, shell.agent))
    if shell.output.as_json:
        database = None if path is None else {"path": path, "id": database_id}
        shell.output.result({"text": text, "database": database, "agent": shell.agent})
    else:
        shell.output.text(text)


def _database(context: Context) -> tuple[str | None, str | None]:
    """(path, id) of the database, (None, None) where there is none. Errors: those of opening."""
    try:
        desk = open_group(context, Desk)
    except InboxOrchError as error:
        if error.code != "no_database":
            raise
        return None, None
    return desk.database.layout.database, desk.database.id


def _here(path: str | None, agent: str | None) -> str:
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
    if os.environ.get("INBOX_THREAD") and os.environ.get("INBOX_TOKEN"):
        lines.append(
            "You hold a thread already (INBOX_THREAD, INBOX_TOKEN): do not claim, and leave "
            "THREAD and --token out."
        )
    return "\n".join(lines)
