"""A note beside the index of our own in a worktree's admin folder: which tree it had when that was
last taken, and what both indexes were then, by the sums that git writes at their ends.

It may be lost; nothing is believed of it unless both sums are still the same.
"""

import contextlib
import os
from typing import NamedTuple

_NOTE = "inbox-orch-raw-tree"
_SUM_BYTES = 20
"""At the end of an index; of a longer sum a part that tells as much."""


class Taken(NamedTuple):
    """`theirs` and `ours` are the sums of the worktree's own index and of ours."""

    theirs: str
    ours: str
    tree: str


def sum_of(path: str) -> str | None:
    """The sum at the end of an index, None where there is none (git-config(1), index.skipHash)."""
    try:
        with open(path, "rb") as file:
            file.seek(-_SUM_BYTES, os.SEEK_END)
            found = file.read()
    except OSError:
        return None
    return found.hex() if len(found) == _SUM_BYTES and any(found) else None


def write(own: str, taken: Taken) -> None:
    """Where that fails, there is no note."""
    path = os.path.join(own, _NOTE)
    new = f"{path}.new"
    try:
        with open(new, "w", encoding="ascii") as file:
            file.write(" ".join(taken))
        os.replace(new, path)
    except OSError:
        for each in (new, path):
            with contextlib.suppress(OSError):
                os.unlink(each)


def read(own: str) -> Taken | None:
    """The note, if one can be read."""
    try:
        with open(os.path.join(own, _NOTE), encoding="ascii", errors="replace") as file:
            words = file.read(1000).split(" ")
    except OSError:
        return None
    return Taken(*words) if len(words) == len(Taken._fields) else None


def forget(own: str) -> None:
    """From now on there is none."""
    with contextlib.suppress(OSError):
        os.unlink(os.path.join(own, _NOTE))
