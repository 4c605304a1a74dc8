"""`orch status`."""

import click

from inbox_orch.shared.blocks import Block, Sentence, Table, When
from inbox_orch.shared.commandline import Verb, shell_of

from ..services.viewing import Row, Status, Viewing
from .base import (
    chosen_run,
    limit_option,
    obstacle_block,
    open_group,
    run_option,
    tell_left_out,
)


@click.command("status", cls=Verb, agent=True, examples=("orch status", "orch status --json"))
@run_option
@limit_option
@click.pass_context
def command(context: click.Context, run_name: str | None, limit: int) -> None:
    """Print how every task of a run stands, after folding in what workers did.

    Of a run with more tasks than --limit, those that need somebody come first; the counts are
    those of all.
    """
    scheduler = open_group(context, Viewing, looks=True)
    status = scheduler.status(chosen_run(scheduler, run_name)).limited(limit)
    shell_of(context).output.result(status.as_json(), *blocks(status))
    tell_left_out(context, sum(status.left_out.values()))


def blocks(status: Status) -> list[Block]:
    """The status as a line and a table."""
    counts = ", ".join(f"{number} {state}" for state, number in status.counts.items())
    stale = " (stale: the database cannot be written here)" if status.stale else ""
    text = f"{status.run.name}: {status.outcome}{stale}. {counts or 'no tasks'}"
    obstacle = [] if status.obstacle is None else [obstacle_block(status.obstacle)]
    rows = tuple(row_of(row, status.now_ms) for row in status.rows)
    return [
        Sentence(text, ("run", status.run.name, status.outcome)),
        *obstacle,
        Table(
            ("TASK", "STATE", "TRY", "WHO", "SINCE", "NOTE"),
            rows,
            "no tasks",
            fixed=(0, 1, 2),
            folded=(5,),
        ),
    ]


def row_of(row: Row, now_ms: int) -> tuple[object, ...]:
    task, attempt = row.standing.task, row.attempt
    since = task.updated_at if attempt is None else max(task.updated_at, attempt.updated_at)
    state = row.standing.state
    if state == "active" and attempt is not None:
        state = attempt.state
    who = task.mailbox if row.thread is None else (row.thread.holder or row.thread.mailbox)
    return (task.key, state, task.attempts, who, When(since, now_ms), _note(row, now_ms))


def _note(row: Row, now_ms: int) -> str:
    standing, attempt = row.standing, row.attempt
    if standing.because:
        verb = "waits for" if standing.state == "waiting" else "because of"
        return f"{verb} {', '.join(standing.because)}"
    if standing.conflict_paths:
        return f"conflict in {', '.join(standing.conflict_paths)}"
    if standing.until is not None:
        left = max(1, -(-(standing.until - now_ms) // 1000))
        return f"again in {left}s: {standing.task.reason}"
    if standing.state == "succeeded" and standing.task.accepted_head is not None:
        return standing.task.accepted_head[:12]
    if standing.state == "blocked":
        return "asks: see `orch blocked`"
    if attempt is not None and attempt.state == "ending" and attempt.reason:
        return attempt.reason
    if row.thread is not None and row.thread.progress is not None and attempt and attempt.live:
        return f"{row.thread.progress} %"
    return standing.task.reason or standing.task.title
