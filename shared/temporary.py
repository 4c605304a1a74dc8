"""Files and folders that are gone afterwards, and the error when there is no place for them.

Python looks for a folder in which it can write (TMPDIR, TEMP, TMP, /tmp, /var/tmp, /usr/tmp, the
working directory) and says of all that fail only that there is none.
"""

import errno
import os

from .errors import InboxOrchError

_HINT = "make room there, or set TMPDIR to a folder that can be written"


def temporary_place() -> str:
    """The folder for temporary files; error `disk_full`, `read_only` or `io_error`."""
    import tempfile

    try:
        return tempfile.gettempdir()
    except FileNotFoundError as error:
        raise _nowhere(_candidates()) from error


def make_temporary_folder(prefix: str) -> str:
    """A new folder of this user's alone. Raises OSError; errors as for `temporary_place`."""
    import tempfile

    return tempfile.mkdtemp(prefix=prefix, dir=temporary_place())


def _candidates() -> list[str]:
    named = [os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP")]
    return [*filter(None, named), "/tmp", "/var/tmp", "/usr/tmp", os.curdir]  # noqa: S108


def _nowhere(folders: list[str]) -> InboxOrchError:
    found = {folder: _why_not(folder) for folder in dict.fromkeys(folders)}
    numbers = {error.errno for error in found.values() if error is not None}
    code = "io_error"
    if numbers & {errno.ENOSPC, errno.EDQUOT}:
        code = "disk_full"
    elif numbers & {errno.EACCES, errno.EPERM, errno.EROFS}:
        code = "read_only"
    reasons = [f"{path}: {error.strerror}" for path, error in found.items() if error is not None]
    return InboxOrchError(
        code,
        f"there is no folder for temporary files: {'; '.join(reasons)}",
        hint=_HINT,
        details={"folders": list(found)},
    )


def _why_not(folder: str) -> OSError | None:
    """The error with which a file in the folder cannot be made and written."""
    path = os.path.join(folder, f"inbox-orch-{os.urandom(8).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        return error
    try:
        os.write(descriptor, b"written")
    except OSError as error:
        return error
    finally:
        os.close(descriptor)
        os.unlink(path)
    return None
