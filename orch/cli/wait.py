"""`orch wait`."""

import click

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Block, Sentence, Table
from inbox_orch.shared.shell.commandline import Verb, shell_of
from inbox_orch.shared.store.events import Event

from ..leader.wait import Waited
from ..runs import limits
from ..views.happened import sentence
from .blocked import question_blocks
from .parts.base import (
    WAIT,
    chosen_run,
    gate_slots_option,
    lead_on,
    no_verify_option,
    obstacle_block,
    one_run,
    open_scheduler,
)


@click.command(
    "wait",
    cls=Verb,
    agent=True,
    examples=(
        "orch wait --json",
        "orch wait --until run --wait inf",
        "orch wait --until task:lexer",
    ),
)
@one_run
@click.option(
    "--until",
    default="change",
    show_default=True,
    metavar="WHAT",
    help="`change`, `blocked`, `run`, or `task:KEY`.",
)
@click.option("--after", metavar="N", help="Changes after this event id, not after those told.")
@click.option(
    "--wait",
    "wait_seconds",
    type=WAIT,
    default=limits.DEFAULT_WAIT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait; 0 looks once, `inf` blocks.",
)
@no_verify_option
@gate_slots_option
@click.pass_context
def command(
    context: click.Context,
    run_name: str | None,
    until: str,
    after: str | None,
    wait_seconds: float,
    no_verify: bool,
    gate_slots: int | None,
) -> None:
    """Block until something has happened in a run; reconciles as it goes.

    change: an attempt was submitted or ended, a visit has ended, a question, a task is final.
    blocked: a question or a decision is open. run: the run has ended. Exit 8: not yet, call again.
    Exit 11: it ended, and not well, or nothing moves without a decision. A check that has begun is
    not cut short.
    """
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    waited = scheduler.wait(
        run,
        until=until,
        after=after,
        wait_seconds=wait_seconds,
        checks=False if no_verify else gate_slots or True,
    )
    output = shell_of(context).output
    if waited.failure is not None:
        output.outcome(waited.failure, *_blocks(waited))
    else:
        output.result(waited.as_json(), *_blocks(waited))
    if waited.until == "change" and after is None:
        try:
            scheduler.mark_told(waited)
        except InboxOrchError as error:
            # It has been told; being told again is all that can follow.
            output.notice(f"the cursor was not moved, this will be told again: {error.message}")
    lead_on(context, scheduler, run)


def _why(event: Event) -> str | None:
    """The reason that it gives, or, of a visit, what came of it."""
    if event.kind == "visit_ended":
        return sentence(event.kind, event.data)
    reason: str | None = event.data.get("reason")
    return reason


def _blocks(waited: Waited) -> list[Block]:
    rows = tuple(
        (
            str(rfc3339(event.at))[11:19],
            event.kind.replace("_", " ", 1),
            waited.keys[str(event.task_id)],
            _why(event),
        )
        for event in waited.changes
    )
    blocks: list[Block] = [
        Sentence(f"{waited.run.name}: {waited.outcome}", ("run", waited.run.name, waited.outcome))
    ]
    if waited.obstacle is not None:
        blocks.append(obstacle_block(waited.obstacle))
    if waited.overrun_seconds is not None:
        blocks.append(
            Sentence(
                f"A check outlasted the wait by {waited.overrun_seconds:.1f} s",
                ("overrun_seconds", waited.overrun_seconds),
            )
        )
    if waited.until == "change":
        headings = ("AT", "WHAT", "TASK", "WHY")
        blocks.append(Table(headings, rows, "nothing more will change", (0, 1, 2), (3,)))
    return blocks + question_blocks(waited.questions)
