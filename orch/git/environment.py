"""What git finds in its environment: of the caller's variables only those that say how it is to be
run, and settings that count for one command.

Runs nothing.
"""

import _thread
import contextlib
import os
import re
from collections.abc import Iterable, Iterator

# Called from a hook, git's own variables would send our commands into the user's index. These
# few say how git is to be run rather than on what, and stay: what counts for the user's git counts
# for ours.
KEPT_VARIABLES = frozenset(
    {
        "GIT_ALLOW_PROTOCOL",
        "GIT_ASKPASS",
        "GIT_ATTR_NOSYSTEM",
        "GIT_CEILING_DIRECTORIES",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_NOSYSTEM",
        "GIT_CONFIG_PARAMETERS",
        "GIT_CONFIG_SYSTEM",
        "GIT_DISCOVERY_ACROSS_FILESYSTEM",
        "GIT_EXEC_PATH",
        "GIT_LFS_SKIP_SMUDGE",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "GIT_SSL_NO_VERIFY",
        "GIT_TERMINAL_PROMPT",
    }
)
# The settings that GIT_CONFIG_COUNT counts: their names and values.
_COUNTED_SETTING = re.compile(r"GIT_CONFIG_(KEY|VALUE)_[0-9]+")
# All threads share the environment, and a server answers several calls at once: so many of them
# run a git now, and these variables are out of it meanwhile.
_changing = _thread.allocate_lock()
_running = 0
_taken: dict[str, str] = {}


def with_settings(settings: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Variables that put settings, by their names, before those of files and after those that the
    caller's environment has in this way (git-config(1), GIT_CONFIG_COUNT): the last one counts.
    Unlike with `-c`, a name may have any character in it."""
    pairs, counted = list(settings), os.environ.get("GIT_CONFIG_COUNT", "")
    first = int(counted) if counted.isascii() and counted.isdigit() else 0
    variables = {"GIT_CONFIG_COUNT": str(first + len(pairs))}
    for number, (name, value) in enumerate(pairs, first):
        variables |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return variables


def is_kept(name: str) -> bool:
    """Whether a variable of git's says how git is to be run, and not on what."""
    return name in KEPT_VARIABLES or _COUNTED_SETTING.fullmatch(name) is not None


@contextlib.contextmanager
def without_git_variables() -> Iterator[None]:
    """Take git's variables out of the environment for a while; they are the caller's own. Threads
    share it: the first that runs a git takes them out, and the last puts them back."""
    global _running
    with _changing:
        if not _running:
            for name in [n for n in os.environ if n.startswith("GIT_") and not is_kept(n)]:
                _taken[name] = os.environ.pop(name)
        _running += 1
    try:
        yield
    finally:
        with _changing:
            _running -= 1
            if not _running:
                os.environ.update(_taken)
                _taken.clear()


def absolute_path() -> str:
    """PATH without its relative parts: by an empty one or a dot, the repository in which git is
    run could bring a git, or a filter, of its own."""
    return os.pathsep.join(folder for folder in os.get_exec_path() if os.path.isabs(folder))
