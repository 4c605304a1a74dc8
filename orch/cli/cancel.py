"""`orch cancel`."""

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from .parts.base import chosen_run, lead_on, open_scheduler, run_option
from .parts.steering import steered


@click.command("cancel", cls=Verb, agent=True, examples=("orch cancel lexer", "orch cancel a b"))
@run_option
@click.argument("tasks", nargs=-1, required=True, metavar="TASK...")
@click.pass_context
def command(context: click.Context, run_name: str | None, tasks: tuple[str, ...]) -> None:
    """Cancel tasks, even while they are worked on. Deletes nothing; `orch retry` brings them back.

    A worker learns of it at its next call (exit 10). Until it has, or its lease has run out, the
    attempt is `ending` and keeps its slot and its worktree.
    """
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    done = scheduler.cancel(run, tasks)
    shell_of(context).output.result(done.as_json(), *steered("Cancelled", done))
    lead_on(context, scheduler, run)
