"""`orch attempt list`."""

import click

from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...cleanup.restore import Listed
from ..parts.base import open_scheduler, run_option, shown_run


@click.command(
    "list", cls=Verb, agent=True, examples=("orch attempt list", "orch attempt list lexer --json")
)
@run_option
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@click.pass_context
def command(context: click.Context, run_name: str | None, tasks: tuple[str, ...]) -> None:
    """List every attempt of a run, or of the tasks named, oldest first."""
    scheduler = open_scheduler(context, looks=True)
    found = scheduler.attempt_list(shown_run(context, scheduler, run_name), tasks)
    data = {"items": [each.as_json() for each in found], "truncated": False, "next_cursor": None}
    rows = tuple(
        (each.name, each.attempt.state, _where(each), each.attempt.branch, each.attempt.reason)
        for each in found
    )
    headings = ("ATTEMPT", "STATE", "WORKTREE", "BRANCH", "REASON")
    table = Table(headings, rows, "no attempts yet", (0, 1), (2, 4), (4,), named=(3,))
    shell_of(context).output.result(data, table)


def _where(each: Listed) -> str | None:
    if each.attempt.removed_at is None:
        return each.attempt.worktree_path
    return "removed, salvaged" if each.attempt.salvage_commit is not None else "removed"
