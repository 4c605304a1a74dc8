"""`orch` by itself, where there is a database: what waits."""

import os
from collections.abc import Sequence

import click

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Block, Sentence, Table
from inbox_orch.shared.shell.commandline import shell_of

from ...leader.overview import Waiting, overview
from .base import open_scheduler

_NONE = (
    "no run is open: `orch run init --title TEXT` opens one; "
    "`orch do TITLE -- CMD` has one task done"
)


def show(context: click.Context) -> None:
    """Show what waits; where no database was named and none is found, a command is missing."""
    shell = shell_of(context)
    shell.begin()
    try:
        scheduler = open_scheduler(context, looks=True)
    except InboxOrchError as error:
        if error.code != "no_database" or shell.database is not None:
            raise
        context.fail("Missing command.")
    seen = overview(scheduler.desk, os.environ.get("ORCH_RUN") or None)
    items = [each.as_json() for each in seen]
    data = {"items": items, "truncated": False, "next_cursor": None}
    shell.output.result(data, *_blocks(seen, leads=shell.output.terminal))


def _blocks(seen: Sequence[Waiting], *, leads: bool) -> list[Block]:
    blocks: list[Block] = [] if seen or not leads else [Sentence(_NONE)]
    for each in seen:
        blocks.append(_headline(each))
        rows = tuple((s.task.key, s.state, each.why(s), s.task.title) for s in each.needs)
        if rows:
            blocks.append(Table(("NEEDS YOU", "STATE", "WHY", "TITLE"), rows, fixed=(0, 1)))
        if leads:
            blocks.append(Sentence(f"next: {each.next}"))
    return blocks


def _headline(each: Waiting) -> Sentence:
    counts = ", ".join(f"{number} {state}" for state, number in each.counts.items())
    stale = " (stale: the database cannot be written here)" if each.stale else ""
    text = f"{each.run.name}: {each.outcome}{stale}. {counts or 'no tasks'}"
    return Sentence(text, ("run", each.run.name, each.outcome))
