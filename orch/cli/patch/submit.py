"""`orch patch submit`."""

import os

import click

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import PATH, Verb, shell_of

from ...attempts.submit import Submitted, submit
from ..parts.base import chosen_run, key_option, lead_on, open_scheduler, run_option
from .check import content_of


@click.command(
    "submit",
    cls=Verb,
    agent=True,
    examples=(
        "git diff | orch patch submit - --task parser",
        "orch patch submit edits.json --task parser --key fix-1 --json",
    ),
)
@run_option
@click.option("--task", "task_name", required=True, metavar="TASK", help="What it is for.")
@click.option("--replaces", metavar="PATCH", help="The refused patch that it is handed in for.")
@key_option
@click.argument("file", type=PATH, metavar="FILE|-")
@click.pass_context
def command(
    context: click.Context,
    run_name: str | None,
    task_name: str,
    replaces: str | None,
    key: str | None,
    file: str,
) -> None:
    """Hand in a diff, or edits as JSON, for a task that is ready: an attempt of its own, which
    needs no worker. It is judged, brought into its worktree, and accepted or rejected as any other;
    checks are run by the next leader.

    The whole text is the diff, as `git diff` prints it; of edits, `old` is in the file exactly
    once. Exit 4: it does not fit, and nothing was made. Exit 9: the policy does not allow it, or
    the task has a live attempt. Exit 11: somebody has to approve of it, or it was rejected.
    """
    content = content_of(file)
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    done = submit(
        scheduler.desk,
        run,
        task_name,
        content,
        replaces=replaces,
        key=key,
        within=os.getcwd(),
    )
    attempt = done.attempt
    name = f"{done.task.key}/{attempt.number}"
    told = Sentence(
        f"Handed in as attempt {name}, which is {attempt.state}",
        (name, attempt.state, done.patch),
    )
    output, failed = shell_of(context).output, _failure(done, name)
    if failed is None:
        output.result(done.as_json(), told)
    else:
        output.outcome(failed, told)
    lead_on(context, scheduler, run)


def _failure(done: Submitted, name: str) -> InboxOrchError | None:
    attempt, reason = done.attempt, done.attempt.reason or ""
    if done.state == "quarantined":
        hint = f"`orch patch show {done.patch}` shows what is objected to; it is kept"
        return InboxOrchError("policy_denied", reason, hint=hint, data=done.as_json())
    if attempt.state in ("rejected", "provision_failed", "failed", "lost"):
        message = f"attempt {name} is {attempt.state}: {reason}"
        hint = "put that right, and hand it in again"
        return InboxOrchError("work_rejected", message, hint=hint, data=done.as_json())
    if attempt.state == "blocked":
        message = f"attempt {name} waits for an approval"
        hint = f"`orch patch approve {done.patch}` lets it go on"
        return InboxOrchError("approval_needed", message, hint=hint, data=done.as_json())
    return None
