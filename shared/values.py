"""The types of the values that options and arguments take: numbers in a range, text, paths.

They know nothing of click; `value_types` makes click's types of them.
"""

import os
import re
from collections.abc import Sequence

from .errors import usage

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


class Number:
    """A number in a range; `whole` gives an int. `forever` also takes `inf`."""

    def __init__(
        self, low: float, high: float, *, whole: bool = False, forever: bool = False
    ) -> None:
        self.low, self.high, self.whole, self.forever = low, high, whole, forever

    def read(self, text: str, called: str | None) -> float | int:
        """The number; error `usage` with the option's name and the range."""
        if self.forever and text == "inf":
            return float("inf")
        number = parse_number(called or "number", text, self.low, self.high, whole=self.whole)
        return int(number) if self.whole else number


class Text:
    """Text, as the bytes that were typed, decoded as UTF-8: the type of every plain option.

    In a locale that is not UTF-8, Python decodes the command line by that locale; the bytes
    are what counts. Error `usage` with the offset of the first wrong byte.
    """

    def read(self, text: str, called: str | None) -> str:
        """The text."""
        content = os.fsencode(text)
        try:
            return content.decode("utf-8")
        except UnicodeDecodeError as error:
            raise usage(
                f"{called or 'the text'} is not UTF-8: "
                f"byte {error.start} is 0x{content[error.start]:02x}",
                hint="convert it to UTF-8; bytes of any kind go into a file for --attach",
                offset=error.start,
            ) from error


class FilePath:
    """The name of a file: whatever bytes the file system has."""

    def read(self, text: str, called: str | None) -> str:
        """The path; error `usage` for an empty one, which names nothing."""
        if not text:
            raise usage(f"{called or 'the path'} is empty", hint="a variable may not be set")
        return text


class Choice:
    """One of a few words."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = tuple(words)

    def read(self, text: str, called: str | None) -> str:
        """The word; error `usage` for any other one."""
        if text not in self.words:
            raise usage(f"{called or 'the word'} must be one of {', '.join(self.words)}")
        return text


TEXT = Text()
PATH = FilePath()
