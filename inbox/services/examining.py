"""`doctor`: the state of the database file and of what lies beside it, check by check.

Reads as of one commit and changes nothing, unless it is asked to repair what needs no guessing.
No file of SQLite's is ever opened here: they are looked at by name only.
"""

import contextlib
import errno
import fcntl
import os
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from inbox_orch.migrations import SCHEMA_VERSION
from inbox_orch.shared import bells, database, events, refusals
from inbox_orch.shared.creating import UNSAFE_FILESYSTEMS, filesystem_type
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import printable
from inbox_orch.shared.layout import FOLDER_NAME, Layout

from ..store import care
from ..store.care import Tally
from . import verifying
from .desk import Desk

MOST_ITEMS = 20
OK, WARNING, PROBLEM = "ok", "warning", "problem"
_DAY_MS = 24 * 3600 * 1000
_MINUTE_MS = 60 * 1000
# The first release without the WAL-reset bug (sqlite.org/wal.html).
_RESET_FIXED = (3, 51, 3)


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


class Examined(NamedTuple):
    """What the doctor says. `newest_event` tells as of which commit."""

    path: str
    id: str
    verified: bool
    newest_event: int
    checks: tuple[Check, ...]

    @property
    def problems(self) -> int:
        """How many checks found a problem; with none the database is clean."""
        return sum(check.status == PROBLEM for check in self.checks)

    def as_json(self) -> dict[str, Any]:
        return {
            "path": self.path,
            "id": self.id,
            "verified": self.verified,
            "newest_event": str(self.newest_event),
            "items": [check.as_json() for check in self.checks],
            "truncated": False,
            "next_cursor": None,
            "problems": self.problems,
            "warnings": sum(check.status == WARNING for check in self.checks),
        }


def examine(desk: Desk, *, verify: bool, fix: bool) -> Examined:
    """Every check, in the order in which they are shown. Error `corrupt`."""
    layout = desk.database.layout
    if fix and desk.database.in_transaction:
        raise usage("repairs cannot be made inside a transaction")
    with recovery_hint(layout):
        with desk.database.snapshot() as connection:
            newest = events.latest(connection)
            structure = list(_structure(connection, layout, verify))
            checks = [_sqlite(), *structure]
            checks += _standing(desk, connection)
            if verify:
                readable = all(check.status == OK for check in structure)
                checks += _verification(connection, readable)
            stored = list(care.contents(connection))
        checks += _files(desk, stored, verify=verify, fix=fix)
    return Examined(layout.database, desk.database.id, verify, newest, tuple(checks))


# -- the file itself -----------------------------------------------------------------------


def _sqlite() -> Check:
    text = f"SQLite {sqlite3.sqlite_version}"
    if sqlite3.sqlite_version_info < _RESET_FIXED:
        text += (
            "; it has the WAL-reset bug, which cannot strike here: every checkpoint waits"
            " behind the gate"
        )
    return Check("sqlite", OK, text)


def _structure(connection: sqlite3.Connection, layout: Layout, whole: bool) -> Iterator[Check]:
    found = care.integrity(connection, whole=whole)
    if found.damage:
        raise InboxOrchError(
            "corrupt",
            f"{layout.database} is damaged: {found.damage[0]}",
            hint="`inbox export` reads out what it can; `inbox backup` made the copy to go back to",
            details={"path": layout.database, "findings": list(found.damage)},
        )
    extent = "the whole file" if whole else "the file, without comparing indexes with tables"
    yield Check("integrity", OK, f"SQLite checked {extent}")
    yield _unreadable(connection, found.tables, whole)
    references = care.broken_references(connection, MOST_ITEMS)
    yield _listed("foreign_keys", PROBLEM, references, "every reference leads to a row")
    yield _schema(connection)


def _unreadable(connection: sqlite3.Connection, tables: Iterable[str], whole: bool) -> Check:
    with care.lenient(connection):
        tallies = [care.broken_json(connection, MOST_ITEMS)]
        tallies += [care.breaking_rules(connection, table, MOST_ITEMS) for table in tables]
        if whole:
            tallies.append(care.undecodable(connection, MOST_ITEMS))
    items = tuple(item for tally in tallies for item in tally.items)
    found = Tally(items[:MOST_ITEMS], sum(tally.total for tally in tallies))
    fine = "every row keeps the rules" + (
        ", and its text can be read" if whole else "; --verify also reads the text of each"
    )
    return _listed("rows", PROBLEM, found, fine)


def _schema(connection: sqlite3.Connection) -> Check:
    """The version, and whether every table, index and trigger is as the steps make it."""
    # Loaded here, since every command of the scheduler loads this module, and none needs it.
    from inbox_orch.migrations.apply import fresh_schema

    version = care.schema_version(connection)
    expected, actual = fresh_schema(version), care.schema_objects(connection)
    differing = [
        f"{kind} {name}: {_how_it_differs(expected.get((kind, name)), actual.get((kind, name)))}"
        for kind, name in sorted(expected.keys() | actual.keys())
        if expected.get((kind, name)) != actual.get((kind, name))
    ]
    found = Tally(tuple(differing[:MOST_ITEMS]), len(differing))
    good = f"version {version}, as this release makes it"
    if version < SCHEMA_VERSION:
        good = (
            f"version {version}, as an older release makes it; the first command that writes "
            f"brings it to {SCHEMA_VERSION}, and `inbox backup FILE` keeps it as it is"
        )
    return _listed("schema", PROBLEM, found, good)


def _how_it_differs(expected: str | None, actual: str | None) -> str:
    if actual is None:
        return "is missing"
    return "does not belong here" if expected is None else "is defined differently"


# -- what is unfinished --------------------------------------------------------------------


def _standing(desk: Desk, connection: sqlite3.Connection) -> Iterator[Check]:
    now = care.standing(connection, desk.database.clock.now())
    text = f"{now.live_leases} live"
    if now.expired_leases:
        text += (
            f", {now.expired_leases} of them expired and not noticed yet"
            f" ({now.expired_without_renewal} never renewed); the next claim or wait offers"
            " those threads again"
        )
    yield Check("leases", WARNING if now.expired_leases else OK, text, total=now.expired_leases)
    text = f"{now.delayed} threads wait for their time"
    if now.delayed_due:
        text += f"; for {now.delayed_due} it has come, and the next claim takes them in"
    yield Check("delayed", OK, text, total=now.delayed)
    overdue = now.overdue_questions
    text = f"{overdue} past their deadline and not noticed yet" if overdue else "none is overdue"
    yield Check("questions", WARNING if overdue else OK, text, total=overdue)


def _verification(connection: sqlite3.Connection, readable: bool) -> Iterator[Check]:
    with contextlib.nullcontext() if readable else care.lenient(connection):
        findings = verifying.verify(connection, MOST_ITEMS)
    counted = f"{findings.events} events of {findings.threads} threads"
    good = {
        "events": f"{counted} follow the table of transitions",
        "threads": "state, epoch, deliveries and holder are what the events say",
        "leases": "owner, epoch and end are what the events say",
        "messages": "bodies match their digests and lengths",
        "artifacts": "names, digests and lengths are what the events say",
    }
    for topic in verifying.TOPICS:
        yield _listed(f"log_{topic}", PROBLEM, findings.of(topic), good[topic])


# -- what lies beside it -------------------------------------------------------------------


def _files(
    desk: Desk, stored: list[tuple[str, int]], *, verify: bool, fix: bool
) -> Iterator[Check]:
    layout, now = desk.database.layout, desk.database.clock.now()
    yield _journal(desk, fix)
    yield _modes(layout, fix)
    yield _filesystem(layout)
    yield _log(layout)
    yield _gate(layout)
    silent = list(bells.dead(layout.bells, now.wall_ms - _MINUTE_MS))
    yield _repaired(
        "bells", silent, bells.clear_away, fix, "no bell of a dead process", "nobody hears them"
    )
    yield _contents(desk, stored, verify)
    yield _unreferenced(desk)
    unreadable: list[OSError] = []
    unfinished = list(desk.artifacts.leftovers(now.wall_ms - _DAY_MS, unreadable.append))
    yield _out_of_reach("unfinished_copies", unreadable) or _repaired(
        "unfinished_copies",
        unfinished,
        os.unlink,
        fix,
        "no copy was left unfinished more than a day ago",
        "their commands died while copying",
    )
    yield _orphans(layout)


def _journal(desk: Desk, fix: bool) -> Check:
    """A database that was put together by other means may lack the write-ahead log."""
    mode = care.journal_mode(desk.database.connection)
    if mode == "wal":
        return Check("journal", OK, "write-ahead log")
    if fix:
        with desk.database.unshared() as connection:
            care.use_write_ahead_log(connection)
        return Check("journal", OK, f"was {mode}, is the write-ahead log now", fixed=1)
    text = f"is {mode}, not the write-ahead log: readers and writers hold each other up"
    return Check("journal", PROBLEM, text, total=1, fixable=True)


def _modes(layout: Layout, fix: bool) -> Check:
    loose = list(_loose_files(layout))
    return _repaired("modes", loose, _tighten, fix, "ours alone", "others may use them")


def _loose_files(layout: Layout) -> Iterator[str]:
    """Our files and folders that others may read or write, or that are somebody else's."""
    folder = os.path.dirname(layout.database)
    paths = [layout.database, layout.wal, layout.shm, layout.gate, layout.artifacts, layout.bells]
    if os.path.basename(folder) == FOLDER_NAME:
        paths.insert(0, folder)
    owner = os.stat(layout.database).st_uid
    for path in paths:
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(path)
            if status.st_mode & 0o077 or status.st_uid != owner:
                yield path


def _tighten(path: str) -> None:
    """By its name: a descriptor of a database file, once closed, would drop SQLite's locks."""
    status = os.lstat(path)
    if stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid():
        raise PermissionError(errno.EPERM, "not a file of one's own")
    os.chmod(path, stat.S_IMODE(status.st_mode) & 0o700)


def _filesystem(layout: Layout) -> Check:
    kind = filesystem_type(layout.database)
    if kind is not None and (kind in UNSAFE_FILESYSTEMS or kind.startswith("fuse")):
        return Check("filesystem", WARNING, f"{kind}: a write-ahead log is not safe on it")
    return Check("filesystem", OK, kind or "its type cannot be told here")


def _log(layout: Layout) -> Check:
    try:
        size = os.stat(layout.wal).st_size
    except FileNotFoundError:
        size = 0
    reader = refusals.oldest_reader(layout)
    text = f"the write-ahead log has {size} bytes; oldest reader: {reader or 'none'}"
    return Check("log", WARNING if size > database.TRUNCATE_BYTES else OK, text, total=size)


def _gate(layout: Layout) -> Check:
    """Asked for a shared lock without waiting: refused means that somebody is writing now."""
    try:
        descriptor = os.open(layout.gate, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return Check("gate", OK, "not made yet; the next writer makes it")
    except OSError as error:
        return Check("gate", PROBLEM, f"{layout.gate} cannot be opened: {error.strerror}")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno != errno.EWOULDBLOCK:
            return Check("gate", PROBLEM, f"{layout.gate} cannot be locked: {error.strerror}")
        return Check("gate", OK, "a writer holds it now")
    finally:
        os.close(descriptor)
    return Check("gate", OK, "free")


def _orphans(layout: Layout) -> Check:
    folder, name = os.path.split(layout.database)
    found = sorted(
        os.path.join(folder, other)
        for other in os.listdir(folder)
        if other.startswith((f"{name}-wal.orphan-", f"{name}-shm.orphan-"))
    )
    good = "no log of a removed database lies here"
    text = "logs of a database that was removed; remove them when nobody misses its last changes"
    check = _listed("orphans", WARNING, Tally(tuple(found[:MOST_ITEMS]), len(found)), good)
    return check if not found else check._replace(text=f"{len(found)} {text}")


# -- artifacts -----------------------------------------------------------------------------


def _contents(desk: Desk, stored: list[tuple[str, int]], verify: bool) -> Check:
    wrong = {sha256: why for sha256, size in stored if (why := _defect(desk, sha256, size, verify))}
    if wrong:
        # What was pruned since the snapshot is not missed.
        with desk.database.snapshot() as connection:
            wrong = {s: why for s, why in wrong.items() if care.is_referenced(connection, s)}
    items = tuple(f"{sha256}: {why}" for sha256, why in list(wrong.items())[:MOST_ITEMS])
    extent = "are there and match their digests" if verify else "are there in full length"
    good = f"{len(stored)} contents {extent}"
    return _listed("artifact_files", PROBLEM, Tally(items, len(wrong)), good)


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
    with desk.database.snapshot() as connection:
        for sha256, path in desk.artifacts.contents(unreadable.append):
            if not care.is_referenced(connection, sha256):
                with contextlib.suppress(FileNotFoundError):
                    size += os.lstat(path).st_size
                    count += 1
    text = f"{count} files of {size} bytes belong to no thread"
    text += "; `inbox prune` collects those that stay so" if count else ""
    good = Check("unreferenced_files", OK, text, total=count)
    return _out_of_reach("unreferenced_files", unreadable) or good


def _out_of_reach(name: str, errors: list[OSError]) -> Check | None:
    """What could not be looked at, if there is any: nothing good can be said of the rest."""
    if not errors:
        return None
    items = tuple(f"{printable(str(e.filename), 4096)}: {e.strerror}" for e in errors[:MOST_ITEMS])
    return Check(name, PROBLEM, f"{len(errors)} cannot be looked at", items, len(errors))


# -- how a check comes about ---------------------------------------------------------------


def _listed(name: str, status: str, found: Tally, good: str) -> Check:
    if not found.total:
        return Check(name, OK, good)
    more = "" if found.total == len(found.items) else f", the first {len(found.items)} are listed"
    return Check(name, status, f"{found.total} found{more}", found.items, found.total)


def _repaired(
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


@contextlib.contextmanager
def recovery_hint(layout: Layout | None) -> Iterator[None]:
    """Say of a damaged file how everything readable is got out of it."""
    try:
        yield
    except InboxOrchError as error:
        if error.code == "corrupt":
            path = layout.database if layout is not None else str(error.details.get("path"))
            error.hint = _how_to_recover(path)
            error.details.setdefault("findings", [error.message])
        raise


def _how_to_recover(path: str) -> str:
    return (
        "nothing was written. Stop what uses it, leave the folder as it is, and read out what"
        f" can be read: sqlite3 '{path}' .recover > recovered.sql (.dump where that sqlite3 has"
        " no .recover); then: sqlite3 recovered.db < recovered.sql; sqlite3 recovered.db"
        " 'PRAGMA journal_mode=WAL'; inbox doctor --verify --db recovered.db. Never copy the"
        " file itself with cp: its newest changes lie in the -wal beside it"
    )
