"""What makes a shell complete a command line: the code for it, and the answers to it.

A shell asks by running the program with `_NAME_COMPLETE` set, as click does it
(click.palletsprojects.com/shell-completion).
"""

import os
from collections.abc import Callable

import click
from click.shell_completion import ShellComplete, get_completion_class

from .errors import usage
from .output import Output


def variable(name: str) -> str:
    """The environment variable with which a shell asks the program `name`."""
    return f"_{name.upper()}_COMPLETE"


def source(name: str, program: click.Group, shell: str) -> str:
    """The code that a shell evaluates."""
    return _completer(name, program, shell, None).source() + "\n"


def answer(name: str, load: Callable[[], click.Group], shell: object, output: Output) -> int:
    """Print what a shell has asked for; returns the exit code. `shell` is the object of the
    contexts. Error `usage` when nothing was asked that is understood."""
    asked, _, instruction = os.environ[variable(name)].partition("_")
    if instruction != "complete" or "COMP_WORDS" not in os.environ:
        raise usage(f"{variable(name)} is set by a shell that completes, and not otherwise")
    output.text(_completer(name, load(), asked, shell).complete() + "\n")
    return 0


def _completer(name: str, program: click.Group, shell: str, target: object) -> ShellComplete:
    found = get_completion_class(shell)
    if found is None:
        raise usage(f"there is no completion for {shell[:40]!r}")
    return found(program, {"obj": target}, name, variable(name))
