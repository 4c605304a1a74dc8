"""`orch dispatch`."""

import os

import click

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Block, Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..attempts.dispatch import Dispatched
from .parts.base import (
    base_conflict,
    chosen_run,
    harvest_option,
    key_option,
    lead_on,
    open_scheduler,
    run_option,
)


@click.command(
    "dispatch",
    cls=Verb,
    agent=True,
    examples=("orch dispatch", "orch dispatch lexer --to w1 --json", "orch dispatch --dry-run"),
)
@run_option
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@click.option("--to", metavar="MAILBOX", help="Instead of the tasks' own mailboxes.")
@click.option("--base", metavar="REF", help="Start from this commit.")
@click.option("--allow-dirty", is_flag=True, help="Also when HEAD lacks changes of yours.")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@harvest_option(
    "Commit for the workers what they leave uncommitted.  [default: as each task says, else the "
    "config's]"
)
@key_option
@click.pass_context
def command(
    context: click.Context,
    run_name: str | None,
    tasks: tuple[str, ...],
    to: str | None,
    base: str | None,
    allow_dirty: bool,
    dry_run: bool,
    harvest: bool | None,
    key: str | None,
) -> None:
    """Open one attempt for each ready task, or for those named: a branch and a worktree of its
    own, and a thread in its mailbox.

    Exit 11 (`degraded`) when some attempt could not be provisioned; all are in the result.
    Without names it also finishes, first, what a dispatch that was killed had begun.
    """
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    done = scheduler.dispatch(
        run,
        task_names=tasks,
        mailbox=to,
        base=base,
        allow_dirty=allow_dirty,
        dry_run=dry_run,
        key=key,
        within=os.getcwd(),
        harvest=harvest,
    )
    output = shell_of(context).output
    if done.degraded:
        output.outcome(_degraded(done), *_blocks(done))
    else:
        output.result(done.as_json(), *_blocks(done))
    if not dry_run:
        lead_on(context, scheduler, run)


def _degraded(done: Dispatched) -> InboxOrchError:
    failed = done.failed
    return InboxOrchError(
        "degraded",
        "; ".join(f"{item['key']}: {item['reason']}" for item in failed),
        hint="the tasks are tried again by a later `orch dispatch`",
        details={"tasks": [item["key"] for item in failed]},
        data=done.as_json(),
    )


def _blocks(done: Dispatched) -> list[Block]:
    rows = tuple(
        (
            f"{item['key']}/{item['number']}",
            item["state"],
            item["mailbox"],
            item.get("thread"),
            item.get("worktree"),
        )
        for item in (*done.taken_over, *done.items)
    )
    headings = ("ATTEMPT", "STATE", "MAILBOX", "THREAD", "WORKTREE")
    blocks: list[Block] = [Table(headings, rows, _nothing(done), (0, 1, 3), (4,))]
    return blocks + [base_conflict(c["key"], c["paths"]) for c in done.conflicts]


def _nothing(done: Dispatched) -> str:
    held_back = done.held_back
    if not held_back.tasks:
        return "nothing is ready"
    return f"no slot for the {held_back.tasks} that are ready: {', '.join(held_back.limits)}"
