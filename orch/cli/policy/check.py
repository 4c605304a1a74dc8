"""`orch policy check`."""

import os

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.blocks import Block, Sentence, Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...views.policies import Checked, check_here, check_named, check_range
from ..parts.base import open_scheduler, run_option
from ..parts.policies import file_option, force_of, task_option


@click.command(
    "check",
    cls=Verb,
    agent=True,
    examples=(
        "orch policy check",
        "orch policy check parser/1/2",
        "orch policy check main..HEAD --task parser",
        "orch policy check HEAD~..HEAD --policy mine.yaml",
    ),
)
@run_option
@task_option
@file_option
@click.argument("change", required=False, metavar="[PATCH|A..B]")
@click.pass_context
def command(
    context: click.Context,
    run_name: str | None,
    task: str | None,
    policy_file: str | None,
    change: str | None,
) -> None:
    """Judge a change by the policy, and store nothing: what lies in the worktree of the attempt
    where you are; a patch; or the commits A..B. `orch patch check` does so with a diff.

    Exit 0: it is allowed. 9: it is not (policy_denied). 11: somebody has to approve.
    """
    checked = _checked(context, run_name, task, policy_file, change)
    output, failure = shell_of(context).output, checked.failure
    if failure is None:
        output.result(checked.as_json(), *_blocks(checked))
    else:
        output.outcome(failure, *_blocks(checked))


def _checked(
    context: click.Context,
    run_name: str | None,
    task: str | None,
    policy_file: str | None,
    change: str | None,
) -> Checked:
    if change is not None and ".." in change:
        force = force_of(context, run_name, task, policy_file)
        return check_range(os.getcwd(), change, force)
    if task is not None or policy_file is not None:
        raise usage(
            "--task and --policy are for a range",
            hint="what an attempt hands in is judged by the policy of its task",
        )
    desk = open_scheduler(context, looks=True).desk
    if change is None:
        return check_here(desk, os.getcwd())
    return check_named(desk, change, run_name)


def _blocks(checked: Checked) -> list[Block]:
    facts, outcome = checked.examined.summary, checked.examined.outcome
    size = f"{facts.files} files, +{facts.insertions} -{facts.deletions}"
    rows = tuple(
        (each.outcome, each.rule, each.layer, each.text, each.remedy)
        for each in checked.examined.objections
    )
    in_a_pipe = (checked.what, outcome, facts.files, facts.insertions, facts.deletions)
    return [
        Sentence(f"{checked.what}: {outcome} ({size})", in_a_pipe),
        Table(("SAYS", "RULE", "LAYER", "WHY", "THEN"), rows, "nothing speaks against it",
              (0, 1, 2), (3, 4)),
    ]  # fmt: skip
