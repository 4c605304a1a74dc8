"""`orch prime`."""

import os
from collections.abc import Sequence

import click

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import printable
from inbox_orch.shared.shell.commandline import Verb, shell_of
from inbox_orch.shared.shell.texts import packaged

from ..leader.overview import Waiting, overview
from ..leader.scheduler import Scheduler
from .parts.base import open_scheduler

# The whole text stays under 2,000 bytes, whatever there is.
_LONGEST_PATH = 200
_MOST_RUNS = 2


@click.command("prime", cls=Verb, agent=True, examples=("orch prime", "orch prime --json"))
@click.pass_context
def command(context: click.Context) -> None:
    """Print what an agent must know to lead with `orch`, in at most 2,000 bytes.

    The rules come first; then which database it is, and the open runs. Without a database it says
    so, and is exit 0 all the same.
    """
    shell = shell_of(context)
    scheduler = _opened(context)
    text = packaged("inbox_orch.orch", "prime.txt").format(here=_here(scheduler))
    if shell.output.as_json:
        engine = None if scheduler is None else scheduler.database
        database = None if engine is None else {"path": engine.address, "id": engine.id}
        shell.output.result({"text": text, "database": database, "agent": shell.agent})
    else:
        shell.output.text(text)


def _opened(context: click.Context) -> Scheduler | None:
    """The scheduler, None where there is no database. Errors: those of opening."""
    try:
        return open_scheduler(context, looks=True)
    except InboxOrchError as error:
        if error.code != "no_database":
            raise
        return None


def _here(scheduler: Scheduler | None) -> str:
    if scheduler is None:
        return "There is no database here yet: `orch do` and `orch run init` make one."
    path = scheduler.database.address
    shown = path if len(path.encode("utf-8", "backslashreplace")) <= _LONGEST_PATH else None
    where = "`inbox where` prints it" if shown is None else printable(shown, _LONGEST_PATH)
    waiting = overview(scheduler.desk, os.environ.get("ORCH_RUN") or None)
    return "\n".join([f"Database: {where}", *_runs(waiting)])


def _runs(waiting: Sequence[Waiting]) -> list[str]:
    """The open runs, the first of them with the number of tasks that need somebody."""
    lines = [
        f"Run {each.run.name}: {each.outcome}, {len(each.needs)} tasks need somebody"
        + (f", {len(each.decisions)} of them a decision" if each.decisions else "")
        for each in waiting[:_MOST_RUNS]
    ]
    if len(waiting) > len(lines):
        lines.append(f"{len(waiting) - len(lines)} more runs are open: `orch` shows them")
    return lines or ["No run is open."]
