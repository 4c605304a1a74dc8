"""`orch status`."""

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from .parts.base import chosen_run, limit_option, open_scheduler, run_option, tell_left_out
from .parts.standings import blocks


@click.command("status", cls=Verb, agent=True, examples=("orch status", "orch status --json"))
@run_option
@limit_option
@click.pass_context
def command(context: click.Context, run_name: str | None, limit: int) -> None:
    """Print how every task of a run stands, after folding in what workers did.

    Of a run with more tasks than --limit, those that need attention come first; the counts are
    those of all.
    """
    scheduler = open_scheduler(context, looks=True)
    status = scheduler.status(chosen_run(scheduler, run_name)).limited(limit)
    shell_of(context).output.result(status.as_json(), *blocks(status))
    tell_left_out(context, sum(status.left_out.values()))
