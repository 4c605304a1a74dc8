"""`orch status`."""

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..runs.readiness import STANDINGS
from ..views.status import OVER_WELL
from .parts.base import limit_option, one_run, open_scheduler, shown_run, tell_left_out
from .parts.standings import blocks, brief_blocks, states_option


@click.command(
    "status",
    cls=Verb,
    agent=True,
    examples=("orch status", "orch status --brief --json", "orch status --state failed --json"),
)
@one_run
@states_option
@click.option(
    "--brief", is_flag=True, help="A few words for each task, and of those over well the number."
)
@limit_option
@click.pass_context
def command(
    context: click.Context, run_name: str | None, states: tuple[str, ...], brief: bool, limit: int
) -> None:
    """Print how every task of a run stands, after folding in what workers did.

    What needs somebody comes first: questions, failures, conflicts; in the JSON, which keeps the
    order of their making, `needs` names it. Of a run with more tasks than --limit, those that need
    attention come first; the counts are those of all.
    """
    scheduler = open_scheduler(context, looks=True)
    status = scheduler.status(shown_run(context, scheduler, run_name))
    if states or brief:
        status = status.only(states or [state for state in STANDINGS if state not in OVER_WELL])
    status = status.limited(limit)
    output = shell_of(context).output
    if brief:
        output.result(status.brief_json(), *brief_blocks(status))
    else:
        output.result(status.as_json(), *blocks(status))
    tell_left_out(context, sum(status.left_out.values()))
