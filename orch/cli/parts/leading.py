"""The last line of what a command says that went well: what to do next. On a terminal alone."""

import contextlib
import os

import click

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.commandline import shell_of

from ...leader.scheduler import Scheduler
from ...runs.model import Run


def lead_on(
    context: click.Context, scheduler: Scheduler, run: Run | str, *, just: str | None = None
) -> None:
    """Say what to do next with a run: neither in a pipe nor with --json, where each line is a
    value, nor after what did not go well, which has a hint of its own. `just` is what the call
    has done, where the run does not tell."""
    output = shell_of(context).output
    if output.exit_code or not output.converses:
        return
    from ...leader.next_facts import facts_of
    from ...leader.next_rules import next_line

    # What was asked for is done: that must not be hidden by what would have come after.
    with contextlib.suppress(InboxOrchError):
        found = scheduler.run(run) if isinstance(run, str) else run
        default = os.environ.get("ORCH_RUN") or None
        facts = facts_of(scheduler.desk, found, default, just)
        output.notice(f"next: {next_line(facts)}")
