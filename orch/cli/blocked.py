"""`orch blocked`."""

from collections.abc import Sequence

import click

from inbox_orch.shared.shell.blocks import Block, Body, Sentence
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..views.status import Question
from .parts.base import one_run, open_scheduler, shown_run


@click.command("blocked", cls=Verb, agent=True, examples=("orch blocked --json",))
@one_run
@click.pass_context
def command(context: click.Context, run_name: str | None) -> None:
    """List the open questions of workers, oldest first; `orch answer` answers."""
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


def question_blocks(questions: Sequence[Question]) -> list[Block]:
    """Questions as texts with a head line each; in a pipe a line of key, worker, question and
    options, in this order because only the last may be empty."""
    found: list[Block] = []
    for question in questions:
        options = " | ".join(question.options)
        head = f"{question.task.key}: {question.message.sender} asks"
        if question.decision is not None:
            head = f"{question.task.key}: decide, {question.decision.sentence}"
        values = (question.task.key, question.message.sender, None, question.options)
        heading = (head + (f" ({options})" if options else ""),)
        found.append(Body(heading, question.message.body or "", values))
    return found
