"""`orch blocked`."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import click

from inbox_orch.shared.shell.blocks import Block, Body, Sentence
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..views.status import Question
from .parts.base import one_run, open_scheduler, shown_run

if TYPE_CHECKING:
    from ..stages.decide import Decision

_MOST_LINES = 40
"""Of what there is to know before a decision."""


@click.command("blocked", cls=Verb, agent=True, examples=("orch blocked --json",))
@one_run
@click.pass_context
def command(context: click.Context, run_name: str | None) -> None:
    """List the open questions of workers, oldest first, and the decisions that blueprints ask for;
    `orch answer` answers."""
    scheduler = open_scheduler(context, looks=True)
    run = shown_run(context, scheduler, run_name)
    stale = scheduler.fold_if_writable(run)
    questions = scheduler.questions(run)
    data = {
        "items": [question.as_json() for question in questions],
        "truncated": False,
        "next_cursor": None,
        "stale": stale,
    }
    shown = question_blocks(questions) or [Sentence("no open questions")]
    output = shell_of(context).output
    output.result(data, *(shown if questions or output.terminal else ()))


def question_blocks(questions: Sequence[Question], *, whole: bool = False) -> list[Block]:
    """Questions as texts with a head line each; in a pipe a line of key, worker, question and
    options, in this order because only the last may be empty. `whole`: with all that there is to
    know before a decision."""
    found: list[Block] = []
    for question in questions:
        if question.decision is not None:
            found += _decision(question, question.decision, None if whole else _MOST_LINES)
            continue
        options = " | ".join(question.options)
        head = f"{question.task.key}: {question.message.sender} asks"
        values = (question.task.key, question.message.sender, None, question.options)
        heading = (head + (f" ({options})" if options else ""),)
        found.append(Body(heading, question.message.body or "", values))
    return found


def _decision(question: Question, decision: "Decision", most: int | None) -> Iterator[Block]:
    """A decision: why it is asked, what has happened, in at most so many lines, what each answer
    does. In a pipe it is a line
    with the same columns, and why it is asked is its text."""
    from ..views.stages import meanings_of, without_answers

    key, asks = question.task.key, question.message.sender
    told = without_answers(question.message.body or "").rstrip("\n").split("\n")
    more = 0 if most is None else len(told) - most
    cut = [f"… and {more} lines more: `orch task show {key}`"] if more > 0 else []
    meanings = [f"  {answer}: {means}" for answer, means in meanings_of(decision).items()]
    way = f"`orch answer {key} --decide ANSWER --body HINT` decides"
    lines = [*told[:most], *cut, "", "Answers:", *meanings, way]
    heading = (f"{key}: a decision, {decision.sentence}",)
    values = (key, asks, decision.sentence, decision.answers)
    yield Body(heading, "\n".join(lines), values)
