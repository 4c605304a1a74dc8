"""`orch answer`."""

from typing import Any

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import PATH, TEXT, Verb, shell_of

from ..stages.decide import Answered
from .parts.base import chosen_run, key_option, lead_on, open_scheduler, read_body, run_option


@click.command(
    "answer",
    cls=Verb,
    agent=True,
    examples=(
        "orch answer lexer --body 'the new one'",
        "orch answer lexer --decide continue --body 'look at the fixture first'",
    ),
)
@run_option
@click.argument("task")
@click.option(
    "--body-file", type=PATH, metavar="PATH|-", help="Read the answer from a file or stdin."
)
@click.option("--body", type=TEXT, metavar="TEXT", help="The answer itself.")
@click.option(
    "--decide",
    metavar="ANSWER",
    help="Settle a decision; `orch blocked` lists the answers.",
)
@click.option("--to", metavar="MAILBOX", help="Who gets the stage, with --decide change_role.")
@key_option
@click.pass_context
def command(
    context: click.Context,
    run_name: str | None,
    task: str,
    body_file: str | None,
    body: str | None,
    decide: str | None,
    to: str | None,
    key: str | None,
) -> None:
    """Answer the open question of a task's worker; any text will do. Or decide what its blueprint
    asks for: the body is then a hint for whoever goes on."""
    text = read_body(body, body_file)
    if text is None and decide is None:
        raise usage("a body is needed", hint="give --body TEXT or --body-file PATH")
    if to is not None and decide is None:
        raise usage("--to goes with --decide change_role alone", hint="leave --to out")
    decided = None if decide is None else Answered(decide, text or "", to)
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    data = scheduler.answer(run, task, body=text or "", key=key, decided=decided)
    shell_of(context).output.result(data, _told(data))
    lead_on(context, scheduler, run)


def _told(data: dict[str, Any]) -> Sentence:
    if "decision" in data:
        said = f"Decided {data['key']}: {data['answer']}"
        return Sentence(said, (data["key"], data["thread"], data["answer"]))
    return Sentence(f"Answered {data['key']}", (data["key"], data["thread"]["id"]))
