"""The types of the values that options and arguments take: numbers in a range, text, paths.

They know nothing of click; `value_types` makes click's types of them.
"""

import os
import re
from collections.abc import Sequence

from ..errors import InboxOrchError, usage
from ..ids import check_named, plain_number

_NUMBER_PATTERN = r"[+-]?[0-9]{1,15}(\.[0-9]{1,9})?"
_PART = r"(?:([0-9]{1,15}(?:\.[0-9]{1,9})?)%s)?"
_UNITS = {"d": 86400, "h": 3600, "m": 60, "s": 1}
DURATIONS = "90s, 5m, 2h or 1h30m"
"""How a number of seconds may be given, besides as a number."""


def parse_number(name: str, text: str, low: float, high: float, *, whole: bool = False) -> float:
    """A plain decimal number in a range; error `usage`.

    Hexadecimal, underscores, exponents, NaN and infinity are not numbers here.
    """
    kind = "a whole number" if whole else "a number"
    matched = re.fullmatch(_NUMBER_PATTERN, text.strip())
    if matched is None or (whole and matched.group(1)) or not low <= float(text) <= high:
        limits = f"from {plain_number(low)} to {plain_number(high)}"
        raise usage(f"{name} must be {kind} {limits}, not {text[:40]!r}")
    return float(text)


def parse_seconds(name: str, text: str, low: float, high: float) -> float:
    """A number of seconds in a range, plain or with units like `1h30m`; error `usage`."""
    given = text.strip()
    seconds = float(given) if re.fullmatch(_NUMBER_PATTERN, given) else with_units(given)
    if seconds is None or not low <= seconds <= high:
        limits = f"from {plain_number(low)} to {plain_number(high)}"
        raise usage(
            f"{name} must be a number of seconds {limits}, or like {DURATIONS}, not {text[:40]!r}"
        )
    return seconds


def with_units(text: str) -> float | None:
    """The seconds of a duration like `90s`, `1h30m` or `1.5d`: days, hours, minutes and seconds in
    this order, any of them; None for any other text."""
    matched = re.fullmatch("".join(_PART % unit for unit in _UNITS), text)
    if matched is None or not text:
        return None
    counts = zip(matched.groups(), _UNITS.values(), strict=True)
    return sum(float(count) * unit for count, unit in counts if count is not None)


def given_again(called: str) -> InboxOrchError:
    """The error for a second value of an option that takes one: neither is taken for the one that
    was meant."""
    return usage(f"{called} is given more than once, and takes one value")


class Number:
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
        self.low, self.high, self.whole = low, high, whole
        self.seconds, self.forever = seconds, forever

    def read(self, text: str, called: str | None) -> float | int:
        """The number; error `usage` with the option's name and the range."""
        if self.forever and text == "inf":
            return float("inf")
        if self.seconds:
            return parse_seconds(called or "the time", text, self.low, self.high)
        number = parse_number(called or "number", text, self.low, self.high, whole=self.whole)
        return int(number) if self.whole else number


class Text:
    """Text, as the bytes that were typed, decoded as UTF-8. With `names` it names something, a run
    or a mailbox say, and an empty one is refused: so is every option that does not say otherwise.

    In a locale that is not UTF-8, Python decodes the command line by that locale; the bytes
    are what counts. Error `usage` with the offset of the first wrong byte. With `document` it is
    JSON, or names the file that has it.
    """

    def __init__(self, *, names: bool = False, document: bool = False) -> None:
        self.names, self.document = names, document

    def read(self, text: str, called: str | None) -> str:
        """The text."""
        if self.names:
            check_named(text, called or "the name")
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
        return check_named(text, called or "the path")


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
NAME = Text(names=True)
DOCUMENT = Text(names=True, document=True)
PATH = FilePath()
