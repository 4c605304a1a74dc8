"""What a command takes, written down as data: `quick` reads plain command lines by it, and
click's command is made from it for everything else, help and errors among it.

The decorators look like click's, take what click's take, and load nothing.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ..errors import InboxOrchError
from ..later import Later
from .output import Output
from .shell import Context as Context
from .shell import shell_of as shell_of
from .values import DOCUMENT as DOCUMENT
from .values import NAME as NAME
from .values import PATH as PATH
from .values import TEXT as TEXT
from .values import Choice as Choice
from .values import Number as Number

if TYPE_CHECKING:
    import click

Function = TypeVar("Function", bound=Callable[..., Any])
# What a command whose errors may pass does about one: it raises it again, or has said it.
Lenient = Callable[[Output, InboxOrchError], None]
# The examples that are shown first in a command's help, and its text, None for the function's own.
Help = tuple[Sequence[str], str | None]


class Parameter:
    """An option or an argument: its names and keywords, as click takes them."""

    def __init__(self, kind: str, names: Sequence[str], keywords: Mapping[str, Any]) -> None:
        self.kind, self.names, self.keywords = kind, tuple(names), dict(keywords)


COMMON = {
    "json": Parameter(
        "option", ("--json",), {"is_flag": True, "is_eager": True, "help": "Print one JSON value."}
    ),
    "database": Parameter(
        "option",
        ("--db",),
        {"type": PATH, "metavar": "PATH", "help": "The database file.  [env: INBOX_DB]"},
    ),
    "database_id": Parameter(
        "option",
        ("--db-id",),
        {"metavar": "ID", "help": "Refuse any other database.  [env: INBOX_DB_ID]"},
    ),
    "agent": Parameter(
        "option", ("--agent",), {"metavar": "NAME", "help": "Who is acting.  [env: INBOX_AGENT]"}
    ),
}
"""The options of every command, by the field of the shell that each is kept in."""


def common(*, agent: bool) -> dict[str, Parameter]:
    """Those of `COMMON` that a command has."""
    return {field: each for field, each in COMMON.items() if agent or field != "agent"}


# A command that has been declared, and how many words it took to name it.
Find = Callable[[Sequence[str]], "tuple[Declared, int] | None"]
# Loaded for click alone.
_commandline = Later("inbox_orch.shared.shell.commandline")


class Declared:
    """A command: its function, and what it takes, in order."""

    def __init__(
        self,
        name: str,
        function: Callable[..., None],
        parameters: Sequence[Parameter],
        *,
        agent: bool,
        help: Help,
        lenient: Lenient | None,
    ) -> None:
        self.name, self.function, self.parameters = name, function, tuple(parameters)
        self.agent, self.lenient = agent, lenient
        self.examples, self.text = help

    def for_click(self) -> "click.Command":
        """This command as an object of click's."""
        import click

        function: Any = click.pass_context(self.function)
        for parameter in reversed(self.parameters):
            declare = getattr(click, parameter.kind)
            function = declare(*parameter.names, **clicks_keywords(parameter))(function)
        more = {} if self.text is None else {"help": self.text}
        made: Any = click.command(
            self.name, cls=_commandline.Verb, agent=self.agent, examples=self.examples, **more
        )
        command: click.Command = made(function)
        return command


def clicks_keywords(parameter: Parameter) -> dict[str, Any]:
    """The keywords of a parameter with click's type in the place of ours."""
    from .value_types import for_click

    types = {"type": for_click(parameter.keywords["type"])} if "type" in parameter.keywords else {}
    return {**parameter.keywords, **types}


def verb(
    name: str,
    *,
    agent: bool = False,
    examples: Sequence[str] = (),
    text: str | None = None,
    lenient: Lenient | None = None,
) -> Callable[[Callable[..., None]], Declared]:
    """The function, which gets a context first, becomes a command. `agent=True` gives it --agent;
    `examples` are shown first in its help, which is `text` or the function's own."""

    def declare(function: Callable[..., None]) -> Declared:
        return Declared(
            name,
            function,
            _of(function)[::-1],
            agent=agent,
            help=(examples, text),
            lenient=lenient,
        )

    return declare


def option(*names: str, **keywords: Any) -> Callable[[Function], Function]:
    """An option of the command, with click's keywords."""
    return _taking(Parameter("option", names, keywords))


def argument(*names: str, **keywords: Any) -> Callable[[Function], Function]:
    """An argument of the command, with click's keywords."""
    return _taking(Parameter("argument", names, keywords))


def _taking(parameter: Parameter) -> Callable[[Function], Function]:
    def declare(function: Function) -> Function:
        _of(function).append(parameter)
        return function

    return declare


def _of(function: Callable[..., Any]) -> list[Parameter]:
    """What has been declared of a function so far, the last parameter first."""
    found: list[Parameter] = function.__dict__.setdefault("declared_parameters", [])
    return found
