"""Every option and argument that takes a value, of every command of both programs."""

from collections.abc import Iterator
from typing import NamedTuple

import click

from inbox_orch.inbox.cli import program as inbox
from inbox_orch.orch.cli import program as orch


class Taken(NamedTuple):
    """An option or an argument of a command."""

    program: str
    words: tuple[str, ...]
    parameter: click.Parameter

    def __str__(self) -> str:
        return " ".join((self.program, *self.words, self.called))

    @property
    def called(self) -> str:
        return self.parameter.opts[0]

    def given(self, *values: str) -> list[str]:
        if isinstance(self.parameter, click.Argument):
            return [*self.words, *values]
        return [*self.words, *(f"{self.called}={value}" for value in values)]


def taken(name: str, group: click.Group, words: tuple[str, ...] = ()) -> Iterator[Taken]:
    """Every parameter that takes a value, of every command."""
    yield from (Taken(name, words, each) for each in valued(group))
    context = click.Context(group)
    for word in group.list_commands(context):
        command = group.get_command(context, word)
        assert command is not None
        if isinstance(command, click.Group):
            yield from taken(name, command, (*words, word))
        else:
            yield from (Taken(name, (*words, word), each) for each in valued(command))


def valued(command: click.Command) -> Iterator[click.Parameter]:
    return (each for each in command.params if not getattr(each, "is_flag", False))


PROGRAMS = {"inbox": inbox, "orch": orch}
EVERY = [each for name, group in PROGRAMS.items() for each in taken(name, group)]
