"""What is copied in of what a command has left, when that goes wrong."""

import pytest

from inbox_orch.inbox.worker.handover import NotYet, Remains
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.endings import Ending
from inbox_orch.shared.processes.kept import Kept
from inbox_orch.shared.store.artifacts import SourceFailed, Stored

LARGE_BYTES = 17 * 1024 * 1024


class Failing:
    """A store that takes the output, and of the result makes an error."""

    def __init__(self, error: Exception) -> None:
        self._error = error

    def add_bytes(self, name: str, content: bytes) -> Stored:
        return Stored(name, "0" * 64, len(content))

    def add_file(self, path: str) -> Stored:
        raise self._error


def stored(path, error: Exception) -> tuple[Stored, ...]:
    """As the loop asks for it, until there is an answer."""
    with open(path, "wb") as file:
        file.truncate(LARGE_BYTES)
    output = Kept("stdout", "inbox work"), Kept("stderr", "inbox work")
    remains = Remains(Ending(exit_status=0), *output, str(path))
    while True:
        try:
            return remains.store(Failing(error))
        except NotYet:
            continue


def test_an_error_that_nobody_foresaw_is_raised_and_not_waited_for(tmp_path):
    with pytest.raises(OverflowError, match="a number"):
        stored(tmp_path / "result", OverflowError("a number"))


def test_that_a_result_cannot_be_read_is_no_reason_to_try_again(tmp_path):
    error = SourceFailed("io_error", "bad")

    with pytest.raises(OSError, match="bad"):
        stored(tmp_path / "result", error)


def test_a_result_that_is_gone_is_left_out(tmp_path):
    error = InboxOrchError("usage", "gone")

    assert [each.name for each in stored(tmp_path / "result", error)] == ["stdout", "stderr"]


def test_a_disk_that_fails_is_told(tmp_path):
    with pytest.raises(InboxOrchError):
        stored(tmp_path / "result", InboxOrchError("io_error", "bad"))
