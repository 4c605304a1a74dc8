"""What the checks of a store have found."""

from typing import NamedTuple


class Integrity(NamedTuple):
    """What an engine's own check found: damage of the store, and tables with values that break a
    rule; and who has checked it."""

    damage: tuple[str, ...]
    tables: tuple[str, ...]
    by: str


class Tally(NamedTuple):
    """The first few of something, and how many there are."""

    items: tuple[str, ...]
    total: int
