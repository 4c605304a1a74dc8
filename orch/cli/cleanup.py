"""`orch cleanup`."""

import os

import click

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import counted
from inbox_orch.shared.shell.blocks import Block, Sentence, Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..cleanup.cleaned import KEPT, Cleaned, Item
from .parts.base import chosen_run, lead_on, open_scheduler, run_option


@click.command(
    "cleanup",
    cls=Verb,
    agent=True,
    examples=("orch cleanup --dry-run", "orch cleanup", "orch cleanup lexer --force --json"),
)
@run_option
@click.argument("tasks", nargs=-1, metavar="[TASK]...")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--force", is_flag=True, help="Also what is not committed or not merged.")
@click.pass_context
def command(
    context: click.Context, run_name: str | None, tasks: tuple[str, ...], dry_run: bool, force: bool
) -> None:
    """Take away the worktrees of ended attempts, and the branches whose work is merged.

    Without names, what may not go is kept, and listed with its reasons (exit 0). With names it is
    all or nothing: exit 9 when one of their worktrees may not go. Before anything goes, what is
    in no commit is salvaged; `orch attempt restore` brings it back. The folder itself stays in a
    trash for seven days. A live attempt, a process inside, a nested repository, and a worktree,
    lock or branch that is not ours are never touched, not even with --force.
    """
    scheduler = open_scheduler(context, looks=dry_run, perhaps_alone=True)
    run = chosen_run(scheduler, run_name)
    done = scheduler.cleanup(
        run,
        task_names=tasks,
        force=force,
        dry_run=dry_run,
        within=os.getcwd(),
    )
    output = shell_of(context).output
    if done.degraded:
        output.outcome(_degraded(done), *_blocks(done))
    else:
        output.result(done.as_json(), *_blocks(done))
    if not dry_run:
        lead_on(context, scheduler, run, just="cleaned")


def _degraded(done: Cleaned) -> InboxOrchError:
    kept = [item for item in done.items if item.action == KEPT]
    told = (f"{item.key}/{item.attempt.number}: {item.reasons[-1].message}" for item in kept)
    return InboxOrchError(
        "degraded",
        "; ".join(told),
        hint="what was there when the call began has changed meanwhile: try again",
        details={"attempts": [item.attempt.id for item in kept]},
        data=done.as_json(),
    )


def _blocks(done: Cleaned) -> list[Block]:
    rows = tuple(
        (f"{item.key}/{item.attempt.number}", item.action, _kept_at(item), _why(item))
        for item in done.items
    )
    headings = ("ATTEMPT", "ACTION", "SALVAGE", "REASONS")
    empty = "no worktree to take away"
    blocks: list[Block] = [Table(headings, rows, empty, (0, 1), (3,), sparse=(2,))]
    if done.emptied:
        emptied = counted(len(done.emptied), "worktree has", "worktrees have")
        text = f"{emptied} been in the trash for seven days, and none is left there."
        blocks.append(Sentence(text, ("emptied", len(done.emptied))))
    return blocks


def _kept_at(item: Item) -> str | None:
    return None if item.salvage is None else item.as_json()["salvage_ref"]


def _why(item: Item) -> str:
    if item.reasons:
        return "; ".join(reason.message for reason in item.reasons)
    return "" if item.merged_into is None else f"merged into {item.merged_into}"
