"""`orch patch list`."""

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...patches.states import STATES
from ...views import patches as views
from ..parts.base import open_scheduler, run_option, shown_run
from ..parts.patches import patch_table


@click.command(
    "list",
    cls=Verb,
    agent=True,
    examples=("orch patch list", "orch patch list parser --json", "orch patch list --state queued"),
)
@run_option
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice(STATES),
    metavar="STATE",
    help="Only those that are in it; repeatable.",
)
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@click.pass_context
def command(
    context: click.Context, run_name: str | None, states: tuple[str, ...], tasks: tuple[str, ...]
) -> None:
    """List the patches of a run, or of the tasks named, oldest first.

    A patch is named KEY/ATTEMPT/NUMBER: parser/1/2 is the second one of the first attempt at the
    task parser.
    """
    scheduler = open_scheduler(context, looks=True)
    run = shown_run(context, scheduler, run_name)
    found = views.listed(scheduler.desk, run, tasks)
    wanted = [each for each in found if not states or each.state in states]
    shell_of(context).output.result(
        {"items": views.as_json(wanted), "truncated": False, "next_cursor": None},
        patch_table(wanted, "no patches yet"),
    )
