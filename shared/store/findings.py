"""What the checks of a store have found."""

from typing import NamedTuple


class Integrity(NamedTuple):
    """What SQLite's check found: damage of the file, and tables with values that break a rule."""

    damage: tuple[str, ...]
    tables: tuple[str, ...]


class Tally(NamedTuple):
    """The first few of something, and how many there are."""

    items: tuple[str, ...]
    total: int
