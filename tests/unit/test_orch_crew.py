"""What a worker of a drive says, and the file that it says it into."""

import contextlib
import errno
import os
import tempfile
from collections.abc import Iterator

import pytest

from inbox_orch.orch.leader import crew
from inbox_orch.orch.leader.posts import Post
from support.buses import refused

_POST = Post("true", None, "w")


@pytest.fixture
def worker() -> Iterator[crew._Worker]:
    with contextlib.closing(crew._Worker(_POST, ("true",))) as worker:
        yield worker


def test_a_worker_is_heard_by_whole_lines(worker):
    os.write(worker._errors, b"one\ntwo\nthr")
    assert worker.said() == ["one", "two"]
    os.write(worker._errors, b"ee\n")
    assert worker.said() == ["three"]


def test_a_line_without_an_end_does_not_hide_what_comes_after_it(worker, monkeypatch):
    monkeypatch.setattr(crew, "_MOST_BYTES", 8)
    os.write(worker._errors, b"x" * 20 + b"\nlast\n")

    said = [line for _ in range(4) for line in worker.said()]

    assert "".join(said[:-1]) == "x" * 20
    assert said[-1] == "last"


def test_where_it_has_no_room_the_disk_is_named(monkeypatch):
    def fail(*, dir):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(tempfile, "mkstemp", fail)
    with refused("disk_full"):
        crew._Worker(_POST, ("true",))
