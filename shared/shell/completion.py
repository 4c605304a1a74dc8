"""What makes a shell complete a command line: the code for it, and the answers to it.

A shell asks by running the program with `_NAME_COMPLETE` set, as click does it
(click.palletsprojects.com/shell-completion). Names come from the database, which is only read;
whatever goes wrong with that is of no interest while a user types.
"""

import importlib
import os
from collections.abc import Callable

import click
from click.shell_completion import CompletionItem, ShellComplete, get_completion_class

from ..errors import InboxOrchError, usage
from ..ids import printable
from ..store.engine import library_errors
from .commandline import Program, Verb, shell_of
from .output import Output

SHELLS = ("bash", "zsh", "fish")
MOST_SUGGESTED = 50
# (name, what it is), as a module named by `names_in` suggests them.
Suggestion = tuple[str, str]


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
        raise usage(
            f"{variable(name)} is set by a shell that completes, and not otherwise",
            hint=f"unset {variable(name)}",
        )
    output.text(_completer(name, load(), asked, shell).complete() + "\n")
    return 0


def suggestions(
    context: click.Context, parameter: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """What may stand for a parameter, from the database. Never raises for what is wrong there."""
    root = context.find_root().command
    if not isinstance(root, Program) or root.names_in is None:
        return []
    suggest = importlib.import_module(root.names_in).suggest
    try:
        found: list[Suggestion] = suggest(context, parameter, incomplete)
    except (InboxOrchError, OSError):
        return []
    except library_errors():
        return []
    given = context.params.get(parameter.name or "") or ()
    return [
        CompletionItem(name, help=printable(about, 60) or None)
        for name, about in found
        if name.startswith(incomplete) and not (isinstance(given, tuple) and name in given)
    ][:MOST_SUGGESTED]


def commands_and(
    context: click.Context, more: tuple[str, ...], before: tuple[str, ...]
) -> list[Suggestion]:
    """The commands after the words `before`, for a command that takes those of others."""
    found: click.Command | None = context.find_root().command
    for word in before:
        found = found.get_command(context, word) if isinstance(found, click.Group) else None
    names = found.list_commands(context) if isinstance(found, click.Group) else []
    return [(name, "") for name in [*names, *(() if before else more)]]


def completion_command(program: str, file: str) -> click.Command:
    """`completion` of a program; `file` is where fish looks for its code."""

    @click.command(
        "completion",
        cls=Verb,
        examples=(
            f'eval "$({program} completion bash)"',
            f'eval "$({program} completion zsh)"',
            f"{program} completion fish > {file}",
        ),
        help=f"Print what makes a shell complete the commands and options of `{program}`, and the "
        "names that are in the database. Needs none itself.",
    )
    @click.argument("shell", type=click.Choice(SHELLS))
    @click.pass_context
    def command(context: click.Context, shell: str) -> None:
        root = context.find_root().command
        assert isinstance(root, click.Group)
        output, code = shell_of(context).output, source(program, root, shell)
        if output.as_json:
            output.result({"shell": shell, "source": code})
        else:
            output.text(code)

    return command


def _completer(name: str, program: click.Group, shell: str, target: object) -> ShellComplete:
    found = get_completion_class(shell)
    if found is None:
        raise usage(
            f"there is no completion for {shell[:40]!r}", hint="there is for " + ", ".join(SHELLS)
        )
    return found(program, {"obj": target}, name, variable(name))
