"""`orch patch log`."""

import click

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...views import patches as views
from ..parts.base import open_scheduler, run_option, tell_of_last


@click.command(
    "log",
    cls=Verb,
    agent=True,
    examples=("orch patch log parser/1/2", "orch patch log parser/1/2 --json"),
)
@run_option
@click.argument("patch", metavar="PATCH")
@click.pass_context
def command(context: click.Context, run_name: str | None, patch: str) -> None:
    """Print all that was said of a patch, by whom, when and why. Its state follows from that."""
    scheduler = open_scheduler(context, looks=True)
    run, found = views.named(scheduler.desk, patch, run_name, shows=True)
    if run_name is None and "/" in patch:
        tell_of_last(context, run)
    items = [each.as_json() for each in found.entries]
    rows = tuple(
        (rfc3339(each.created_at), f"{each.kind} {each.outcome}", each.by, each.reason)
        for each in found.entries
    )
    shell_of(context).output.result(
        {"patch": found.as_json(), "items": items, "truncated": False, "next_cursor": None},
        Table(
            ("WHEN", "SAID", "BY", "REASON"), rows, "nothing was said of it yet", (0, 1), (3,), (3,)
        ),
    )
