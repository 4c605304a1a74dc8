"""`orch task show`."""

from collections.abc import Sequence

import click

from inbox_orch.shared.shell.blocks import Block, Body, Facts, Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...leader.scheduler import Scheduler
from ...runs.model import Run
from ...views.show import Edge, TaskShown
from ..blocked import question_blocks
from ..parts.base import open_scheduler, run_option, shown_run
from ..parts.patches import patch_table
from ..parts.visits import visit_blocks

_LEFT_OUT = ("checks", "limits", "because", "conflict_paths", "result_schema")


@click.command("show", cls=Verb, agent=True, examples=("orch task show lexer --json",))
@run_option
@click.argument("task")
@click.pass_context
def command(context: click.Context, run_name: str | None, task: str) -> None:
    """Print one task: how it stands, what it waits for, what waits for it, its attempts and its
    open question.
    """
    scheduler = open_scheduler(context, looks=True)
    tell_task(context, scheduler, shown_run(context, scheduler, run_name), task)


def tell_task(context: click.Context, scheduler: Scheduler, run: Run, task: str) -> None:
    """Print a task of a run by its key or id."""
    shown = scheduler.show_task(run, task)
    shell_of(context).output.result(shown.as_json(), *_blocks(shown))


def _blocks(shown: TaskShown) -> list[Block]:
    standing = shown.standing.as_json()
    limits = {k.replace("_", " "): v for k, v in standing["limits"].items() if v is not None}
    facts = {
        **{k.replace("_", " "): v for k, v in standing.items() if k not in _LEFT_OUT},
        "because": ", ".join(standing["because"]) or None,
        "conflict in": ", ".join(standing["conflict_paths"]) or None,
        **limits,
        "result schema": shown.standing.task.result_schema,
    }
    blocks: list[Block] = [
        Facts(tuple((label, value) for label, value in facts.items() if value is not None))
    ]
    blocks += [Body(("check",), check) for check in shown.standing.task.checks]
    if shown.standing.task.body:
        blocks.append(Body(("body",), shown.standing.task.body))
    edges = [("waits for", e) for e in shown.depends_on]
    edges += [("awaited by", e) for e in shown.dependents]
    if edges:
        blocks.append(_edges(edges))
    if shown.attempts:
        rows = tuple(
            (
                f"{shown.standing.task.key}/{a.number}",
                a.state,
                a.mailbox,
                a.branch,
                a.head_commit and a.head_commit[:12],
                a.reason,
                shown.works[a.id].words if a.id in shown.works else None,
            )
            for a in shown.attempts
        )
        headings = ("ATTEMPT", "STATE", "MAILBOX", "BRANCH", "HEAD", "WHY", "WHO")
        blocks.append(
            Table(headings, rows, fixed=(0, 1), folded=(5,), sparse=(3, 4, 5, 6), named=(3,))
        )
    for attempt in shown.attempts:
        blocks += visit_blocks(
            f"{shown.standing.task.key}/{attempt.number}", attempt, shown.visits.get(attempt.id, ())
        )
    handed_in = [each for own in shown.patches.values() for each in own]
    blocks += [patch_table(handed_in)] if handed_in else []
    return blocks + question_blocks([] if shown.question is None else [shown.question], whole=True)


def _edges(edges: Sequence[tuple[str, Edge]]) -> Table:
    rows = tuple((way, e.other.task.key, e.other.state, e.condition, e.verdict) for way, e in edges)
    return Table(("EDGE", "TASK", "STATE", "WHEN", "CONDITION IS"), rows, fixed=(0, 1))
