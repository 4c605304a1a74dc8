"""`orch status`."""

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from .parts.base import limit_option, one_run, open_scheduler, shown_run, tell_left_out
from .parts.standings import blocks


@click.command("status", cls=Verb, agent=True, examples=("orch status", "orch status --json"))
@one_run
@limit_option
@click.pass_context
def command(context: click.Context, run_name: str | None, limit: int) -> None:
    """Print how every task of a run stands, after folding in what workers did.

    Of a run with more tasks than --limit, those that need attention come first; the counts are
    those of all.
    """
    scheduler = open_scheduler(context, looks=True)
    status = scheduler.status(shown_run(context, scheduler, run_name)).limited(limit)
    shell_of(context).output.result(status.as_json(), *blocks(status))
    tell_left_out(context, sum(status.left_out.values()))
