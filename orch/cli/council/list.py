"""`orch council list`."""

import click

from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.base import open_scheduler


@click.command("list", cls=Verb, agent=True, examples=("orch council list --json",))
@click.pass_context
def command(context: click.Context) -> None:
    """List every council, oldest first, as it is stored: nothing is taken in."""
    found = open_scheduler(context, looks=True).councils()
    data = {"items": [view.as_json() for view in found], "truncated": False, "next_cursor": None}
    rows = tuple(
        (
            view.run.name,
            view.status,
            f"{view.valid}/{len(view.seats_of(1))}",
            view.run.state,
            view.run.title,
        )
        for view in found
    )
    shell_of(context).output.result(
        data, Table(("COUNCIL", "STATUS", "VALID", "RUN", "TITLE"), rows, "no councils")
    )
