"""`prune`: what old threads carry is removed, batch by batch, so that no writer is held up.

The order keeps a crash harmless: what refers to a file goes first, with the commit; the file
itself goes afterwards, behind the gate and only if nothing refers to it then. So a file may be
left over, and is collected later, but is never missed.
"""

import os
import stat
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, NamedTuple

from inbox_orch.shared.errors import usage
from inbox_orch.shared.ids import printable
from inbox_orch.shared.store import kept_files
from inbox_orch.shared.store.engine import Session, Transaction

from ..domain import limits
from ..store import care, pruning
from ..store.pruning import Removal
from .desk import SYSTEM, Desk

THREADS_AT_ONCE = 200
FILES_AT_ONCE = 200
_MOST_NAMED = 20
_FROM_THE_START = (-(1 << 62), 0)
_DAY_MS = 24 * 3600 * 1000
# A copy without a thread may be one whose command is just about to commit.
_UNREFERENCED_AGE_MS = 3600 * 1000
MOST_DAYS = 36_500.0


class Pruned(NamedTuple):
    """What was removed, or with `dry_run` would be. `body_bytes` counts payloads, too;
    `files` and `file_bytes` are contents that no thread refers to any more, `leftovers` copies
    that were never finished. `unread_threads` were kept, since their openers have not
    fetched all that was written on them; `unread` are the first of these."""

    dry_run: bool
    threads: int
    messages: int
    body_bytes: int
    artifacts: int
    keys: int
    files: int
    file_bytes: int
    leftovers: int
    unread_threads: int = 0
    unread: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return self._asdict() | {"unread": list(self.unread)}


def prune(
    desk: Desk,
    older_than_days: float,
    *,
    dry_run: bool = False,
    unread: bool = False,
    agent: str | None = None,
) -> Pruned:
    """Remove bodies, payloads, artifacts and keys of threads that have been final for at least
    `older_than_days`; rows and events stay, marked. `dry_run` only counts.

    A thread stays whole while its opener has not fetched what others wrote on it; `unread`
    prunes these, too. What was written on a pruned thread later goes the next time; keys that
    belong to no thread go when they themselves are that old.
    Errors: `usage` (also inside a transaction), and those of every write.
    """
    limits.check_number("older-than", older_than_days, 0, MOST_DAYS)
    if desk.database.in_transaction:
        raise usage("pruning takes several commits and cannot be done inside a transaction")
    actor = agent or desk.agent or SYSTEM
    age_ms = int(older_than_days * _DAY_MS)
    if dry_run:
        return _forecast(desk, age_ms, unread)
    before = desk.now_ms - age_ms
    total = Removal(0, 0, 0, _prune_keys(desk, before))
    threads = files = file_bytes = 0
    for removals in _batches(desk, before, unread, actor):
        contents = dict.fromkeys(sha256 for r in removals for sha256 in r.contents)
        number, size = collect(desk, contents)
        threads, files, file_bytes = threads + len(removals), files + number, file_bytes + size
        for removal in removals:
            total = total.plus(removal)
    number, size = collect(desk, _let_go(desk, before))
    files, file_bytes = files + number, file_bytes + size
    number, size = collect(desk, _unreferenced(desk), _UNREFERENCED_AGE_MS)
    return Pruned(
        False,
        threads,
        total.messages,
        total.body_bytes,
        total.artifacts,
        total.keys,
        files + number,
        file_bytes + size,
        _remove_leftovers(desk),
        *_kept(desk, before),
    )


def _kept(desk: Desk, before_ms: int) -> tuple[int, tuple[str, ...]]:
    with desk.database.snapshot() as snapshot:
        number, first = pruning.unread_of(snapshot, before_ms, _MOST_NAMED)
    return number, tuple(first)


# -- rows ----------------------------------------------------------------------------------


def _prune_keys(desk: Desk, before_ms: int) -> int:
    with desk.database.transaction() as tx:
        return pruning.remove_old_keys(tx, before_ms)


def _let_go(desk: Desk, before_ms: int) -> list[str]:
    """Files without a thread whose owners have been over since before then."""
    with desk.database.snapshot() as snapshot:
        if not kept_files.any_over(snapshot, before_ms):
            return []
    with desk.database.transaction() as tx:
        return kept_files.let_go(tx, before_ms)


def _batches(desk: Desk, before_ms: int, unread: bool, actor: str) -> Iterator[list[Removal]]:
    """What was removed from the threads that are due, then from those that were pruned before."""
    place: pruning.Place | None = _FROM_THE_START
    while place is not None:
        with desk.database.transaction() as tx:
            due, place = pruning.due(tx, before_ms, THREADS_AT_ONCE, after=place, unread=unread)
            removals = [_prune_thread(desk, tx, t, actor) for t in due]
        yield removals
    with desk.database.snapshot() as snapshot:
        again = iter(pruning.written_later(snapshot, before_ms, unread=unread))
    while batch := list(islice(again, THREADS_AT_ONCE)):
        with desk.database.transaction() as tx:
            # Something may have been written since.
            due = [t for t in batch if unread or not pruning.has_unread(tx, t)]
            removals = [_prune_thread(desk, tx, t, actor) for t in due]
        yield removals


def _prune_thread(desk: Desk, tx: Transaction, thread_id: str, actor: str) -> Removal:
    removal = pruning.empty_thread(tx, thread_id)
    thread = desk.thread_now(tx, thread_id)
    desk.record(
        tx,
        "thread_pruned",
        thread,
        actor=actor,
        data={
            "from": thread.state,
            "messages": removal.messages,
            "body_bytes": removal.body_bytes,
            "artifacts_pruned": removal.artifacts,
            "keys": removal.keys,
        },
    )
    return removal


def _forecast(desk: Desk, age_ms: int, unread: bool) -> Pruned:
    now = desk.database.now().wall_ms
    with desk.database.snapshot() as snapshot:
        expected = pruning.forecast(snapshot, now - age_ms, unread=unread)
        over = kept_files.to_let_go(snapshot, now - age_ms)
        over = [sha256 for sha256 in over if not care.is_named(snapshot, sha256)]
    number = size = 0
    looked: list[tuple[str, int | None]] = [(sha256, None) for sha256 in over]
    looked += [(sha256, now - _UNREFERENCED_AGE_MS) for sha256 in _unreferenced(desk)]
    for sha256, latest in looked:
        length = _size_of_old(desk.artifacts.path(sha256), latest)
        if length is not None:
            number, size = number + 1, size + length
    return Pruned(
        True,
        expected.threads,
        expected.messages,
        expected.body_bytes,
        expected.artifacts,
        expected.keys,
        expected.files + number,
        expected.file_bytes + size,
        sum(1 for _ in _leftovers(desk, now)),
        *((0, ()) if unread else _kept(desk, now - age_ms)),
    )


# -- files ---------------------------------------------------------------------------------


def _unreferenced(desk: Desk) -> Iterator[str]:
    """Digests in the folder that no thread refers to at the moment."""
    contents = desk.artifacts.contents(lambda error: _stays(desk, error))
    while batch := list(islice(contents, FILES_AT_ONCE)):
        with desk.database.snapshot() as snapshot:
            found = [s for s, _ in batch if not care.is_referenced(snapshot, s)]
        yield from found


def collect(desk: Desk, contents: Iterable[str], age_ms: int = 0) -> tuple[int, int]:
    """Remove the files of these digests that nothing refers to, some at a time; returns how many,
    and bytes. What was written in the last `age_ms` stays."""
    number = size = 0
    waiting = iter(contents)
    while batch := list(islice(waiting, FILES_AT_ONCE)):
        latest = desk.database.now().wall_ms - age_ms if age_ms else None
        with desk.database.unshared() as session:
            for sha256 in batch:
                freed = _remove_content(desk, session, sha256, latest)
                number, size = number + (freed is not None), size + (freed or 0)
    return number, size


def _remove_content(desk: Desk, tx: Session, sha256: str, latest_ms: int | None) -> int | None:
    """Behind the gate no process can begin to refer to it: `write_artifacts` looks behind the gate
    whether the file is there. Returns its length, None when it stays."""
    if care.is_referenced(tx, sha256):
        return None
    path = desk.artifacts.path(sha256)
    length = _size_of_old(path, latest_ms)
    return length if length is not None and _unlinked(desk, path) else None


def _unlinked(desk: Desk, path: str) -> bool:
    """Whether a file is gone now."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return True
    except OSError as error:
        _stays(desk, error)
        return False
    return True


def _stays(desk: Desk, error: OSError) -> None:
    """What cannot be looked at or removed must not keep the rest from being collected."""
    desk.database.notice(f"{printable(str(error.filename), 4096)} stays: {error.strerror}")


def _size_of_old(path: str, latest_ms: int | None) -> int | None:
    """The length of a file, or of a link, last written before then; None when it is newer, gone,
    something else or out of reach, or its folder is a link."""
    if os.path.islink(os.path.dirname(path)):
        return None
    try:
        status = os.lstat(path)
    except OSError:
        return None  # what cannot be looked at is told where it is listed
    if stat.S_ISDIR(status.st_mode):
        return None
    young = latest_ms is not None and status.st_mtime_ns // 1_000_000 > latest_ms
    return None if young else status.st_size


def _leftovers(desk: Desk, now_ms: int) -> Iterator[str]:
    return desk.artifacts.leftovers(now_ms - _DAY_MS, lambda error: _stays(desk, error))


def _remove_leftovers(desk: Desk) -> int:
    now_ms = desk.database.now().wall_ms
    return sum(_unlinked(desk, path) for path in _leftovers(desk, now_ms))
