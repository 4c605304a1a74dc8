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
    """By a temporary file beside it and a rename, with the mode that a new file has."""
    import tempfile

    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), delete=False) as temporary:
        try:
            _copy(content, temporary)
            temporary.flush()
            mask = os.umask(0)
            os.umask(mask)
            os.fchmod(temporary.fileno(), 0o666 & ~mask)
            os.rename(temporary.name, path)
        except BaseException:
            with contextlib.suppress(OSError):  # what went wrong before is what counts
                os.unlink(temporary.name)
            raise


def _copy(source: BinaryIO, target: IO[bytes]) -> None:
    while chunk := source.read(_CHUNK):
        target.write(chunk)
