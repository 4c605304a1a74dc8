"""The pairwise picture of what is being worked on: who will not merge with whom."""

from typing import Any, NamedTuple

from ..runs.model import Attempt, Run, Task


class Side(NamedTuple):
    """One attempt that is compared: the commit that it is at, what it has changed and not
    committed, and the commits that it brings (in no integration yet)."""

    task: Task
    attempt: Attempt
    head: str
    uncommitted: tuple[str, ...]
    brings: frozenset[str]

    @property
    def name(self) -> str:
        """The task's key and the attempt's number."""
        return f"{self.task.key}/{self.attempt.number}"

    def named(self) -> dict[str, Any]:
        """What tells which attempt it is."""
        return {
            "task": self.task.id,
            "key": self.task.key,
            "attempt": self.attempt.id,
            "number": self.attempt.number,
        }

    def as_json(self) -> dict[str, Any]:
        return {
            **self.named(),
            "state": self.attempt.state,
            "head": self.head,
            "uncommitted": list(self.uncommitted),
        }


class Pair(NamedTuple):
    """Two attempts (`other` None: one, and what was integrated) that do not merge, in `paths`, or
    that both have changed the files `overlap` without committing."""

    one: Side
    other: Side | None
    paths: tuple[str, ...]
    overlap: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "one": self.one.named(),
            "other": None if self.other is None else self.other.named(),
            "paths": list(self.paths),
            "overlap": list(self.overlap),
        }


class Conflicts(NamedTuple):
    """The picture of a run. Of `pairs` pairs, those with the integration included, `compared`
    were looked at. `stale`: what happened on the bus could not be folded in."""

    run: Run
    sides: tuple[Side, ...]
    items: tuple[Pair, ...]
    pairs: int
    compared: int
    integration: str | None
    stale: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "items": [pair.as_json() for pair in self.items],
            "truncated": self.compared < self.pairs,
            "next_cursor": None,
            "attempts": [side.as_json() for side in self.sides],
            "integration": self.integration,
            "pairs": self.pairs,
            "compared": self.compared,
            "stale": self.stale,
        }
