"""`orch run reopen`."""

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.base import chosen_run, lead_on, one_run, open_scheduler
from ..parts.steering import governed


@click.command("reopen", cls=Verb, agent=True, examples=("orch run reopen fix-5tav0000",))
@one_run
@click.pass_context
def command(context: click.Context, run_name: str | None) -> None:
    """Go on with a closed run, also with a cancelled one; its tasks stay as they are."""
    if not run_name:
        raise usage("which run? give its name", hint="`orch run list --all` names them")
    scheduler = open_scheduler(context)
    done = scheduler.reopen_run(chosen_run(scheduler, run_name))
    shell_of(context).output.result(done.as_json(), *governed("Reopened", done))
    lead_on(context, scheduler, done.run)
