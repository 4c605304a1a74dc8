"""The types of the values that options and arguments take: numbers in a range, text, paths.

Re-exported by `commandline`, where commands take them from.
"""

import os
import re
from typing import TYPE_CHECKING, Any

import click

from .errors import usage

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_NUMBER_PATTERN = r"[+-]?[0-9]{1,15}(\.[0-9]{1,9})?"


def parse_number(name: str, text: str, low: float, high: float, *, whole: bool = False) -> float:
    """A plain decimal number in a range; error `usage`.

    Hexadecimal, underscores, exponents, NaN and infinity are not numbers here.
    """
    kind = "a whole number" if whole else "a number"
    matched = re.fullmatch(_NUMBER_PATTERN, text.strip())
    if matched is None or (whole and matched.group(1)) or not low <= float(text) <= high:
        raise usage(f"{name} must be {kind} from {low:g} to {high:g}, not {text[:40]!r}")
    return float(text)


class Number(click.ParamType[float]):
    """A number in a range; `whole` gives an int. `forever` also takes `inf`."""

    def __init__(
        self, low: float, high: float, *, whole: bool = False, forever: bool = False
    ) -> None:
        self.name = "integer" if whole else "number"
        self.low, self.high, self.whole, self.forever = low, high, whole, forever

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float | int:
        """The number; error `usage` with the option's name and the range."""
        if isinstance(value, (int, float)):
            return value
        if self.forever and value == "inf":
            return float("inf")
        name = param.opts[0] if param is not None and param.opts else "number"
        number = parse_number(name, value, self.low, self.high, whole=self.whole)
        return int(number) if self.whole else number


class Text(click.ParamType[str]):
    """Text, as the bytes that were typed, decoded as UTF-8: the type of every plain option.

    In a locale that is not UTF-8, Python decodes the command line by that locale; the bytes
    are what counts. Error `usage` with the offset of the first wrong byte.
    """

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text."""
        content = os.fsencode(value)
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            name = param.opts[0] if param is not None and param.opts else "the text"
            raise usage(
                f"{name} is not UTF-8: byte {error.start} is 0x{content[error.start]:02x}",
                hint="convert it to UTF-8; bytes of any kind go into a file for --attach",
                offset=error.start,
            ) from error

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list["CompletionItem"]:
        """The names in the database that begin so, as the program knows them."""
        from .completion import suggestions

        return suggestions(ctx, param, incomplete)


class FilePath(click.ParamType[str]):
    """The name of a file: whatever bytes the file system has."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The path; error `usage` for an empty one, which names nothing."""
        if not value:
            name = param.opts[0] if param is not None and param.opts else "the path"
            raise usage(f"{name} is empty", hint="a variable may not be set")
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list["CompletionItem"]:
        """The shell's own completion of files."""
        from click.shell_completion import CompletionItem

        return [CompletionItem(incomplete, type="file")]


TEXT = Text()
PATH = FilePath()
