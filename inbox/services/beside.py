"""What `doctor` says of the files beside the database: those of the engine, and artifacts."""

import contextlib
import os
from collections.abc import Iterator

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.checks import (
    MOST_ITEMS,
    OK,
    PROBLEM,
    Check,
    listed,
    out_of_reach,
    repaired,
)
from inbox_orch.shared.store.findings import Tally

from ..store import care
from .desk import Desk

_DAY_MS = 24 * 3600 * 1000


def files(desk: Desk, stored: list[tuple[str, int]], *, verify: bool, fix: bool) -> Iterator[Check]:
    """Every check of the files; `stored` are (digest, bytes) of the contents that artifacts refer
    to. `verify` reads them whole, `fix` repairs what needs no guessing."""
    now = desk.database.now()
    yield from desk.database.admin.surroundings(fix=fix)
    yield _contents(desk, stored, verify)
    yield _unreferenced(desk)
    unreadable: list[OSError] = []
    unfinished = list(desk.artifacts.leftovers(now.wall_ms - _DAY_MS, unreadable.append))
    yield out_of_reach("unfinished_copies", unreadable) or repaired(
        "unfinished_copies",
        unfinished,
        os.unlink,
        fix,
        "no copy was left unfinished more than a day ago",
        "their commands died while copying",
    )
    yield from desk.database.admin.remains()


# -- artifacts -----------------------------------------------------------------------------


def _contents(desk: Desk, stored: list[tuple[str, int]], verify: bool) -> Check:
    wrong = {sha256: why for sha256, size in stored if (why := _defect(desk, sha256, size, verify))}
    if wrong:
        # What was pruned since the snapshot is not missed.
        with desk.database.snapshot() as snapshot:
            wrong = {s: why for s, why in wrong.items() if care.is_referenced(snapshot, s)}
    items = tuple(f"{sha256}: {why}" for sha256, why in list(wrong.items())[:MOST_ITEMS])
    extent = "are there and match their digests" if verify else "are there in full length"
    good = f"{len(stored)} contents {extent}"
    return listed("artifact_files", PROBLEM, Tally(items, len(wrong)), good)


def _defect(desk: Desk, sha256: str, size: int, verify: bool) -> str | None:
    try:
        actual = desk.artifacts.length(sha256)
        if actual is None:
            there = os.path.lexists(desk.artifacts.path(sha256))
            return "is no file of its own" if there else "is missing"
        if actual != size:
            return f"has {actual} bytes instead of {size}"
        if verify and _digest(desk, sha256) != sha256:
            return "its content has changed"
    except InboxOrchError as error:
        return "is missing" if error.code == "not_found" else f"cannot be read: {error.message}"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None


def _digest(desk: Desk, sha256: str) -> str:
    import hashlib

    with desk.artifacts.open(sha256) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unreferenced(desk: Desk) -> Check:
    count = size = 0
    unreadable: list[OSError] = []
    with desk.database.snapshot() as snapshot:
        for sha256, path in desk.artifacts.contents(unreadable.append):
            if not care.is_referenced(snapshot, sha256):
                with contextlib.suppress(FileNotFoundError):
                    size += os.lstat(path).st_size
                    count += 1
    text = f"{count} files of {size} bytes belong to no thread"
    text += "; `inbox prune` collects those that stay so" if count else ""
    good = Check("unreferenced_files", OK, text, total=count)
    return out_of_reach("unreferenced_files", unreadable) or good
