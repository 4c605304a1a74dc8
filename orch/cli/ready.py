"""`orch ready`."""

import click

from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from .parts.base import (
    base_conflict,
    limit_option,
    one_run,
    open_scheduler,
    shown_run,
    tell_left_out,
)


@click.command("ready", cls=Verb, agent=True, examples=("orch ready --json",))
@one_run
@limit_option
@click.pass_context
def command(context: click.Context, run_name: str | None, limit: int) -> None:
    """List the tasks that can be dispatched now, in the order in which they would be."""
    scheduler = open_scheduler(context, looks=True)
    ready = scheduler.ready(shown_run(context, scheduler, run_name)).limited(limit)
    rows = tuple((s.task.key, s.task.priority, s.task.mailbox, s.task.title) for s in ready.items)
    shell_of(context).output.result(
        ready.as_json(),
        Table(("TASK", "PRIO", "MAILBOX", "TITLE"), rows, "nothing is ready"),
        *(base_conflict(s.task.key, s.conflict_paths) for s in ready.base_conflicts),
    )
    tell_left_out(context, ready.left_out)
