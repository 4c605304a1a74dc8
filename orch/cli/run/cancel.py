"""`orch run cancel`."""

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.base import chosen_run, lead_on, one_run, open_scheduler
from ..parts.steering import governed


@click.command("cancel", cls=Verb, agent=True, examples=("orch run cancel --json",))
@one_run
@click.pass_context
def command(context: click.Context, run_name: str | None) -> None:
    """Cancel every task of a run that is not final, and close it. Deletes nothing.

    A worker that holds one learns of it at its next call (exit 10). Until it has, or its lease
    has run out, the run is `cancelling`; `orch wait --until run` waits for the end.
    """
    scheduler = open_scheduler(context)
    done = scheduler.cancel_run(chosen_run(scheduler, run_name))
    word = "Cancelled" if done.run.state == "closed" else "Cancelling"
    shell_of(context).output.result(done.as_json(), *governed(word, done))
    lead_on(context, scheduler, done.run)
