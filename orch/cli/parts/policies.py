"""What the commands about policies have in common: whose is meant."""

import click

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.shell.commandline import PATH, shell_of

from ...git.repository import Repository
from ...views.policies import InForce, in_force, of_file
from .base import Command, open_scheduler, shown_run
from .documents import policy_in


def task_option(command: Command) -> Command:
    """`--task KEY`."""
    return click.option("--task", metavar="TASK", help="By the policy of this task.")(command)


def file_option(command: Command) -> Command:
    """`--policy FILE`."""
    words = "As a run with this policy would have it; needs no database."
    return click.option("--policy", "policy_file", type=PATH, metavar="FILE|-", help=words)(command)


def force_of(
    context: click.Context, run_name: str | None, task: str | None, policy_file: str | None
) -> InForce:
    """The policy that is meant. Errors: `usage`, `not_found`."""
    if policy_file is not None:
        if task is not None:
            raise usage("give either a task or --policy FILE, not both")
        return of_file(policy_in(shell_of(context), policy_file))
    scheduler = open_scheduler(context, looks=True)
    return in_force(scheduler.desk, shown_run(context, scheduler, run_name), task)


def tracked_at(folder: str) -> tuple[str, ...] | None:
    """The paths that the repository of a folder has at HEAD; None outside of one, or where there is
    nothing yet."""
    try:
        repository = Repository.at(folder)
        return repository.paths_at(repository.commit_of("HEAD", folder))
    except InboxOrchError as error:
        if error.code not in ("usage", "git_failed", "not_found"):
            raise
        return None
