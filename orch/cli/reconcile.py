"""`orch reconcile`."""

import click

from inbox_orch.shared.shell.blocks import Facts
from inbox_orch.shared.shell.commandline import Verb, shell_of

from .parts.base import chosen_run, lead_on, no_verify_option, one_run, open_scheduler


@click.command(
    "reconcile", cls=Verb, agent=True, examples=("orch reconcile", "orch reconcile --no-verify")
)
@one_run
@no_verify_option
@click.pass_context
def command(context: click.Context, run_name: str | None, no_verify: bool) -> None:
    """Finish what a killed process has begun, carry over what workers did, and look at what they
    say is done, with the checks of their tasks. Doing it again changes nothing.
    """
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    done = scheduler.reconcile(run, checks=not no_verify)
    facts = tuple(
        (label.replace("_", " "), value)
        for label, value in done.as_json().items()
        if value is not None
    )
    shell_of(context).output.result(done.as_json(), Facts(facts))
    lead_on(context, scheduler, run)
