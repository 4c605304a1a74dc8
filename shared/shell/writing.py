"""Results that go into a file instead of the standard output."""

import contextlib
import os
from typing import IO, BinaryIO

from ..errors import InboxOrchError, usage
from ..store.folders import file_failure

_CHUNK = 1024 * 1024


def write_file(path: str, content: BinaryIO) -> None:
    """A file appears whole or not at all; a pipe or a device is written to.

    A link stays one: its target is what is replaced.
    """
    path = os.path.realpath(path)
    try:
        if os.path.exists(path) and not os.path.isfile(path):
            with open(path, "wb") as device:
                _copy(content, device)
        else:
            _replace_file(path, content)
    except OSError as error:
        failure = file_failure(path, error)
        if failure.code in ("no_database", "io_error"):
            raise usage(f"cannot write {path}: {error.strerror}") from error
        raise InboxOrchError(failure.code, failure.message, hint=failure.hint) from error


def _replace_file(path: str, content: BinaryIO) -> None:
    """By a temporary file beside it and a rename, with the mode that a new file has. What that is
    the system knows: to ask for the mask would change it for a moment, for all threads."""
    temporary = os.path.join(os.path.dirname(path), f".inbox-{os.urandom(8).hex()}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(temporary, flags, 0o666)
    try:
        with open(descriptor, "wb") as file:
            _copy(content, file)
        os.rename(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):  # what went wrong before is what counts
            os.unlink(temporary)
        raise


def _copy(source: BinaryIO, target: IO[bytes]) -> None:
    while chunk := source.read(_CHUNK):
        target.write(chunk)
