"""`orch reassign`."""

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from .parts.base import chosen_run, lead_on, open_scheduler, run_option
from .parts.steering import steered


@click.command("reassign", cls=Verb, agent=True, examples=("orch reassign lexer --to experts",))
@run_option
@click.argument("tasks", nargs=-1, required=True, metavar="TASK...")
@click.option("--to", "mailbox", required=True, metavar="MAILBOX", help="Who does them from now.")
@click.pass_context
def command(
    context: click.Context, run_name: str | None, tasks: tuple[str, ...], mailbox: str
) -> None:
    """Let other workers do tasks.

    One that is with a worker is taken back: the attempt is cancelled, which counts against no
    budget, and the task can be dispatched again once that has ended.
    """
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    done = scheduler.reassign(run, tasks, mailbox)
    shell_of(context).output.result(done.as_json(), *steered("Reassigned", done))
    lead_on(context, scheduler, run)
