"""`orch run resume`."""

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.base import chosen_run, lead_on, one_run, open_scheduler
from ..parts.steering import governed


@click.command("resume", cls=Verb, agent=True, examples=("orch run resume",))
@one_run
@click.pass_context
def command(context: click.Context, run_name: str | None) -> None:
    """Dispatch again in a paused run."""
    scheduler = open_scheduler(context)
    done = scheduler.resume_run(chosen_run(scheduler, run_name))
    shell_of(context).output.result(done.as_json(), *governed("Resumed", done))
    lead_on(context, scheduler, done.run)
