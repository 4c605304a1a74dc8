"""What a purge has found and done, place by place. Pure."""

from collections.abc import Iterable
from typing import Any, NamedTuple

FOUND, REMOVED, KEPT = "found", "removed", "kept"
MOST_ITEMS = 20

KINDS = (
    "rows",
    "names",
    "artifacts",
    "refs",
    "repository",
    "live_attempts",
    "worktree_branches",
    "your_refs",
    "commits",
    "unreachable_objects",
    "worktree",
    "trash",
    "files",
    "free_pages",
)
"""Of places; `rows`, `artifacts`, `refs`, `trash` and `free_pages` are taken care of."""

NOT_REACHED = {
    "remotes": "remotes, forks and other clones, and what was fetched from them",
    "backups": "backups and copies of the database, of the repository, of the disk",
    "agents": "what agents, terminals, shells and services have logged or sent",
    "disk": "bytes of removed files in free space of the disk",
    "encoded": "the value in another encoding (base64, say), or cut in two",
}
"""What no purge can look at."""


class Place(NamedTuple):
    """Where the values stand: what kind of place, its name, how many there are, what becomes of
    them (`found`: a purge takes it; `removed`; `kept`: it stays, and `reason` says why and what to
    do), and the first of them."""

    kind: str
    name: str
    number: int
    action: str
    reason: str | None = None
    items: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": self.kind,
            "name": self.name,
            "count": self.number,
            "action": self.action,
            "reason": self.reason,
            "items": list(self.items),
        }


class Purged(NamedTuple):
    """What came of it. `done`: it was taken out, and not only looked for. `commands` let git
    collect what nothing leads to any more."""

    done: bool
    values: int
    places: tuple[Place, ...]
    commands: tuple[str, ...]

    @property
    def left(self) -> tuple[Place, ...]:
        """The places that stay."""
        return tuple(place for place in self.places if place.action == KEPT)

    def as_json(self) -> dict[str, Any]:
        return {
            "done": self.done,
            "values": self.values,
            "items": [place.as_json() for place in self.places],
            "truncated": False,
            "next_cursor": None,
            "commands": list(self.commands),
            "not_reached": list(NOT_REACHED),
        }


def place(
    kind: str, name: str, items: Iterable[str], action: str, reason: str | None = None
) -> Place:
    """A place with the first of its items."""
    found = list(items)
    return Place(kind, name, len(found), action, reason, tuple(found[:MOST_ITEMS]))
