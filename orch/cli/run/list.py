"""`orch run list`."""

import click

from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.base import open_scheduler


@click.command("list", cls=Verb, agent=True, examples=("orch run list", "orch run list --all"))
@click.option("--all", "closed", is_flag=True, help="Also those that are closed.")
@click.pass_context
def command(context: click.Context, closed: bool) -> None:
    """List the runs that are not closed, oldest first."""
    runs = open_scheduler(context, looks=True).runs(closed=closed)
    data = {"items": [run.as_json() for run in runs], "truncated": False, "next_cursor": None}
    rows = tuple((run.name, run.state, run.leader, run.title) for run in runs)
    shell_of(context).output.result(
        data,
        Table(("RUN", "STATE", "LEADER", "TITLE"), rows, "no runs" if closed else "no open runs"),
    )
