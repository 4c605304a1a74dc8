"""`orch retry`."""

import click

from inbox_orch.shared.shell.commandline import Number, Verb, shell_of

from .parts.base import chosen_run, lead_on, open_scheduler, run_option
from .parts.steering import steered


@click.command(
    "retry",
    cls=Verb,
    agent=True,
    examples=("orch retry lexer", "orch retry lexer --from-attempt 2", "orch retry a b"),
)
@run_option
@click.argument("tasks", nargs=-1, required=True, metavar="TASK...")
@click.option(
    "--from-attempt",
    type=Number(1, 10**6, whole=True),
    metavar="N",
    help="Go on with what the task's attempt N committed.",
)
@click.option("--force", is_flag=True, help="Also a task that has succeeded.")
@click.pass_context
def command(
    context: click.Context,
    run_name: str | None,
    tasks: tuple[str, ...],
    from_attempt: int | None,
    force: bool,
) -> None:
    """Try failed or cancelled tasks again, with fresh budgets; what depends on them comes back to
    life. `orch dispatch` opens the attempts.
    """
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    done = scheduler.retry(run, tasks, from_attempt=from_attempt, force=force)
    shell_of(context).output.result(done.as_json(), *steered("Retried", done))
    lead_on(context, scheduler, run)
