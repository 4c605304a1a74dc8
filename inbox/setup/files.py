"""The files of an agent: found through links, read as text, replaced whole or not at all.

A link to a file is followed, since settings are often kept elsewhere, and stays what it is. In a
project it must not lead out of it: whoever made the repository could have put it there.
"""

import contextlib
import errno
import os
import stat
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import printable
from inbox_orch.shared.store.folders import sync_folder, write_all

_MOST_BYTES = 4 * 1024 * 1024
_SHOWN = 300
_NEW_MODE = 0o666


class Target(NamedTuple):
    """A file that is to be written. `path` is what it is called, `real` where it is behind all
    links; `text` is None where there is none yet; `mode` are the permission bits to give it."""

    path: str
    real: str
    text: str | None
    mode: int


def look(path: str, *, within: str | None) -> Target:
    """The file as it is. `within` is a folder that no link may lead out of.

    Errors: `unsafe_link`, `read_only`, `usage` (not a file, not text, too large), `io_error`.
    """
    _refuse_broken_links(path)
    real = os.path.realpath(path)
    if within is not None and os.path.commonpath([real, within]) != within:
        raise _unsafe_link(path, f"leads out of {_name(within)}, to {_name(real)}")
    try:
        status = os.stat(real)
    except FileNotFoundError:
        status = None
    except NotADirectoryError as error:
        raise usage(f"{_name(path)} cannot be made: a file stands where a folder is needed") from (
            error
        )
    except OSError as error:
        raise _cannot(path, error) from error
    if status is None:
        return Target(path, real, None, _NEW_MODE & ~_mask())
    if not stat.S_ISREG(status.st_mode):
        raise usage(f"{_name(path)} is not a file")
    return Target(path, real, _read(path, real), stat.S_IMODE(status.st_mode))


def refuse_read_only(target: Target) -> None:
    """Error `read_only` when the file may not be changed, or made, or its folder."""
    folder = os.path.dirname(target.real)
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    wanted = [folder] if target.text is None else [folder, target.real]
    for each in wanted:
        if not os.access(each, os.W_OK):
            raise InboxOrchError(
                "read_only",
                f"{_name(target.path)} cannot be written: {_name(each)} is read-only",
                hint="nothing was changed; make it writable, then repeat the command",
                details={"path": target.path},
            )


def refuse_written_since(target: Target) -> None:
    """Error `busy` when another has written the file since it was looked at. Raises OSError."""
    content = None
    with contextlib.suppress(FileNotFoundError), open(target.real, "rb") as file:
        content = file.read(_MOST_BYTES + 1)
    if content != (None if target.text is None else target.text.encode()):
        raise InboxOrchError(
            "busy",
            f"{_name(target.path)} was written by another meanwhile",
            hint="nothing was changed; repeat the command",
            details={"path": target.path},
        )


def put(path: str, content: bytes, mode: int) -> None:
    """Replace a file, or make it, in one step that is on the disk afterwards. Raises OSError."""
    temporary = leftover(path)
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(temporary, flags, 0o600)
        try:
            write_all(descriptor, content)
            _keep_owner(descriptor, path)
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):  # what went wrong before is what counts
            os.unlink(temporary)
        raise
    sync_folder(os.path.dirname(path))


def _keep_owner(descriptor: int, path: str) -> None:
    """Give the new file to whom the old one belongs, where that is another. Raises OSError when
    this is not allowed: it would be ours then."""
    try:
        old, new = os.stat(path), os.fstat(descriptor)
    except FileNotFoundError:
        return
    if old.st_gid != new.st_gid:
        with contextlib.suppress(PermissionError):
            os.fchown(descriptor, -1, old.st_gid)
    if old.st_uid != new.st_uid:
        os.fchown(descriptor, old.st_uid, -1)


def take_away(path: str) -> None:
    """Remove a file, if it is there. Raises OSError."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)


def leftover(path: str) -> str:
    """What is called so, a program has left that was ended in the middle; it may be removed."""
    return os.path.join(os.path.dirname(path), f".{os.path.basename(path)}.inbox-setup")


def folders_missing(folder: str) -> tuple[str, ...]:
    """The folders that have to be made for this one, the outermost first."""
    missing: list[str] = []
    while not os.path.isdir(folder):
        missing.append(folder)
        folder = os.path.dirname(folder)
    return tuple(reversed(missing))


def failure(error: OSError) -> InboxOrchError:
    """The named error for one of the operating system, met while files were written."""
    return _cannot(os.fsdecode(error.filename or "a file"), error)


def _read(path: str, real: str) -> str:
    try:
        with open(real, "rb") as file:
            content = file.read(_MOST_BYTES + 1)
    except OSError as error:
        raise _cannot(path, error) from error
    if len(content) > _MOST_BYTES:
        raise usage(f"{_name(path)} has more than {_MOST_BYTES} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise usage(
            f"{_name(path)} is not UTF-8: byte {error.start} is 0x{content[error.start]:02x}",
            hint="nothing was changed; convert it, then repeat the command",
        ) from error


def _refuse_broken_links(path: str) -> None:
    """Error `unsafe_link` when the file, or a folder on the way, is a link to nowhere."""
    while path != os.path.dirname(path):
        if os.path.islink(path) and not os.path.exists(path):
            raise _unsafe_link(path, "is a link that leads nowhere")
        path = os.path.dirname(path)


def _unsafe_link(path: str, why: str) -> InboxOrchError:
    return InboxOrchError(
        "unsafe_link",
        f"{_name(path)} {why}",
        hint="nothing was changed; remove the link, or put in its place what it leads to",
        details={"path": path},
    )


def _cannot(path: str, error: OSError) -> InboxOrchError:
    code = "io_error"
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        code = "read_only"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT):
        code = "disk_full"
    return InboxOrchError(
        code,
        f"{_name(path)}: {error.strerror}",
        hint="nothing was changed; mend that, then repeat the command",
        details={"path": path},
    )


def _mask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _name(path: str) -> str:
    return printable(path, _SHOWN)
