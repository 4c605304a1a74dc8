"""`inbox help` and `orch help`: the contract as text, and the help of a command by its words.

The text comes from `contract` and `errors`, as the pages of the documentation do.
"""

from collections.abc import Callable, Sequence

import click

from ..errors import EXIT_MEANINGS, error_codes, not_found
from ..ids import printable
from .commandline import Verb, shell_of
from .contract import (
    ABOUT_EXITS,
    ABOUT_VARIABLES,
    FOR_CHECKS,
    FOR_COMMANDS,
    JSON,
    VARIABLES,
)
from .nearest import did_you_mean


def _formatter() -> click.HelpFormatter:
    return click.HelpFormatter(width=80)


def _environment() -> str:
    formatter = _formatter()
    formatter.write_text(ABOUT_VARIABLES)
    for title, meanings in (
        ("Variables", VARIABLES),
        ("What `inbox work` gives to its command", FOR_COMMANDS),
        ("What `orch` gives to a check", FOR_CHECKS),
    ):
        with formatter.section(title):
            formatter.write_dl(list(meanings.items()))
    return formatter.getvalue()


def _exit_codes() -> str:
    formatter = _formatter()
    formatter.write_text(ABOUT_EXITS.replace("\n", " "))
    with formatter.section("Exit codes"):
        formatter.write_dl([(str(code), text) for code, text in EXIT_MEANINGS.items()])
    with formatter.section("Errors, as `error.code` with --json says them"):
        formatter.write_dl(
            [(f"{each.exit_code:>3} {code}", each.meaning) for code, each in error_codes().items()]
        )
    return formatter.getvalue()


TOPICS: dict[str, Callable[[], str]] = {
    "environment": _environment,
    "exit-codes": _exit_codes,
    "json": lambda: JSON,
}


def help_command(program: str) -> click.Command:
    """The command `help` of the program with this name."""

    @click.command(
        "help",
        cls=Verb,
        examples=(
            f"{program} help exit-codes",
            f"{program} help environment",
            f"{program} help json",
            f"{program} help {'claim' if program == 'inbox' else 'run init'}",
        ),
        help="Print what a topic or a command is about: environment, exit-codes, json, or the "
        "words of any command. Needs no database.",
    )
    @click.argument("words", nargs=-1, metavar="[TOPIC|COMMAND]")
    @click.pass_context
    def command(context: click.Context, words: tuple[str, ...]) -> None:
        text = _text(context.find_root(), words)
        output = shell_of(context).output
        if output.as_json:
            output.result({"help": text})
        else:
            output.text(text.rstrip("\n") + "\n")

    return command


def _text(root: click.Context, words: Sequence[str]) -> str:
    """The text about these words; error `not_found` with the nearest topic or command."""
    if len(words) == 1 and words[0] in TOPICS:
        return TOPICS[words[0]]()
    context = root
    for place, word in enumerate(words):
        group = context.command
        known = group.list_commands(context) if isinstance(group, click.Group) else []
        found = group.get_command(context, word) if isinstance(group, click.Group) else None
        if found is None:
            names = [*known, *(TOPICS if place == 0 else ())]
            raise not_found(
                "topic or command",
                printable(" ".join(words)),
                hint=did_you_mean(word, names, f"`{context.command_path} --help` lists them"),
            )
        context = click.Context(
            found, info_name=word, parent=context, terminal_width=80, max_content_width=80
        )
    return context.command.get_help(context)
