"""What a command that `orch` runs in a worktree finds in its environment."""

import contextlib
import os
from collections.abc import Mapping

from inbox_orch.shared.database import Database

from ..domain.config import Config
from ..domain.model import Attempt, Run, Task
from ..git.commands import KEPT_VARIABLES

# A command of the leader's acts in no worker's name.
_OF_A_HOLDER = frozenset({"INBOX_AGENT", "INBOX_THREAD", "INBOX_TOKEN"})


def command_environment(
    database: Database, run: Run, task: Task, attempt: Attempt, config: Config, folder: str
) -> dict[str, str]:
    """This process's environment without git's variables and without those of a lease, what the
    run's config gives, and what the command is about."""
    about: Mapping[str, str | None] = {
        "INBOX_DB": database.layout.database,
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
    """The same for a command that is about whatever else."""
    inherited = {name: value for name, value in os.environ.items() if _is_passed_on(name)}
    known = {name: value for name, value in about.items() if value is not None}
    return {**inherited, **config.environment, **known}


def secrets_of(config: Config, environment: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """What is to be masked for a run, with the values from this environment, else from that of
    the process. In a locale that is not UTF-8, Python reads variables by that locale, while what
    commands print of them is read as UTF-8: then both readings are secrets."""
    values = config.secret_values(os.environ if environment is None else environment)
    found = dict.fromkeys(values)
    for value in values:
        with contextlib.suppress(UnicodeEncodeError):  # then no command can be given it, either
            found[os.fsencode(value).decode("utf-8", "surrogateescape")] = None
    return tuple(found)


def _is_passed_on(name: str) -> bool:
    if name.startswith("GIT_"):
        return name in KEPT_VARIABLES
    return name not in _OF_A_HOLDER
