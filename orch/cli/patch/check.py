"""`orch patch check`."""

import os
from typing import NamedTuple

import click

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.shell.blocks import Block, Sentence, Table
from inbox_orch.shared.shell.commandline import PATH, Verb, shell_of
from inbox_orch.shared.shell.inputs import read_input

from ...attempts.submit import read, refusal
from ...git.repository import Repository
from ...git.unfit import NotApplied
from ...git.unified import MAX_TEXT_BYTES
from ...patches.policy import Policy
from ...runs.config import config_of
from ...runs.secrets import secrets_of
from ...views.patch_check import CheckedText, check
from ...views.policies import in_force, of_file
from ..parts.base import open_scheduler, run_option, shown_run
from ..parts.policies import file_option, force_of, task_option


class Ground(NamedTuple):
    """What a change is judged on: the repository, and by what."""

    repository: Repository
    policy: Policy
    secrets: tuple[str, ...] = ()


@click.command(
    "check",
    cls=Verb,
    agent=True,
    examples=("git diff | orch patch check -", "orch patch check fix.diff --task parser --json"),
)
@run_option
@task_option
@file_option
@click.option("--base", metavar="REV", help="What it is for.  [default: HEAD, here]")
@click.argument("file", type=PATH, metavar="FILE|-")
@click.pass_context
def command(
    context: click.Context,
    run_name: str | None,
    task: str | None,
    policy_file: str | None,
    base: str | None,
    file: str,
) -> None:
    """Say what would become of a diff, or of edits as JSON, without handing it in. Stores nothing.

    Without --run, --task and --policy it is judged by what is built in. Exit 0: it can go in.
    Exit 4: it is no patch, or does not apply. Exit 9: the policy does not allow it. Exit 11:
    somebody has to approve of it.
    """
    if file == policy_file == "-":
        raise usage("standard input has one of them", hint="name a file for --policy")
    given = read(content_of(file))
    ground = _ground(context, run_name, task, policy_file)
    commit = ground.repository.commit_of(base or "HEAD", os.getcwd())
    try:
        checked = check(ground.repository, commit, given, ground.policy, ground.secrets)
    except NotApplied as refused:
        raise refusal(refused) from refused
    output, failed = shell_of(context).output, _failure(checked)
    if failed is None:
        output.result(checked.as_json(), *_blocks(checked))
    else:
        output.outcome(failed, *_blocks(checked))


def content_of(file: str) -> bytes:
    """What is handed in. Error `usage`."""
    content = read_input(file, MAX_TEXT_BYTES)
    if len(content) > MAX_TEXT_BYTES:
        raise usage(f"it has more than {MAX_TEXT_BYTES} bytes", hint="hand it in in parts")
    return content


def _ground(
    context: click.Context, run_name: str | None, task: str | None, policy_file: str | None
) -> Ground:
    if policy_file is not None:
        return Ground(_here(), force_of(context, run_name, task, policy_file).policy)
    if run_name is None and task is None:
        return Ground(_here(), of_file({}).policy)
    scheduler = open_scheduler(context, looks=True)
    run = shown_run(context, scheduler, run_name)
    policy = in_force(scheduler.desk, run, task).policy
    return Ground(scheduler.desk.repository(run), policy, tuple(secrets_of(config_of(run))))


def _here() -> Repository:
    return Repository.at(os.getcwd())


def _failure(checked: CheckedText) -> InboxOrchError | None:
    outcome, reason = checked.examined.outcome, checked.examined.reason or ""
    if outcome == "allowed":
        return None
    if outcome == "denied":
        hint = "each objection says how it could be allowed"
        return InboxOrchError("policy_denied", reason, hint=hint, data=checked.as_json())
    hint = "once it is handed in, `orch patch approve` lets it go on"
    return InboxOrchError("approval_needed", reason, hint=hint, data=checked.as_json())


def _blocks(checked: CheckedText) -> list[Block]:
    facts = checked.examined.summary
    size = f"{facts.files} files, +{facts.insertions} -{facts.deletions}"
    shown = (checked.examined.outcome, facts.files, facts.insertions, facts.deletions)
    blocks: list[Block] = [Sentence(f"{checked.examined.outcome}: {size}", shown)]
    blocks += [Sentence(note) for note in facts.notes]
    rows = tuple(
        (o.outcome, o.rule, o.layer, o.text, o.remedy) for o in checked.examined.objections
    )
    headings = ("SAYS", "RULE", "LAYER", "WHY", "HOW IT COULD BE ALLOWED")
    if rows:
        blocks.append(Table(headings, rows, "nothing is in the way", (0, 1, 2), (3, 4)))
    return blocks
