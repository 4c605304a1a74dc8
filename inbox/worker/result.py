"""The file `$INBOX_RESULT` that a command may leave behind, read with suspicion."""

import os
import stat
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.inputs import decode_body
from inbox_orch.shared.store.artifacts import MAX_ARTIFACT_BYTES
from inbox_orch.shared.store.live import is_live

from ..domain import limits
from ..domain.working import RESULT_NOTE


class Result(NamedTuple):
    """What the file is good for.

    `attach`: it can be attached. At most one of `payload` and `body` is set. `note` says why a
    file that exists is not used as either. `size` is in bytes, and set for a large one.
    """

    attach: bool = False
    payload: str | None = None
    body: str | None = None
    note: str | None = None
    size: int = 0


def read_result(path: str) -> Result:
    """Look at the file; one that is not there is an empty `Result`. Never blocks on a pipe."""
    if is_live(path):
        return Result(note=f"{RESULT_NOTE}is a file of the database, so it is not attached.")
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Result()
    except OSError as error:
        return Result(note=f"{RESULT_NOTE}could not be read: {error.strerror}.")
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return Result(note=f"{RESULT_NOTE}is not a regular file, so it is not attached.")
    with os.fdopen(descriptor, "rb") as file:
        if status.st_size > MAX_ARTIFACT_BYTES:
            return Result(note=f"{RESULT_NOTE}has {status.st_size} bytes: too large to attach.")
        if status.st_size > limits.MAX_BODY_BYTES:
            unfit = _only_attached(f"has {status.st_size} bytes, too many for a body")
            return unfit._replace(size=status.st_size)
        try:
            return _judge(file.read(limits.MAX_BODY_BYTES + 1))
        except OSError as error:
            return Result(note=f"{RESULT_NOTE}could not be read: {error.strerror}.")


def _judge(content: bytes) -> Result:
    if not content.strip():
        return _only_attached("is empty")
    try:
        text = limits.check_body(decode_body(content, limits.MAX_BODY_BYTES))
    except InboxOrchError as error:
        return _only_attached(f"cannot be a body ({error.message})")
    try:
        return Result(attach=True, payload=limits.check_payload(text))
    except InboxOrchError:
        return Result(attach=True, body=text)


def _only_attached(reason: str) -> Result:
    return Result(attach=True, note=f"{RESULT_NOTE}{reason}; it is attached as `result`.")
