"""`orch critical-path`."""

from collections.abc import Callable

import click

from inbox_orch.shared.ids import counted, plain_number
from inbox_orch.shared.shell.blocks import Sentence, Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..runs.critical import Step
from .parts.base import one_run, open_scheduler, shown_run

_MEASURES = {
    "durations": "by the time of their attempts",
    "estimated": "by the time of attempts; one without (~) counts as the middle of the others",
    "count": "by their number, since none has been worked on yet",
}


@click.command("critical-path", cls=Verb, agent=True, examples=("orch critical-path --json",))
@one_run
@click.pass_context
def command(context: click.Context, run_name: str | None) -> None:
    """Print the longest chain of dependent tasks: the run cannot end before it does.

    By how long the attempts at each task took together, as far as that is known; before any
    work has begun, by the number of tasks.
    """
    from ..pictures.timeline import how_long, spoken

    scheduler = open_scheduler(context, looks=True)
    found = scheduler.critical_path(shown_run(context, scheduler, run_name))
    path = found.path
    total = "" if path.seconds is None else f", {spoken(path.seconds)}"
    number = counted(len(path.steps), "task")
    text = f"{found.run.name}: {number}{total}, {_MEASURES[path.measure]}"
    output = shell_of(context).output
    told = spoken if output.terminal else how_long
    rows = tuple(_row(step, told) for step in path.steps)
    output.result(
        found.as_json(),
        Sentence(text, ("run", found.run.name, path.measure, _rounded(path.seconds))),
        Table(("TASK", "STATE", "TIME", "TITLE"), rows, "no tasks", fixed=(0, 1, 2)),
    )


def _rounded(seconds: float | None) -> str | None:
    """To milliseconds, which is as exact as they are."""
    return None if seconds is None else plain_number(round(seconds, 3))


def _row(step: Step, told: Callable[[float], str]) -> tuple[object, ...]:
    task = step.standing.task
    taken = None
    if step.seconds is not None:
        taken = ("~" if step.estimated else "") + told(step.seconds)
    return (task.key, step.standing.state, taken, task.title)
