"""`orch task list`."""

from typing import Any

import click

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...views.status import Row
from ..parts.base import limit_option, one_run, open_scheduler, shown_run, tell_left_out
from ..parts.standings import states_option


@click.command(
    "list",
    cls=Verb,
    agent=True,
    examples=("orch task list", "orch task list --state failed --state blocked --json"),
)
@one_run
@states_option
@limit_option
@click.pass_context
def command(
    context: click.Context, run_name: str | None, states: tuple[str, ...], limit: int
) -> None:
    """List the tasks of a run in the order of their making, in few words; `task show` has more."""
    scheduler = open_scheduler(context, looks=True)
    status = scheduler.status(shown_run(context, scheduler, run_name))
    every = [row for row in status.rows if not states or row.standing.state in states]
    rows = every[:limit]
    data = {
        "run": status.run.name,
        "items": [_item(row) for row in rows],
        "truncated": len(every) > len(rows),
        "next_cursor": None,
        "stale": status.stale,
    }
    lines = tuple(
        (r.standing.task.key, r.standing.state, r.standing.task.attempts, _who(r), _title(r))
        for r in rows
    )
    empty = "no such tasks" if states and status.rows else "no tasks"
    headings = ("TASK", "STATE", "TRY", "WHO", "TITLE")
    shell_of(context).output.result(data, Table(headings, lines, empty, fixed=(0, 1, 2)))
    tell_left_out(context, len(every) - len(rows))


def _who(row: Row) -> str:
    task = row.standing.task
    return row.worker or (task.mailbox if row.thread is None else row.thread.mailbox)


def _title(row: Row) -> str:
    return row.standing.task.title


def _item(row: Row) -> dict[str, Any]:
    task = row.standing.task
    return {
        "key": task.key,
        "title": task.title,
        "standing": row.standing.state,
        "attempts": task.attempts,
        "mailbox": task.mailbox,
        "holder": None if row.thread is None else row.thread.holder,
        "priority": task.priority,
        "because": list(row.standing.because),
        "updated_at": rfc3339(task.updated_at),
    }
