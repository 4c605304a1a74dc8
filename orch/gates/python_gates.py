"""Set-up and gates of a Python project, from what it says of itself. Pure.

What set-up installs lies in `.venv` of the worktree, and the gates are run by the interpreter of
that: any other may have the project installed from somewhere else.
"""

import re
import shlex
from typing import NamedTuple

from .built_in import BUILT_IN
from .definitions import Gate
from .look import VENV_PYTHON, Found, Look, table, texts
from .python_project import Project, read, reads_like_pytest

# Whatever git ignores elsewhere: nobody is to take what set-up has made for work.
_MAKE_VENV = "python3 -m venv .venv && printf '*\\n' > .venv/.gitignore"
_INSTALL = f"{VENV_PYTHON} -m pip install --quiet --disable-pip-version-check"
_PYTHON = "python3"
_REPORT = "--junitxml={report}"
_OTHER_LOCKS = {"poetry.lock": "poetry", "pdm.lock": "pdm", "Pipfile.lock": "pipenv"}


class _Setup(NamedTuple):
    """One line for the shell, where it comes from, and the interpreter that it installs for."""

    line: str
    why: str
    python: str = VENV_PYTHON


def find_python(look: Look, setup_given: str | bool) -> Found | None:
    """What the Python project at the top says; None where there is none. `setup_given`: see
    `find`."""
    project = read(look)
    if project is None:
        return None
    notes = [*project.notes, *_unused_locks(look, project)]
    setup: _Setup | None = None
    if setup_given is True:
        setup = _uv(look, project) or _pip(look, project)
    elif setup_given:
        # Whatever it makes, an environment in the worktree comes first on the PATH of gates.
        setup = _Setup(setup_given, "the config", _PYTHON)
    tests = _tests(look, project, setup, notes)
    gates = [*_ruff(look, project, setup, notes), *_mypy(look, project, setup, notes), *tests]
    line, why = (setup.line, setup.why) if setup is not None else (None, "")
    return Found(line, why, tuple(gates), tuple(notes), project.packages)


# -- set-up ----------------------------------------------------------------------------------


def _uv(look: Look, project: Project) -> _Setup | None:
    if "uv.lock" not in project.top or not look.has("uv"):
        return None
    chosen = [*(("--extra", name) for name in project.extras)]
    chosen += [("--group", name) for name in project.groups]
    # A variable of the user's may name one environment for all worktrees.
    line = "UV_PROJECT_ENVIRONMENT=.venv uv sync --frozen"
    line += "".join(f" {option} {shlex.quote(name)}" for option, name in chosen)
    if _lacks_pytest(look, project):
        line += f" && uv pip install --quiet --python {VENV_PYTHON} pytest"
    return _Setup(line, "uv.lock")


def _pip(look: Look, project: Project) -> _Setup | None:
    words, named = _wanted(project), list(_sources(project))
    if not words and not _needs_installing(project):
        return _pytest_alone(look, project)
    if project.builds:
        extras = f"[{','.join(project.extras)}]" if project.extras else ""
        words = [f"-e {shlex.quote('.' + extras)}", *words]
    pytest = _lacks_pytest(look, project)
    if pytest:
        words.append("pytest")
        named.append("pytest, which it does not name")
    if not words:
        return None
    return _Setup(f"{_MAKE_VENV} && {_INSTALL} {' '.join(words)}", " and ".join(named))


def _pytest_alone(look: Look, project: Project) -> _Setup | None:
    """An environment for pytest, where the tests need it and no other has it."""
    there = look.imports(_PYTHON, "pytest") or look.has("pytest")
    if there or not _has_tests(project):
        return None
    if not (project.uses_pytest or reads_like_pytest(look, project)):
        return None
    return _Setup(f"{_MAKE_VENV} && {_INSTALL} pytest", "pytest, which its tests need")


def _wanted(project: Project) -> list[str]:
    """What is to be installed beside the project itself, as words of a shell line."""
    words = [f"-r {path}" for path in project.files]
    own = set(texts(table(project.pyproject, "project").get("dependencies")))
    needs = [need for need in project.needs if not (project.builds and need in own)]
    return [*words, *(shlex.quote(need) for need in needs)]


def _needs_installing(project: Project) -> bool:
    """Whether the project itself has to be installed, so that its tests can be run."""
    if not project.builds:
        return bool(project.needs)
    on_path = not project.in_src or "src" in project.path_of_pytest
    asks = project.needs or project.extras or project.says_less_than_it_needs
    return bool(asks) or project.has_commands or not on_path


def _sources(project: Project) -> list[str]:
    named = []
    if project.builds or project.needs:
        named.append("pyproject.toml" if project.pyproject else "setup.py")
    return [*named, *project.files]


def _unused_locks(look: Look, project: Project) -> list[str]:
    notes = []
    if "uv.lock" in project.top:
        if not look.has("uv"):
            notes.append("uv.lock is not used, since there is no `uv` on PATH: pip installs it.")
        elif project.files:
            notes.append(f"{project.files[0]} is not used, since there is uv.lock, too.")
    for lock, program in _OTHER_LOCKS.items():
        if lock in project.top:
            notes.append(f"{lock} is not used: `setup` of the config can call {program}.")
    return notes


def _lacks_pytest(look: Look, project: Project) -> bool:
    return _has_tests(project) and "pytest" not in project.declared


def _has_tests(project: Project) -> bool:
    return bool(project.tests) or project.uses_pytest


# -- gates -----------------------------------------------------------------------------------


def _tests(look: Look, project: Project, setup: _Setup | None, notes: list[str]) -> list[Gate]:
    if not _has_tests(project):
        return []
    pytest: tuple[str, ...] | None = None
    if setup is not None:
        pytest = (setup.python, "-m", "pytest")
    elif look.imports(_PYTHON, "pytest"):
        pytest = (_PYTHON, "-m", "pytest")
    elif look.has("pytest"):
        pytest = ("pytest",)
    if pytest is not None:
        return [Gate("tests", (*pytest, "-q", _REPORT), "junit")]
    notes.append("The tests are run by unittest, since there is no pytest; it names no failures.")
    return [Gate("tests", (_PYTHON, "-m", "unittest", *_discovery(project)))]


def _discovery(project: Project) -> tuple[str, ...]:
    """Where unittest has to look: a folder that is no package it does not find by itself."""
    folder = project.tests[0].partition("/")[0]
    if "/" in project.tests[0] and folder not in project.packages:
        return ("discover", "-s", folder)
    return ()


def _tool(
    look: Look, project: Project, setup: _Setup | None, name: str
) -> tuple[tuple[str, ...], bool] | None:
    """The words that call a tool, and whether set-up installs it; None where there is none."""
    if setup is not None and name in project.declared:
        return (setup.python, "-m", name), True
    if look.has(name):
        return (name,), False
    return ((_PYTHON, "-m", name), False) if look.imports(_PYTHON, name) else None


def _ruff(look: Look, project: Project, setup: _Setup | None, notes: list[str]) -> list[Gate]:
    files = [name for name in ("ruff.toml", ".ruff.toml") if name in project.top]
    settings = table(project.pyproject, "tool", "ruff")
    if not (files or settings):
        return []
    called = _tool(look, project, setup, "ruff")
    if called is None:
        notes.append(_no_tool("ruff"))
        return []
    words, _ = called
    gates = [Gate("lint", (*words, "check", "--output-format=json", "."), "ruff")]
    own = any(re.search(r"^\[format\]", look.text(name) or "", re.M) for name in files)
    hooks = look.text(".pre-commit-config.yaml") or ""
    if own or "format" in settings or "ruff-format" in hooks:
        words = (*words, "format", "--check", ".")
        gates.append(Gate("format", words, "lines", pattern=BUILT_IN["ruff-format"].pattern))
    return gates


def _mypy(look: Look, project: Project, setup: _Setup | None, notes: list[str]) -> list[Gate]:
    settings = table(project.pyproject, "tool", "mypy")
    files = [name for name in ("mypy.ini", ".mypy.ini") if name in project.top]
    if not (settings or files or "setup.cfg [mypy]" in project.settings):
        return []
    called = _tool(look, project, setup, "mypy")
    if called is None:
        notes.append(_no_tool("mypy"))
        return []
    words, of_setup = (*called[0], "--no-pretty"), called[1]
    if setup is not None and not of_setup:
        words = (*words, "--python-executable", setup.python)
    said = "\n".join(look.text(name) or "" for name in (*files, "setup.cfg"))
    names_files = {"files", "modules", "packages"} & set(settings)
    chosen = names_files or re.search(r"^(?:files|modules|packages)\s*=", said, re.M)
    return [Gate("types", words if chosen else (*words, "."), "mypy")]


def _no_tool(name: str) -> str:
    return f"{name} has settings here and is no gate, since neither set-up nor PATH has `{name}`."
