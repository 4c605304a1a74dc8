"""`backup` and `export`: getting everything out of a database that others go on using."""

import contextlib
import errno
import hashlib
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from inbox_orch.shared.clock import Moment
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import printable
from inbox_orch.shared.processes import processes
from inbox_orch.shared.store import events
from inbox_orch.shared.store.artifacts import ArtifactStore
from inbox_orch.shared.store.engine import Session
from inbox_orch.shared.store.folders import file_failure, refuse_links, sync_folder
from inbox_orch.shared.store.layout import Layout, layout_of

from ..store import care, copies
from .desk import Desk

_PART = ".part"
_FOREIGN_MS = 24 * 3600 * 1000
_LOGS = "(-wal|-shm|-journal)?"  # what SQLite makes beside it


class BackedUp(NamedTuple):
    """A finished backup. `newest_event` tells how new it is; `artifacts` is None when they were
    not asked for, `missing` counts those that were not there to be copied."""

    path: str
    database_id: str
    bytes: int
    sha256: str
    newest_event: int
    artifacts: int | None
    artifact_folder: str | None
    missing: int

    def as_json(self) -> dict[str, Any]:
        return self._asdict() | {"newest_event": str(self.newest_event)}


def back_up(
    desk: Desk, path: str | os.PathLike[str], *, force: bool = False, artifacts: bool = False
) -> BackedUp:
    """Copy the database as of one commit into a new file, whole or not at all.

    `force` replaces a file that is there; `artifacts` also copies the contents that the copy
    refers to, into the folder in which a database at `path` looks for them.
    Errors: `file_exists`, `usage` (no such folder, the live database itself), `disk_full`,
    `read_only`, `io_error`, `corrupt` (the copy fails its check).
    """
    if desk.database.in_transaction:
        raise usage("a backup cannot be made inside a transaction")
    target = layout_of(os.path.abspath(os.fspath(path)))
    _check_target(desk.database.layout, target, force=force)
    store = _artifact_store(target) if artifacts else None
    copied: set[str] = set()
    if store is not None:
        # Most are copied before the snapshot is taken, so that pruning meanwhile costs little.
        with desk.database.snapshot() as snapshot:
            wanted = list(care.contents(snapshot, desk.database.schema_version))
        with _own_errors(target):
            _copy_contents(desk, store, wanted, copied)
    now = desk.database.now()
    with _own_errors(target), _temporary_beside(target.database, now) as temporary:
        newest, wanted = _copy_database(desk, temporary)
        missing = 0 if store is None else _copy_contents(desk, store, wanted, copied)
        size, sha256 = _finish(temporary, target.database, force=force)
    return BackedUp(
        target.database,
        desk.database.id,
        size,
        sha256,
        newest,
        None if store is None else len(wanted) - missing,
        None if store is None else target.artifacts,
        missing,
    )


# -- the target ----------------------------------------------------------------------------


def _check_target(live: Layout, target: Layout, *, force: bool) -> None:
    """Refuse what would harm the live database, another one, or a file that is there."""
    path = target.database
    if live.holds(path):
        # A process that has it open would go on with the old one, and lose what is acknowledged.
        raise usage(
            f"{printable(path)} belongs to a live database",
            hint="back up to a file elsewhere, and put it there when nothing uses the project",
        )
    if os.path.lexists(path) and not os.path.isdir(path) and not os.path.isfile(path):
        raise usage(f"{printable(path)} is no regular file", hint="name a file")
    if not os.path.isdir(os.path.dirname(path)):
        raise usage(f"there is no folder {printable(os.path.dirname(path))}", path=printable(path))
    if os.path.isdir(path):
        raise usage(f"{printable(path)} is a folder", hint="name a file in it")
    for log in (target.wal, target.shm):
        # SQLite would replay a log that lies beside the new file into it.
        if os.path.lexists(log):
            raise _file_exists(log, "a database of that name is in use, or its log was left over")
    if os.path.lexists(path) and not force:
        raise _file_exists(path, "--force replaces it")


def _artifact_store(target: Layout) -> ArtifactStore:
    refuse_links(target.artifacts)
    with _own_errors(target), contextlib.suppress(FileExistsError):
        os.mkdir(target.artifacts, 0o700)
    return ArtifactStore(target.artifacts)


def _file_exists(path: str, hint: str) -> InboxOrchError:
    return InboxOrchError(
        "file_exists",
        f"{printable(path)} is there already",
        hint=hint,
        details={"path": printable(path)},
    )


@contextlib.contextmanager
def _own_errors(target: Layout) -> Iterator[None]:
    """Name the errors of the target by its own path."""
    try:
        yield
    except OSError as error:
        raise file_failure(error.filename or target.database, error) from error


@contextlib.contextmanager
def _temporary_beside(path: str, now: Moment) -> Iterator[str]:
    """An empty file of mode 0600 in the same folder, gone afterwards if it still is there."""
    folder, name = os.path.split(path)
    _collect_parts(folder, name, now)
    temporary = os.path.join(folder, f".{name}.{_mark(now)}-{os.urandom(2).hex()}{_PART}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    os.close(os.open(temporary, flags, 0o600))
    try:
        yield temporary
    finally:
        for leftover in (temporary, *(temporary + end for end in ("-wal", "-shm", "-journal"))):
            with contextlib.suppress(OSError):  # what went wrong before is what counts
                os.unlink(leftover)


def _mark(now: Moment) -> str:
    """This process, in the name of what it makes: number, start, and where they mean something."""
    number = os.getpid()
    return f"{number:x}-{processes.start_time(number) or 0:x}-{_place(now)}"


def _place(now: Moment) -> str:
    """Stands for the boot and the namespace in which the number of a process means something."""
    return f"{zlib.crc32(f'{now.boot_id} {processes.namespace()}'.encode()):08x}"


def _collect_parts(folder: str, name: str, now: Moment) -> None:
    """Remove what a backup into the same file left behind when it was killed.

    By the whole of its name: `.project.db.2026…` may be a part of a backup to `project.db.2026`.
    """
    mark = "(?:([0-9a-f]+)-([0-9a-f]+)-([0-9a-f]{8})-[0-9a-f]{4}|[0-9]+-[0-9a-f]{8})"
    part = re.compile(rf"\.{re.escape(name)}\.{mark}{re.escape(_PART)}{_LOGS}")
    for other in os.listdir(folder):
        found, path = part.fullmatch(other), os.path.join(folder, other)
        if found is None:
            continue
        with contextlib.suppress(OSError):
            if _is_left_over(found, os.lstat(path).st_mtime_ns, now):
                os.unlink(path)


def _is_left_over(found: re.Match[str], written_ns: int, now: Moment) -> bool:
    """Whether an unfinished copy has been abandoned by its maker.

    Of a process that cannot be seen from here, in another container or on another machine, the
    age decides, and so it does where an older release has not said which process it was.
    """
    process, started, place = found.group(1, 2, 3)
    if place == _place(now):
        return not processes.is_running(int(process, 16), int(started, 16))
    return now.wall_ms - written_ns // 1_000_000 > _FOREIGN_MS


# -- the copy ------------------------------------------------------------------------------


def _copy_database(desk: Desk, temporary: str) -> tuple[int, list[tuple[str, int]]]:
    """The newest event in the copy, and the contents that the copy refers to."""
    admin = desk.database.admin
    with desk.database.snapshot(as_it_is=True) as snapshot:
        newest = events.latest(snapshot)
        wanted = list(care.contents(snapshot, desk.database.schema_version))
        admin.copy_to_file(snapshot, temporary)
    found = admin.check_copy(temporary)
    if found:
        raise InboxOrchError(
            "corrupt",
            f"the copy fails SQLite's integrity check: {found[0]}",
            hint="`inbox doctor` examines the live database; no backup was made",
            details={"findings": list(found)},
        )
    return newest, wanted


def _finish(temporary: str, path: str, *, force: bool) -> tuple[int, str]:
    """Sync the copy, give it its name, sync the folder; returns its length and digest.

    No connection has the copy open any more, so that it may be opened here.
    """
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        size = os.fstat(file.fileno()).st_size
    if force or not _linked(temporary, path):
        os.rename(temporary, path)
    sync_folder(os.path.dirname(path))
    return size, sha256


def _linked(temporary: str, path: str) -> bool:
    """Give the file its name unless the name is taken: rename(2) would replace what has come to
    be there meanwhile, link(2) refuses. False on a file system without links."""
    try:
        os.link(temporary, path)
    except FileExistsError as error:
        raise _file_exists(path, "--force replaces it") from error
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EMLINK):
            raise
        return False
    os.unlink(temporary)
    return True


def _copy_contents(
    desk: Desk, store: ArtifactStore, wanted: list[tuple[str, int]], copied: set[str]
) -> int:
    """Copy what is not there yet; returns how many could not be copied as they should be."""
    missing = 0
    for sha256, size in wanted:
        if sha256 in copied:
            continue
        if _copy_content(desk, store, sha256, size):
            copied.add(sha256)
        else:
            missing += 1
    return missing


def _copy_content(desk: Desk, store: ArtifactStore, sha256: str, size: int) -> bool:
    """False when it is not there, or not what it should be: then nothing is copied."""
    if desk.artifacts.length(sha256) != size:
        return False
    try:
        content = desk.artifacts.open(sha256)
    except InboxOrchError as error:
        if error.code != "not_found":
            raise
        return False
    with content:
        return store.add_content(sha256, content)


# -- export --------------------------------------------------------------------------------


def export(desk: Desk) -> Iterator[dict[str, Any]]:
    """Everything as of one commit, sealed threads included, as flat objects with a `type`; the last
    one, of type `end`, counts the others by type.

    It is read out of a private copy, so that a slow reader holds up no writer.
    Errors: `disk_full` (no room for the copy), `io_error`, `corrupt`.
    """
    database = desk.database
    counts: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        session = _private_copy(desk, stack)
        with database.admin.lenient(session):
            version = database.admin.schema_version(session)
            for line in copies.lines(session, version, database.now()):
                counts[line["type"]] += 1
                yield line
    yield {"type": "end", "counts": dict(counts)}


def _private_copy(desk: Desk, stack: contextlib.ExitStack) -> Session:
    try:
        with desk.database.snapshot() as source:
            events.latest(source)  # a transaction sees nothing before its first read
            return stack.enter_context(desk.database.admin.private_copy(source))
    except InboxOrchError as error:
        if error.code == "disk_full":
            error.hint = "the copy needs room in the temporary folder; SQLITE_TMPDIR names another"
        raise
