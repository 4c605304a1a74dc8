"""`orch run close`."""

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.base import chosen_run, lead_on, one_run, open_scheduler
from ..parts.steering import governed


@click.command("close", cls=Verb, agent=True, examples=("orch run close",))
@one_run
@click.pass_context
def command(context: click.Context, run_name: str | None) -> None:
    """Close a run in which nothing lives any more. Deletes nothing; `reopen` opens it again.

    Exit 9 (`live_attempt`) while an attempt lives: wait for it, or use `orch run cancel`."""
    scheduler = open_scheduler(context)
    done = scheduler.close_run(chosen_run(scheduler, run_name))
    shell_of(context).output.result(done.as_json(), *governed("Closed", done))
    lead_on(context, scheduler, done.run)
