"""Artifacts: files copied in beside the database, stored under their SHA-256.

A copy is complete and on disk before the transaction that names it commits, and it outlives
the folder that it came from. Nothing here knows which thread an artifact belongs to.
"""

import contextlib
import errno
import os
import re
import stat
from collections.abc import Callable, Iterator
from io import BufferedReader
from typing import BinaryIO, NamedTuple

from ..errors import InboxOrchError, usage
from ..ids import printable, quoted
from .folders import file_failure, make_private_folder, refuse_links, sync_folder
from .live import is_live, refuse_live

MAX_ARTIFACT_BYTES = 1024 * 1024 * 1024
MAX_NAME_BYTES = 255
_CHUNK = 1024 * 1024
_INCOMING = "incoming"
_UNFINISHED = "[0-9]+-[0-9a-f]{16}"  # what `_copy_in` calls them


Unreadable = Callable[[OSError], None]
"""Takes the error for a folder or a file that cannot be looked at."""


def _raised(error: OSError) -> None:
    raise error


class Stored(NamedTuple):
    """A file that has been copied in."""

    name: str
    sha256: str
    size: int


class SourceFailed(InboxOrchError):
    """The file that was to be copied in cannot be read; the store is not at fault."""


class _OtherContent(Exception):
    """What was copied has not the digest that it should have."""


class ArtifactStore:
    """The folder of one database's artifacts."""

    def __init__(self, folder: str) -> None:
        self._folder = folder

    def path(self, sha256: str) -> str:
        """Where the content with this digest lies."""
        return os.path.join(self._folder, sha256[:2], sha256[2:])

    def has(self, stored: Stored) -> bool:
        """Whether the content is there in full; call it behind the gate before naming it."""
        try:
            return self.length(stored.sha256) == stored.size
        except OSError:
            return False

    def length(self, sha256: str) -> int | None:
        """The length of the content in bytes; None when there is none, or something else than a
        file in its own folder. Raises OSError."""
        path = self.path(sha256)
        if os.path.islink(os.path.dirname(path)):
            return None
        try:
            found = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            return None
        own = stat.S_ISREG(found.st_mode) and not is_live(path)
        return found.st_size if own else None

    def add_file(self, path: str) -> Stored:
        """Copy a regular file in under its own base name.

        Errors: `usage` (missing, not a regular file, a file of the open database, name or size
        not allowed), `disk_full`, `read_only`, `io_error`.
        """
        name = check_artifact_name(_as_text(os.path.basename(path)))
        with _open_source(path) as source:
            return self._add(name, _reader(source, path))

    def add_content(self, sha256: str, content: BinaryIO) -> bool:
        """Copy in what is to have this digest; False, and nothing stays, when it has another.

        Errors as for `add_file`.
        """
        try:
            self._add(sha256, _reader(content, sha256), wanted=sha256)
        except _OtherContent:
            return False
        return True

    def add_bytes(self, name: str, content: bytes) -> Stored:
        """Store `content` under `name`; errors as for `add_file`."""
        parts = iter((content,))
        return self._add(check_artifact_name(name), lambda: next(parts, b""))

    def open(self, sha256: str) -> BufferedReader:
        """The content, for reading; error `not_found` when it is not there."""
        path = self.path(sha256)
        # Without O_NONBLOCK, a pipe that has taken the file's place would hold us up.
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            if self.length(sha256) is None:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
            return open(os.open(path, flags), "rb")
        except OSError as error:
            if error.errno not in (errno.ENOENT, errno.ELOOP):
                raise file_failure(path, error) from error
            raise InboxOrchError(
                "not_found",
                f"the content {sha256} is not in the artifact folder",
                hint="it may have been pruned; `inbox doctor` lists what is missing",
                details={"sha256": sha256},
            ) from error

    def contents(self, unreadable: Unreadable = _raised) -> Iterator[tuple[str, str]]:
        """(digest, path) of everything stored, complete copies only.

        What else lies there is not ours, nor is anything behind a link. `unreadable` is called
        with the error for each folder and file that cannot be looked at; by default it is raised.
        """
        for prefix in sorted(_names(self._folder, unreadable)):
            if re.fullmatch("[0-9a-f]{2}", prefix):
                folder = os.path.join(self._folder, prefix)
                for rest in sorted(_names(folder, unreadable)):
                    path = os.path.join(folder, rest)
                    if re.fullmatch("[0-9a-f]{62}", rest):
                        status = _status(path, unreadable)
                        if status is not None and stat.S_ISREG(status.st_mode):
                            yield prefix + rest, path

    def leftovers(self, older_than_wall_ms: int, unreadable: Unreadable = _raised) -> Iterator[str]:
        """Paths of copies that were never completed, last written before the given time.

        What has another name is not ours. `unreadable` as for `contents`.
        """
        folder = os.path.join(self._folder, _INCOMING)
        for name in sorted(_names(folder, unreadable)):
            if not re.fullmatch(_UNFINISHED, name):
                continue
            path = os.path.join(folder, name)
            status = _status(path, unreadable)
            if status is not None and status.st_mtime_ns // 1_000_000 < older_than_wall_ms:
                yield path

    def _add(self, name: str, read: Callable[[], bytes], wanted: str | None = None) -> Stored:
        try:
            return self._copy_in(name, read, wanted)
        except OSError as error:
            raise file_failure(error.filename or self._folder, error) from error

    def _copy_in(self, name: str, read: Callable[[], bytes], wanted: str | None) -> Stored:
        """Temporary name, fsync of the file, rename, fsync of the folders (rename(2), fsync(2))."""
        incoming = os.path.join(self._folder, _INCOMING)
        for folder in (self._folder, incoming):
            make_private_folder(folder)
        refuse_links(self._folder, incoming)
        temporary = os.path.join(incoming, f"{os.getpid()}-{os.urandom(8).hex()}")
        try:
            sha256, size = _write(temporary, name, read)
            if wanted not in (None, sha256):
                raise _OtherContent
            final = self.path(sha256)
            make_private_folder(os.path.dirname(final))
            refuse_links(os.path.dirname(final))
            os.rename(temporary, final)
        except BaseException:
            with contextlib.suppress(OSError):  # what went wrong before is what counts
                os.unlink(temporary)
            raise
        sync_folder(os.path.dirname(final))
        sync_folder(self._folder)
        return Stored(name, sha256, size)


def check_artifact_name(name: str) -> str:
    """A name that can be a file's on any machine and shown on any terminal; error `usage`."""
    try:
        size = len(name.encode())
    except UnicodeEncodeError:
        size = 0
    if (
        not 0 < size <= MAX_NAME_BYTES
        or name in (".", "..")
        or "/" in name
        or not name.isprintable()
    ):
        raise usage(
            f"{quoted(name)} cannot be the name of an artifact",
            hint="a name is printable UTF-8 of 1 to 255 bytes without a slash, not '.' or '..'",
        )
    return name


def _as_text(name: str) -> str:
    """A file's name as UTF-8, in whatever locale Python has read it."""
    return os.fsencode(name).decode("utf-8", "surrogateescape")


def _open_source(path: str) -> BinaryIO:
    """Never blocks: a pipe or a device is refused before it is read."""
    refuse_live(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise usage(f"cannot attach {printable(path)}: {reason}", path=printable(path)) from error
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = "a folder" if stat.S_ISDIR(mode) else "not a regular file"
        raise usage(
            f"cannot attach {printable(path)}: it is {kind}",
            hint="attach regular files; pack a folder first",
            path=printable(path),
        )
    return os.fdopen(descriptor, "rb", buffering=0)


def _reader(source: BinaryIO, path: str) -> Callable[[], bytes]:
    """Reads on with every call. Raises `SourceFailed`, code `io_error`."""

    def read() -> bytes:
        try:
            return source.read(_CHUNK)
        except OSError as error:
            raise SourceFailed(
                "io_error",
                f"cannot read {printable(path)}: {error.strerror}",
                hint="check the file and its disk, then repeat the command",
                details={"path": printable(path), "errno": error.errno},
            ) from error

    return read


def _write(path: str, name: str, read: Callable[[], bytes]) -> tuple[str, int]:
    import hashlib

    digest, size = hashlib.sha256(), 0
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb", buffering=0) as target:
        while chunk := read():
            size += len(chunk)
            if size > MAX_ARTIFACT_BYTES:
                raise usage(
                    f"{name} is larger than {MAX_ARTIFACT_BYTES} bytes",
                    hint="attach at most 1 GiB a file; split it or store it elsewhere",
                )
            digest.update(chunk)
            _write_all(target, chunk)
        os.fsync(target.fileno())
    return digest.hexdigest(), size


def _write_all(target: BinaryIO, chunk: bytes) -> None:
    view = memoryview(chunk)
    while view:
        view = view[target.write(view) :]


def _status(path: str, unreadable: Unreadable) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        unreadable(error)
        return None


def _names(folder: str, unreadable: Unreadable) -> list[str]:
    """The names in a folder, none for a link to one."""
    try:
        return [] if os.path.islink(folder) else os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        unreadable(error)
        return []
