"""A check of `doctor`, and how one comes about from what was found."""

import errno
from collections.abc import Callable
from typing import Any, NamedTuple

from ..ids import printable
from .findings import Tally

MOST_ITEMS = 20
OK, WARNING, PROBLEM = "ok", "warning", "problem"


class Check(NamedTuple):
    """One thing that was looked at. `items` are the first of `total` findings; `fixable` says
    that `--fix` repairs them, `fixed` how many it has repaired."""

    name: str
    status: str
    text: str
    items: tuple[str, ...] = ()
    total: int = 0
    fixable: bool = False
    fixed: int = 0

    def as_json(self) -> dict[str, Any]:
        return self._asdict() | {"items": list(self.items)}


def listed(name: str, status: str, found: Tally, good: str) -> Check:
    """A check that has the `status` when anything was found, and says what is `good` otherwise."""
    if not found.total:
        return Check(name, OK, good)
    more = "" if found.total == len(found.items) else f", the first {len(found.items)} are listed"
    return Check(name, status, f"{found.total} found{more}", found.items, found.total)


def repaired(
    name: str, paths: list[str], repair: Callable[[str], None], fix: bool, good: str, bad: str
) -> Check:
    """A check of files that can be put right one by one."""
    if not paths:
        return Check(name, OK, good)
    left, fixed = [], 0
    for path in paths:
        try:
            if not fix:
                raise PermissionError(errno.EPERM, "not asked to")
            repair(path)
            fixed += 1
        except FileNotFoundError:
            fixed += 1
        except OSError:
            left.append(path)
    text = f"{len(paths)} found: {bad}" + (f"; {fixed} repaired" if fixed else "")
    status = WARNING if left else OK
    return Check(name, status, text, tuple(left[:MOST_ITEMS]), len(left), bool(left), fixed)


def out_of_reach(name: str, errors: list[OSError]) -> Check | None:
    """What could not be looked at, if there is any: nothing good can be said of the rest."""
    if not errors:
        return None
    items = tuple(f"{printable(str(e.filename), 4096)}: {e.strerror}" for e in errors[:MOST_ITEMS])
    return Check(name, PROBLEM, f"{len(errors)} cannot be looked at", items, len(errors))
