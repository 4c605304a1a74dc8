"""The commands and their options as click knows them, to test every one of a kind."""

from collections.abc import Iterator
from typing import NamedTuple

import click

from inbox_orch.inbox.cli import program
from inbox_orch.shared.shell.commandline import Number
from support.commands import ULID

NAMES = tuple(program.list_commands(click.Context(program)))


def leaves(group: click.Group = program, words: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command that does something, by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from leaves(command, (*words, name))
        else:
            yield " ".join((*words, name))


LEAVES = tuple(leaves())


def command_of(words: str) -> click.Command:
    """The command with these words."""
    command: click.Command | None = program
    for word in words.split():
        assert isinstance(command, click.Group)
        command = command.get_command(click.Context(command), word)
    assert command is not None
    return command


# What each command cannot do without, besides the option under test.
NEEDED: dict[str, tuple[str, ...]] = {
    "send": ("--to", "workers", "--subject", "s", "--agent", "leader"),
    "fetch": ("--agent", "w1"),
    "claim": ("--agent", "w1"),
    "renew": (ULID, "--token", "t"),
    "update": (ULID, "--token", "t", "--progress", "5"),
    "ask": (ULID, "--token", "t", "--body", "b"),
    "wait-reply": (ULID, "--token", "t", "--wait", "0"),
    "reply": (ULID, "--body", "b", "--agent", "leader"),
    "done": (ULID, "--token", "t"),
    "fail": (ULID, "--token", "t", "--body", "b"),
    "release": (ULID, "--token", "t"),
    "cancel": (ULID, "--agent", "leader"),
    "unseal": (ULID, "--agent", "leader"),
    "show": (ULID,),
    "watch": ("--wait", "0"),
    "work": ("--agent", "w1", "--idle-exit", "0"),
    "prune": ("--older-than", "1"),
    "schema": ("where",),
}
AFTERWARDS: dict[str, tuple[str, ...]] = {"work": ("--", "true")}


class Choice(NamedTuple):
    """An option or an argument of a command."""

    command: str
    parameter: click.Parameter

    def __str__(self) -> str:
        return f"{self.command} {self.parameter.opts[0]}"

    def given(self, value: str) -> list[str]:
        """A command line with this value; other needed arguments are plausible ones."""
        needed = list(NEEDED.get(self.command, ()))
        if isinstance(self.parameter, click.Argument):
            if needed and not needed[0].startswith("-"):
                del needed[0]
            before = [*self.command.split(), value, *needed]
        else:
            name = self.parameter.opts[0]
            if name in needed:
                at = needed.index(name)
                del needed[at : at + 2]
            before = [*self.command.split(), *needed, f"{name}={value}"]
        return [*before, *AFTERWARDS.get(self.command, ())]


def parameters() -> Iterator[Choice]:
    """Every option and argument that takes a value, of every command."""
    for name in LEAVES:
        for parameter in command_of(name).params:
            takes_value = not getattr(parameter, "is_flag", False) and parameter.nargs == 1
            if takes_value:
                yield Choice(name, parameter)


def numbers() -> list[Choice]:
    """Those that take a number."""
    return [choice for choice in parameters() if isinstance(choice.parameter.type, Number)]
