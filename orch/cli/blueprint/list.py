"""`orch blueprint list`."""

import os

import click

from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.blueprints import entry_as_json


@click.command("list", cls=Verb, examples=("orch blueprint list", "orch blueprint list --json"))
@click.pass_context
def command(context: click.Context) -> None:
    """List the blueprints that come with orch, and those in .orch/blueprints of this repository.

    VISITS is how many visits of agents there are at most. Needs no database.
    """
    from ...documents.catalogue import entries

    items = [entry_as_json(entry) for entry in entries(os.curdir)]
    rows = tuple(
        (
            item["id"],
            item["source"],
            item["stage_count"],
            item["most_visits"],
            item["title"] if item["error"] is None else f"cannot be used: {item['error']}",
        )
        for item in items
    )
    shell_of(context).output.result(
        {"items": items, "truncated": False, "next_cursor": None},
        Table(("ID", "FROM", "STAGES", "VISITS", "TITLE"), rows, "no blueprints"),
    )
