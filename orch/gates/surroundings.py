"""What a command that `orch` runs in a worktree finds in its environment."""

import os
from collections.abc import Mapping

from inbox_orch.shared.store.engine import Engine

from ..git.commands import is_kept
from ..runs.config import Config
from ..runs.model import Attempt, Run, Task

# A command of the leader's acts in no worker's name.
_OF_A_HOLDER = frozenset({"INBOX_AGENT", "INBOX_THREAD", "INBOX_TOKEN"})


def command_environment(
    database: Engine, run: Run, task: Task, attempt: Attempt, config: Config, folder: str
) -> dict[str, str]:
    """This process's environment without git's variables and without those of a lease, what the
    run's config gives, and what the command is about."""
    about: Mapping[str, str | None] = {
        "INBOX_DB": database.address,
        "INBOX_DB_ID": database.id,
        "ORCH_RUN": run.name,
        "ORCH_TASK": task.key,
        "ORCH_ATTEMPT": str(attempt.number),
        "ORCH_ATTEMPT_ID": attempt.id,
        "ORCH_WORKTREE": folder,
        "ORCH_BRANCH": attempt.branch,
        "ORCH_BASE_COMMIT": attempt.base_commit,
        "ORCH_HEAD_COMMIT": attempt.head_commit,
        "PWD": folder,
    }
    return environment_for(config, about)


def environment_for(config: Config, about: Mapping[str, str | None]) -> dict[str, str]:
    """This process's environment without git's variables and without those of a lease, what the
    run's config gives, and the variables in `about`; those that are None are left out."""
    inherited = {name: value for name, value in os.environ.items() if _is_passed_on(name)}
    known = {name: value for name, value in about.items() if value is not None}
    return {**inherited, **config.environment, **known}


def _is_passed_on(name: str) -> bool:
    if name.startswith("GIT_"):
        return is_kept(name)
    return name not in _OF_A_HOLDER
