"""`orch run pause`."""

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.base import chosen_run, lead_on, one_run, open_scheduler
from ..parts.steering import governed


@click.command("pause", cls=Verb, agent=True, examples=("orch run pause",))
@one_run
@click.pass_context
def command(context: click.Context, run_name: str | None) -> None:
    """Dispatch nothing more in a run; what runs goes on. `orch run resume` ends it."""
    scheduler = open_scheduler(context)
    done = scheduler.pause_run(chosen_run(scheduler, run_name))
    shell_of(context).output.result(done.as_json(), *governed("Paused", done))
    lead_on(context, scheduler, done.run)
