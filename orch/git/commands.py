"""Running git: a clean environment, no automatic gc, errors with git's own words.

GitPython starts the processes; it is imported on first use, because the import alone costs as
much as fifty calls of git.
"""

import os
from collections.abc import Sequence
from typing import Any

from inbox_orch.shared.errors import InboxOrchError

# Called from a hook, git's own variables would send our commands into the user's index. These
# few say how git is to be run rather than on what, and stay.
_KEPT_VARIABLES = frozenset(
    {
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_SYSTEM",
        "GIT_EXEC_PATH",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_TERMINAL_PROMPT",
    }
)
_OPTIONS = ("-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "core.fsmonitor=false")
_READING = {"GIT_OPTIONAL_LOCKS": "0"}


def git(
    folder: str,
    *arguments: str,
    reads: bool = False,
    accepted: Sequence[int] = (0,),
    environment: dict[str, str] | None = None,
    shared_locks: Sequence[int] = (),
) -> tuple[int, str]:
    """Run git in `folder`; returns its exit status and standard output, undecodable bytes as
    surrogates.

    `reads` keeps git from taking locks of its own. `shared_locks` are descriptors of our own
    locks that git shares, so that they stay held while it runs, even if we are killed.
    Errors: `git_missing`; `git_failed` for a status that is not in `accepted`.
    """
    status, output, complaint = _execute(
        folder,
        ["git", *_OPTIONS, *arguments],
        {**(_READING if reads else {}), **(environment or {}), "LC_ALL": "C"},
        shared_locks,
    )
    if status not in accepted:
        words = complaint.strip() or output.strip()
        raise InboxOrchError(
            "git_failed",
            f"git {arguments[0]} failed in {folder}: {words[:2000]}",
            details={"command": list(arguments)[:40], "status": status, "folder": folder},
        )
    return status, output


def output_of(folder: str, *arguments: str) -> str:
    """The output of a reading git command without its last line end."""
    return git(folder, *arguments, reads=True)[1].rstrip("\n")


def _execute(
    folder: str, command: list[str], environment: dict[str, str], shared_locks: Sequence[int]
) -> tuple[int, str, str]:
    module = _gitpython()
    try:
        status, output, complaint = module.cmd.Git(folder).execute(
            command,
            with_extended_output=True,
            with_exceptions=False,
            stdout_as_string=False,
            strip_newline_in_stdout=False,
            env=environment,
            pass_fds=tuple(shared_locks),
        )
    except module.exc.GitCommandNotFound as error:
        if not os.path.isdir(folder):
            raise InboxOrchError(
                "git_failed", f"the folder {folder} is not there", details={"folder": folder}
            ) from error
        raise InboxOrchError(
            "git_missing", "git could not be started", hint="install git and put it on PATH"
        ) from error
    text = output.decode("utf-8", "surrogateescape")
    if isinstance(complaint, bytes):
        complaint = complaint.decode("utf-8", "replace")
    return status, text, complaint


def _gitpython() -> Any:
    """GitPython, loaded once, after git's variables have been taken out of the environment."""
    for name in list(os.environ):
        if name.startswith("GIT_") and name not in _KEPT_VARIABLES:
            del os.environ[name]
    # GitPython looks for git when it is imported, and would raise an ImportError without it.
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    import git as gitpython

    return gitpython
