"""Which interpreter runs a gate's command, as far as its words and the files on PATH tell, and the
variables with which the environment that set-up made comes first. Runs nothing.
"""

import os
import re
import shlex
import shutil
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from .definitions import REPORT, without_reports

_PYTHON = re.compile(r"python(?:[0-9][0-9.]*)?|pypy[0-9.]*")
_PYTEST = ("pytest", "py.test")
_RUNNERS = ("uv", "poetry", "pdm", "hatch", "pipenv", "rye", "pixi")
"""Programs that choose the interpreter themselves: `uv run pytest`."""
_NODE = ("node", "npm", "npx", "pnpm", "pnpx", "yarn")
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=.*", re.S)
_FOR_A_SHELL = re.compile(r"[;&|<>()$`*?\[\]{}~#\n]")
_MOST_FIRST_BYTES = 1024
_BINS = (".venv/bin", "node_modules/.bin")


class Launch(NamedTuple):
    """How the interpreter of a gate is called: `assigned` are variables that are set for it,
    `words` the command. `paths` are what it has in front of its path (the worktree for `-m`); None
    is the folder of the interpreter, as for a program that it runs. `pytest` are the arguments of
    pytest; None where something else is run."""

    assigned: tuple[str, ...]
    words: tuple[str, ...]
    paths: tuple[str, ...] | None
    pytest: tuple[str, ...] | None


def activated(environment: Mapping[str, str], folder: str) -> dict[str, str]:
    """The variables of a gate in a worktree: what set-up has made there comes first on PATH, for
    the gate and for what it starts."""
    found = dict(environment)
    bins = [place for place in (os.path.join(folder, b) for b in _BINS) if os.path.isdir(place)]
    if bins:
        found["PATH"] = os.pathsep.join([*bins, *filter(None, [found.get("PATH")])])
    if os.path.exists(os.path.join(folder, ".venv/bin/python")):
        found["VIRTUAL_ENV"] = os.path.join(folder, ".venv")
        found.pop("PYTHONHOME", None)
    return found


def launch_of(
    run: Sequence[str] | str, environment: Mapping[str, str], folder: str
) -> Launch | None:
    """How Python is called by a gate; None where that cannot be told from its words."""
    words = _words(run)
    assigned = tuple(_leading(words, _ASSIGNMENT))
    words = words[len(assigned) :]
    search = next(
        (w.partition("=")[2] for w in assigned if w.startswith("PATH=")),
        environment.get("PATH", ""),
    )
    found = _of_pytest(words, search, folder) or _of_python(words, folder)
    return None if found is None else found._replace(assigned=assigned)


def is_of_node(run: Sequence[str] | str) -> bool:
    """Whether a gate is a script of a package for Node."""
    words = _words(run)
    return bool(words) and os.path.basename(words[0]) in _NODE


def _of_pytest(words: Sequence[str], search: str, folder: str) -> Launch | None:
    at = next((i for i, word in enumerate(words) if os.path.basename(word) in _PYTEST), None)
    if at is None:
        return None
    before, arguments = tuple(words[:at]), without_reports(words[at + 1 :])
    if before[-1:] == ("-m",):
        python = _python_of(before[:-1], search, folder)
        return None if python is None else Launch((), python, (folder,), arguments)
    if any(os.path.basename(word) in _RUNNERS for word in before):
        return Launch((), (*before, "python"), None, arguments)
    python = _shebang(words[at], search, folder)
    return None if python is None else Launch((), (*before, *python), None, arguments)


def _python_of(launcher: tuple[str, ...], search: str, folder: str) -> tuple[str, ...] | None:
    """The words that call the interpreter in front of `-m pytest`."""
    for at, word in enumerate(launcher):
        if _PYTHON.fullmatch(os.path.basename(word)):
            rest = launcher[at + 1 :]
            # `python -m coverage run -m pytest`: the options up to there are the interpreter's.
            options = rest[: rest.index("-m")] if "-m" in rest else rest
            return (*launcher[: at + 1], *options)
    if any(os.path.basename(word) in _RUNNERS for word in launcher):
        return (*launcher, "python")
    if launcher and os.path.basename(launcher[0]) == "coverage":
        return _shebang(launcher[0], search, folder)
    return None


def _of_python(words: Sequence[str], folder: str) -> Launch | None:
    """An interpreter that runs something else than pytest: a module, or a file."""
    at = next((i for i, w in enumerate(words) if _PYTHON.fullmatch(os.path.basename(w))), None)
    if at is None:
        return None
    options = []
    for word in words[at + 1 :]:
        if word == "-m" or not word.startswith("-"):
            break
        options.append(word)
    rest = words[at + 1 + len(options) :]
    paths = [folder]
    if rest and rest[0] != "-m":
        paths = [os.path.dirname(os.path.join(folder, rest[0]))]
    for option, value in pairwise(rest):
        if option in ("-s", "--start-directory"):
            paths.insert(0, os.path.join(folder, value))
    return Launch((), (*words[: at + 1], *options), tuple(paths), None)


def _words(run: Sequence[str] | str) -> tuple[str, ...]:
    """The words of a command; none of a line that only a shell can read."""
    if not isinstance(run, str):
        return tuple(run)
    if _FOR_A_SHELL.search(run.replace(REPORT, "")):
        return ()
    try:
        return tuple(shlex.split(run))
    except ValueError:
        return ()


def _leading(words: Sequence[str], pattern: re.Pattern[str]) -> list[str]:
    found = []
    for word in words:
        if not pattern.fullmatch(word):
            break
        found.append(word)
    return found


def _shebang(program: str, search: str, folder: str) -> tuple[str, ...] | None:
    """The interpreter in the first lines of a script; of one that only passes on (a shim), the
    `python` that lies beside it. None where there is neither."""
    if "/" in program:
        path: str | None = os.path.join(folder, program)
    else:
        path = shutil.which(program, path=search)
    try:
        with open(path or "", "rb") as file:
            first = file.read(_MOST_FIRST_BYTES).decode("utf-8", "replace")
    except OSError:
        return None
    line = first.partition("\n")[0]
    words = line[2:].split() if line.startswith("#!") else []
    if words and os.path.basename(words[0]) == "env":
        words = [word for word in words[1:] if not word.startswith("-")]
    if words and _PYTHON.fullmatch(os.path.basename(words[0])):
        return tuple(words)
    # pip writes this where the path of the interpreter is too long, or has a space.
    trampoline = re.search(r"^'''exec' (?:\"([^\"]+)\"|(\S+)) ", first, re.M)
    if trampoline is not None:
        return (trampoline[1] or trampoline[2],)
    beside = os.path.join(os.path.dirname(path or ""), "python")
    return (beside,) if os.path.exists(beside) else None
