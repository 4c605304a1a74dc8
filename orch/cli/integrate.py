"""`orch integrate`."""

import os

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..integration.shortfall import failure_of
from .parts.base import chosen_run, lead_on, open_scheduler, run_option
from .parts.integrated import blocks_of


@click.command(
    "integrate",
    cls=Verb,
    agent=True,
    examples=(
        "orch integrate --dry-run",
        "orch integrate --onto main --check 'make test'",
    ),
)
@run_option
@click.option("--onto", metavar="BRANCH", help="Then fast-forward this branch to the result.")
@click.option(
    "--check",
    "checks",
    multiple=True,
    metavar="CMD",
    help="Shell command that must succeed in the result before anything is moved; repeatable.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.pass_context
def command(
    context: click.Context,
    run_name: str | None,
    onto: str | None,
    checks: tuple[str, ...],
    dry_run: bool,
) -> None:
    """Merge the accepted work of a run onto its branch orch/RUN/integration, in the order of its
    dependencies and in memory: your checkout is not touched.

    What conflicts goes back to its task, as a new attempt on top of what was integrated; the rest
    goes on. A BRANCH that is checked out is moved in its working tree, if that is clean; else the
    command that does it is printed. Exit 11 when something conflicts, a check fails, or BRANCH was
    not moved.
    """
    scheduler = open_scheduler(context, looks=dry_run)
    run = chosen_run(scheduler, run_name)
    done = scheduler.integrate(run, onto=onto, checks=checks, dry_run=dry_run, within=os.getcwd())
    output = shell_of(context).output
    failure = failure_of(done)
    if failure is None:
        output.result(done.as_json(), *blocks_of(done))
    else:
        output.outcome(failure, *blocks_of(done))
    if not dry_run:
        lead_on(context, scheduler, run, just="brought_in" if onto is None else "brought_onto")
