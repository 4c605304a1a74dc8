"""What a command that `orch` runs in a worktree finds in its environment."""

import os
from collections.abc import Mapping
from typing import NamedTuple

from inbox_orch.shared.store.engine import Engine

from ..git.commands import is_kept
from ..runs.config import Config
from ..runs.model import Attempt, Run, Task

# A command of the leader's acts in no worker's name.
_OF_A_HOLDER = frozenset({"INBOX_AGENT", "INBOX_THREAD", "INBOX_TOKEN"})


class Subject(NamedTuple):
    """What a command is about: commits of a run, in a folder; of an attempt at a task, or of
    none when several come together."""

    run: Run
    folder: str
    branch: str | None
    base_commit: str | None
    head_commit: str | None
    task: Task | None = None
    attempt: Attempt | None = None


def command_environment(
    database: Engine, run: Run, task: Task, attempt: Attempt, config: Config, folder: str
) -> dict[str, str]:
    """`environment_for` a command about the work of an attempt."""
    commits = (attempt.branch, attempt.base_commit, attempt.head_commit)
    return environment_for(database, config, Subject(run, folder, *commits, task, attempt))


def environment_for(database: Engine, config: Config, subject: Subject) -> dict[str, str]:
    """This process's environment without git's variables and without those of a lease, what the
    run's config gives, and what the command is about."""
    task, attempt = subject.task, subject.attempt
    about: Mapping[str, str | None] = {
        "INBOX_DB": database.address,
        "INBOX_DB_ID": database.id,
        "ORCH_RUN": subject.run.name,
        "ORCH_TASK": task and task.key,
        "ORCH_ATTEMPT": attempt and str(attempt.number),
        "ORCH_ATTEMPT_ID": attempt and attempt.id,
        "ORCH_WORKTREE": subject.folder,
        "ORCH_BRANCH": subject.branch,
        "ORCH_BASE_COMMIT": subject.base_commit,
        "ORCH_HEAD_COMMIT": subject.head_commit,
        "PWD": subject.folder,
    }
    inherited = {name: value for name, value in os.environ.items() if _is_passed_on(name)}
    known = {name: value for name, value in about.items() if value is not None}
    return {**inherited, **config.environment, **known}


def _is_passed_on(name: str) -> bool:
    if name.startswith("GIT_"):
        return is_kept(name)
    return name not in _OF_A_HOLDER
