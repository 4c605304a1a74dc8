"""Options by which a policy is given: read, and checked, only where one is."""

from collections.abc import Callable
from typing import Any

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.ids import quoted
from inbox_orch.shared.shell.commandline import PATH, Number, Shell

from ...patches.patterns import fault
from ...runs.policies import MAX_NUMBER
from .base import Command

_RULES = {
    "policy_file": None,
    "allow_path": "allow_paths",
    "forbid_path": "forbid_paths",
    "ask_path": "ask_paths",
    "max_files": "max_files",
    "max_lines": "max_lines",
}
_COUNT = Number(0, MAX_NUMBER, whole=True)


def _patterns(name: str, words: str) -> Callable[[Command], Command]:
    return click.option(name, multiple=True, metavar="PATTERN", help=words)


def policy_options(before: str = "") -> Callable[[Command], Command]:
    """Those that commands have that make work: a file, and the rules that are given most."""
    file = click.option(
        "--policy",
        "policy_file",
        type=PATH,
        metavar="FILE|-",
        help=f"{before}a policy from a file.",
    )
    options = (
        file,
        _patterns("--allow-path", "Nothing else may be changed; repeatable."),
        _patterns("--forbid-path", "May not be changed; repeatable."),
        _patterns("--ask-path", "Only once somebody has approved; repeatable."),
        click.option("--max-files", type=_COUNT, metavar="N", help="At most so many files."),
        click.option("--max-lines", type=_COUNT, metavar="N", help="At most so many lines."),
    )

    def decorated(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def policy_of(shell: Shell, options: dict[str, Any]) -> dict[str, Any] | None:
    """The rules that options give, taken out of them; None where they give none. Error `usage`,
    after every problem of a file has been told."""
    given = {name: options.pop(name) for name in _RULES}
    path = given.pop("policy_file")
    found = {_RULES[name]: value for name, value in given.items() if value not in (None, ())}
    for name in ("allow_path", "forbid_path", "ask_path"):
        for pattern in given[name]:
            _check(name, pattern)
    rules = {str(name): list(v) if isinstance(v, tuple) else v for name, v in found.items()}
    if path is None:
        return rules or None
    from .documents import policy_in

    return {**policy_in(shell, path), **rules}


def _check(name: str, pattern: str) -> None:
    wrong = fault(pattern)
    if wrong is not None:
        option = f"--{name.replace('_', '-')}"
        raise usage(f"{option} {quoted(pattern)}: {wrong}", hint="as in a .gitignore file")
