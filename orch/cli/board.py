"""`orch board`."""

import os
import sys

import click

from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..leader.scheduler import Scheduler
from ..runs.model import Run
from .parts.base import one_run, open_scheduler, shown_run

_ELSEWHERE = "`orch status --json` tells how a run stands, `orch drive` goes on telling"


@click.command("board", cls=Verb, agent=True, examples=("orch board", "orch board --run RUN"))
@one_run
@click.pass_context
def command(context: click.Context, run_name: str | None) -> None:
    """Watch a run on the whole terminal: tasks, questions, what has happened, each task from near.

    Its keys answer, retry, cancel and integrate; it decides nothing by itself. `q` ends it, Ctrl-C
    too (130). It wakes when something happens, and costs next to nothing while nothing does.
    """
    if shell_of(context).output.as_json:
        raise usage("--json and a view for a terminal exclude each other", hint=_ELSEWHERE)
    _require_terminal()
    run = _first_run(context, open_scheduler(context, looks=True, perhaps_alone=False), run_name)
    # Half a second is what textual takes to load: only here.
    from ..board.readers import Readers
    from ..board.terminal import show

    show(Readers(lambda looks: _opened(context, looks=looks)), run.id)


def _opened(context: click.Context, *, looks: bool) -> Scheduler:
    """A scheduler for a thread, which closes it. What there is to notice has been said."""
    shell = shell_of(context)
    bus = Bus.open(
        shell.database,
        database_id=shell.expected_id,
        busy_seconds=shell.busy_seconds,
        looks=looks,
    )
    return Scheduler(bus, shell.agent)


def _require_terminal() -> None:
    """Error `usage` where there is no terminal to read from and to paint on."""
    there = sys.stdin is not None and sys.stdin.isatty()
    there = there and sys.stdout is not None and sys.stdout.isatty()
    if not there or os.environ.get("TERM", "") in ("", "dumb"):
        raise usage("this is a view for a terminal, and there is none", hint=_ELSEWHERE)


def _first_run(context: click.Context, scheduler: Scheduler, name: str | None) -> Run:
    """The run that is named, else the newest open one: the others are a key away; else the last."""
    open_runs = scheduler.runs()
    if name is None and len(open_runs) > 1:
        return open_runs[-1]
    return shown_run(context, scheduler, name)
