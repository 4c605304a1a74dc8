"""The types of `values` as click has types: they convert, and complete.

Re-exported by `commandline`, where commands take them from that are declared with click.
"""

from typing import TYPE_CHECKING, Any

import click

from ..errors import usage
from ..later import Later
from . import values
from .nearest import nearest

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


# Loaded when a shell completes.
_completion = Later("inbox_orch.shared.shell.completion")


class Number(values.Number, click.ParamType[float]):
    """A number in a range; `whole` gives an int. `seconds` takes units, too, `forever` `inf`."""

    def __init__(
        self,
        low: float,
        high: float,
        *,
        whole: bool = False,
        seconds: bool = False,
        forever: bool = False,
    ) -> None:
        super().__init__(low, high, whole=whole, seconds=seconds, forever=forever)
        self.name = "integer" if whole else "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | int:
        """The number; error `usage` with the option's name and the range."""
        return value if isinstance(value, (int, float)) else self.read(value, _called(param))


class Text(values.Text, click.ParamType[str]):
    """Text, as the bytes that were typed, decoded as UTF-8; with `names` it is not empty."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text; error `usage` with the offset of the first wrong byte."""
        return self.read(value, _called(param))

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list["CompletionItem"]:
        """The names in the database that begin so, as the program knows them; for a document the
        shell's own completion of files."""
        if self.document:
            return PATH.shell_complete(ctx, param, incomplete)
        found: list[CompletionItem] = _completion.suggestions(ctx, param, incomplete)
        return found


class FilePath(values.FilePath, click.ParamType[str]):
    """The name of a file: whatever bytes the file system has."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path; error `usage` for an empty one, which names nothing."""
        return self.read(str(value), _called(param))

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list["CompletionItem"]:
        """The shell's own completion of files."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


class Choice(click.Choice[str]):
    """One of a few words; the nearest of them is the hint for a wrong one."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The word; error `usage` with click's message."""
        try:
            return str(super().convert(value, param, ctx))
        except click.BadParameter as wrong:
            near = nearest(str(value), map(str, self.choices))
            if near is None:
                raise
            raise usage(wrong.format_message(), hint=f"did you mean {near}?") from wrong


TEXT = Text()
NAME = Text(names=True)
DOCUMENT = Text(names=True, document=True)
PATH = FilePath()


def for_click(kind: object) -> object:
    """Click's type for one of `values`; what click knows already stays."""
    if isinstance(kind, click.ParamType):
        return kind
    if isinstance(kind, values.Number):
        return Number(
            kind.low, kind.high, whole=kind.whole, seconds=kind.seconds, forever=kind.forever
        )
    if isinstance(kind, values.Choice):
        return Choice(kind.words)
    ours = {values.TEXT: TEXT, values.NAME: NAME, values.DOCUMENT: DOCUMENT, values.PATH: PATH}
    return ours.get(kind, kind)


def _called(parameter: click.Parameter | None) -> str | None:
    """As a caller knows it: the option, or the argument, of several the name of one."""
    if parameter is None or not parameter.opts:
        return None
    several = parameter.nargs == -1 and parameter.metavar
    return several.strip("[].") if several else parameter.opts[0]
