"""How a run stands, as several commands show it."""

import click

from inbox_orch.shared.shell.blocks import Block, Sentence, Table, When
from inbox_orch.shared.shell.commandline import Choice

from ...runs.readiness import STANDINGS
from ...views.needs import held_up_by, told_counts
from ...views.status import Row, Status
from ...views.work import changed_at
from .base import Command, obstacle_block


def states_option(command: Command) -> Command:
    """`--state STATE`, any number of times."""
    return click.option(
        "--state",
        "states",
        type=Choice(STANDINGS),
        multiple=True,
        metavar="STATE",
        help=f"Only tasks that are {', '.join(STANDINGS[:-1])} or {STANDINGS[-1]}; repeatable.",
    )(command)


def blocks(status: Status) -> list[Block]:
    """The status as a line and a table."""
    told = told_counts(status.counts, status.run.state)
    counts = ", ".join(f"{number} {state}" for state, number in told.items())
    stale = " (stale: the database cannot be written here)" if status.stale else ""
    text = f"{status.run.name}: {status.outcome}{stale}. {counts or 'no tasks'}"
    obstacle = [] if status.obstacle is None else [obstacle_block(status.obstacle)]
    rows = tuple(row_of(row, status.now_ms) for row in status.by_need)
    return [
        Sentence(text, ("run", status.run.name, status.outcome)),
        *obstacle,
        Table(
            ("TASK", "STATE", "TRY", "WHO", "SINCE", "NOTE"),
            rows,
            "no such tasks" if status.unasked else "no tasks",
            fixed=(0, 1, 2),
            folded=(5,),
        ),
    ]


def brief_blocks(status: Status) -> list[Block]:
    """The status as the line, and a short one for each task."""
    rows = []
    for row in status.by_need:
        key, state, _, who, _, note = row_of(row, status.now_ms)
        rows.append((key, state, who, note))
    empty = "no unfinished tasks" if status.unasked else "no tasks"
    table = Table(("TASK", "STATE", "WHO", "NOTE"), tuple(rows), empty, fixed=(0, 1))
    return [*blocks(status)[:-1], table]


def row_of(row: Row, now_ms: int) -> tuple[object, ...]:
    task, attempt = row.standing.task, row.attempt
    since = task.updated_at if attempt is None else max(task.updated_at, changed_at(attempt))
    state = row.standing.state
    if state == "active" and attempt is not None:
        state = attempt.state
    who = row.worker or (task.mailbox if row.thread is None else row.thread.mailbox)
    return (task.key, state, task.attempts, who, When(since, now_ms), _note(row, now_ms))


def _note(row: Row, now_ms: int) -> str:
    standing, attempt = row.standing, row.attempt
    held_up = held_up_by(standing)
    if held_up is not None:
        return held_up
    if standing.until is not None:
        left = max(1, -(-(standing.until - now_ms) // 1000))
        return f"again in {left}s: {standing.task.reason}"
    if standing.state == "succeeded" and standing.task.accepted_head is not None:
        head = standing.task.accepted_head[:12]
        return head if row.unverified is None else f"{head}, not verified: {row.unverified}"
    if standing.state == "blocked":
        return _asked(row)
    if attempt is not None and attempt.state == "ending" and attempt.reason:
        return attempt.reason
    if attempt is not None and attempt.live and (going := _going(row)):
        return going
    return standing.task.reason or standing.task.title


def _asked(row: Row) -> str:
    """What somebody is asked for: an answer, or a decision, and that has its reason here."""
    decides = row.place is not None and row.place.decision is not None
    return row.place.words if row.place and decides else "asks: see `orch blocked`"


def _going(row: Row) -> str:
    """Which stage it is in, and how far its worker is, as far as either is known."""
    said = [row.place.words] if row.place is not None else []
    if row.thread is not None and row.thread.progress is not None:
        said.append(f"{row.thread.progress} %")
    return ", ".join(said)
