"""Failures of the operating system around git, by their names, and text that can be stored.

Knows nothing of repositories.
"""

import contextlib
import errno
import os
from collections.abc import Iterator

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.folders import file_failure
from inbox_orch.shared.store.temporary import temporary_place

# What a user can put right; with all others the words of the system say more than a hint could.
_NAMED = (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT)


def shown(text: str) -> str:
    """Text with bytes that are not UTF-8 escaped, so that it can be stored and printed."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def failure(path: str, error: OSError) -> InboxOrchError:
    """The named error for one of the operating system's: `disk_full`, `read_only`, `io_error`.
    `path` is told where the error itself names none."""
    where = shown(os.fsdecode(error.filename or path))
    if error.errno in _NAMED:
        return file_failure(where, error)
    return InboxOrchError(
        "io_error",
        f"{where}: {error.strerror}",
        hint="check the disk and the folder, then repeat the command",
        details={"path": where},
    )


@contextlib.contextmanager
def named_failures(path: str) -> Iterator[None]:
    """Give the operating system's errors in the block their names; see `failure`."""
    try:
        yield
    except OSError as error:
        raise failure(path, error) from error


@contextlib.contextmanager
def temporary_folder() -> Iterator[str]:
    """A folder that is gone after the block. The system's errors in the block get their names."""
    import tempfile

    place = temporary_place()
    with (
        named_failures(place),
        tempfile.TemporaryDirectory(prefix="inbox-orch-", dir=place) as folder,
    ):
        yield folder
