"""Folders of our own: made so that nobody else can enter, and never reached through a link.

A cloned repository or an unpacked archive can bring along whatever it likes, a link in the
place of one of our folders too; what lies behind it is not ours to write or to clear away.
"""

import contextlib
import errno
import os

from .errors import InboxOrchError


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
