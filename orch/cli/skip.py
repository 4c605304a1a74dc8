"""`orch skip`."""

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from .parts.base import chosen_run, lead_on, open_scheduler, run_option
from .parts.steering import steered


@click.command("skip", cls=Verb, agent=True, examples=("orch skip notes",))
@run_option
@click.argument("tasks", nargs=-1, required=True, metavar="TASK...")
@click.pass_context
def command(context: click.Context, run_name: str | None, tasks: tuple[str, ...]) -> None:
    """Do without tasks that have not started: what depends on their success may start."""
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    done = scheduler.skip(run, tasks)
    shell_of(context).output.result(done.as_json(), *steered("Skipped", done))
    lead_on(context, scheduler, run)
