"""Folders of our own: made so that no other user can enter, and never reached through a link.

A cloned repository or an unpacked archive can bring along whatever it likes, a link in the
place of one of our folders too; what lies behind it is not ours to write or to clear away.
"""

import contextlib
import errno
import os

from ..errors import InboxOrchError


def make_private_folders(path: str) -> None:
    """Make a folder and those above it that are not there, each for its owner alone.

    `os.makedirs` gives its mode to the last one only. Raises OSError.
    """
    if os.path.isdir(path):
        return
    above = os.path.dirname(path)
    if above != path:
        make_private_folders(above)
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)
    if not os.path.isdir(path):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)


def make_private_folder(path: str) -> None:
    """Make a folder for its owner alone, unless it is there; the one above it has to be: a store
    that was moved away is not begun anew in its old place. Raises OSError."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(path, 0o700)


def refuse_links(*paths: str) -> None:
    """Error `unsafe_link` when there is a symbolic link at one of the paths."""
    for path in paths:
        if os.path.islink(path):
            raise unsafe_link(path)


def unsafe_link(path: str) -> InboxOrchError:
    """The error for a link where only something of our own may be."""
    return InboxOrchError(
        "unsafe_link",
        f"{path} is a symbolic link, and what lies behind it is not used",
        hint="remove the link, or put in its place what it leads to; to keep a database "
        "elsewhere, let its whole folder be a link",
        details={"path": path},
    )


def file_failure(path: str, error: OSError) -> InboxOrchError:
    """The named error for an operating system error on one of our own files."""
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return InboxOrchError(
            "read_only",
            f"{path} cannot be used: {error.strerror}",
            hint="check the owner and the modes of the folder, or work on a writable copy",
            details={"path": path},
        )
    if error.errno == errno.ELOOP and os.path.islink(path):
        return unsafe_link(path)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return InboxOrchError(
            "disk_full",
            f"no space left for {path}",
            hint="free some space and repeat the command",
            details={"path": path},
        )
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return InboxOrchError(
            "no_database",
            f"{path} is not there",
            hint="`inbox init` makes a database",
            details={"path": path},
        )
    return InboxOrchError(
        "io_error",
        f"{path}: {error.strerror}",
        hint="check the disk and the folder, then repeat the command",
        details={"path": path, "errno": error.errno},
    )


def write_all(descriptor: int, content: bytes) -> None:
    """Write all of it: the system may take less at a time, as when a disk has only some room left.
    Raises OSError."""
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_folder(folder: str) -> None:
    """Put on disk that a file in the folder has got its name (fsync(2))."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
