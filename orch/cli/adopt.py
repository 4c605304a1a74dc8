"""`orch adopt`."""

import click

from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import Number, Verb, shell_of

from ..runs import limits
from .parts.base import chosen_run, lead_on, open_scheduler, run_option


@click.command(
    "adopt",
    cls=Verb,
    agent=True,
    examples=("orch adopt lexer", "orch adopt lexer --attempt 2 --no-checks"),
)
@run_option
@click.argument("task")
@click.option(
    "--attempt",
    "number",
    type=Number(1, limits.MOST_ATTEMPTS_EVER, whole=True),
    metavar="N",
    help="The attempt whose commits are taken.  [default: the newest ended one with commits]",
)
@click.option("--no-checks", is_flag=True, help="Do not run the task's checks.")
@click.pass_context
def command(
    context: click.Context, run_name: str | None, task: str, number: int | None, no_checks: bool
) -> None:
    """Take the commits of an ended attempt as the accepted work of its task: work that came too
    late, or that was rejected and has been put right in its worktree.

    It is verified as any other work: exit 11 (`work_rejected`) when it is empty or dirty or a
    check fails. Exit 9 while the task has a live attempt.
    """
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    data = scheduler.adopt(run, task, number=number, checks=not no_checks)
    adopted, attempt = data["task"], data["attempt"]
    shell_of(context).output.result(
        data,
        Sentence(
            f"Adopted attempt {attempt['number']} of {adopted['key']}: {attempt['head_commit']}",
            (adopted["key"], attempt["number"], attempt["head_commit"]),
        ),
    )
    lead_on(context, scheduler, run)
