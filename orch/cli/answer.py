"""`orch answer`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import PATH, TEXT, Verb, shell_of

from ..runs.plan import Plan
from ..stages.decide import Answered
from .parts.base import chosen_run, key_option, lead_on, open_scheduler, read_body, run_option
from .parts.documents import faults_told, plan_in
from .parts.naming_blueprints import folder_of, resolved


@click.command(
    "answer",
    cls=Verb,
    agent=True,
    examples=(
        "orch answer lexer --body 'the new one'",
        "orch answer lexer --decide continue --body 'look at the fixture first'",
        "orch answer lexer --decide relax --rule max_lines --body 'a generated table'",
        "orch answer lexer --decide split --plan parts.yaml",
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
@click.option("--rule", metavar="RULE", help="What a refused patch may break, with --decide relax.")
@click.option(
    "--plan", type=PATH, metavar="FILE|-", help="The parts of the task, with --decide split."
)
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
    rule: str | None,
    plan: str | None,
    key: str | None,
) -> None:
    """Answer the open question of a task's worker; any text will do. Or decide what its blueprint
    asks for: the body is then a hint for whoever goes on.

    `relax` lets a refused patch come in though it breaks a rule of the policy, and keeps the body
    as the reason. `split` puts the tasks of a plan, as `orch plan import` takes it, in the place of
    this one.
    """
    _check(decide, to, rule, plan, body_file)
    text = read_body(body, body_file)
    if text is None and decide is None:
        raise usage("a body is needed", hint="give --body TEXT or --body-file PATH")
    decided = None if decide is None else Answered(decide, text or "", to, rule)
    scheduler = open_scheduler(context)
    with _planned(context, plan) as parts:
        run = chosen_run(scheduler, run_name)
        if decided is not None and parts is not None:
            planned = resolved(shell_of(context), parts, folder_of(run))
            decided = decided._replace(parts=planned)
        data = scheduler.answer(run, task, body=text or "", key=key, decided=decided)
    shell_of(context).output.result(data, _told(data))
    lead_on(context, scheduler, run)


def _check(
    decide: str | None, to: str | None, rule: str | None, plan: str | None, body_file: str | None
) -> None:
    """Error `usage` for options that go together with nothing."""
    for option, value, answer in (
        ("--to", to, "change_role"),
        ("--rule", rule, "relax"),
        ("--plan", plan, "split"),
    ):
        if value is not None and decide is None:
            raise usage(f"{option} goes with --decide {answer} alone", hint=f"leave {option} out")
    if plan == "-" and body_file == "-":
        raise usage(
            "the plan and the body cannot both be read from standard input",
            hint="write one of them to a file",
        )


@contextmanager
def _planned(context: click.Context, path: str | None) -> Iterator[Plan | None]:
    """The plan in a file; what speaks against it is told with its lines."""
    if path is None:
        yield None
        return
    plan, source = plan_in(shell_of(context), path)
    with faults_told(shell_of(context), source):
        yield plan


def _told(data: dict[str, Any]) -> Sentence:
    if "decision" in data:
        said = f"Decided {data['key']}: {data['answer']}"
        if "rule" in data:
            said += f" {data['rule']}"
            said += f", still kept out by {', '.join(data['left'])}" if data["left"] else ""
        if "parts" in data:
            said += f" into {', '.join(data['parts'])}"
        return Sentence(said, (data["key"], data["thread"], data["answer"]))
    return Sentence(f"Answered {data['key']}", (data["key"], data["thread"]["id"]))
