"""The gate between writers, where a caller does not get in: it is interrupted, or does not wait."""

import os
import threading

import pytest

from inbox_orch.shared.store import gate
from inbox_orch.shared.store.gate import Gate
from support.buses import refused


class Interrupted(BaseException):
    """Stands for a signal's exception."""


def descriptors() -> int:
    """How many this process has open."""
    return len(os.listdir("/dev/fd"))


def test_a_caller_that_does_not_wait_leaves_nothing_in_the_line(tmp_path):
    """A leader asks so at every look, for hours perhaps, whether others hold an attempt."""
    path = str(tmp_path / "gate")
    holder, others = Gate(path), [Gate(path) for _ in range(3)]
    holder.acquire(5)
    before = threading.active_count(), descriptors()
    for other in others:
        with refused("busy"):
            other.acquire(0)

    assert (threading.active_count(), descriptors()) == before
    holder.release()


def test_a_caller_that_tries_again_and_again_stands_in_the_line_once(tmp_path):
    """Beside a writer that was stopped, say: a worker tries every other second, and for hours."""
    path = str(tmp_path / "gate")
    holder, newcomer, other = Gate(path), Gate(path), Gate(path)
    holder.acquire(5)
    before = threading.active_count(), descriptors()
    for _ in range(4):
        with refused("busy"):
            newcomer.acquire(0.01)

    assert threading.active_count() <= before[0] + 1
    assert descriptors() <= before[1] + 1
    holder.release()
    newcomer.acquire(5)
    with refused("busy"):
        other.acquire(0)
    newcomer.release()
    other.acquire(5)
    other.release()


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_caller_interrupted_as_it_comes_back_to_the_line_does_not_keep_the_lock(
    tmp_path, monkeypatch, when
):
    path, rejoin = str(tmp_path / "gate"), gate._Line.rejoin
    holder, newcomer, other = Gate(path), Gate(path), Gate(path)
    holder.acquire(5)
    with refused("busy"):
        newcomer.acquire(0.01)

    def interrupted_rejoin(line):
        if when == "after":
            rejoin(line)
        holder.release()
        line.join(5)
        raise Interrupted

    with monkeypatch.context() as patch:
        patch.setattr(gate._Line, "rejoin", interrupted_rejoin)
        with pytest.raises(Interrupted):
            newcomer.acquire(5)

    other.acquire(5)
    other.release()
    newcomer.acquire(5)
    newcomer.release()


def test_a_caller_that_tries_again_queues_at_the_file_that_is_there_now(tmp_path):
    path = tmp_path / "gate"
    holder, newcomer = Gate(str(path)), Gate(str(path))
    holder.acquire(5)
    with refused("busy"):
        newcomer.acquire(0.01)
    path.unlink()

    newcomer.acquire(5)

    assert os.path.samestat(os.fstat(newcomer.descriptor), path.stat())
    newcomer.release()
    holder.release()


def test_a_caller_for_whom_there_is_no_thread_leaves_no_descriptor_open(tmp_path, monkeypatch):
    path = str(tmp_path / "gate")
    holder, newcomer = Gate(path), Gate(path)
    holder.acquire(5)
    before = descriptors()

    def fail(thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", fail)
        with pytest.raises(RuntimeError):
            newcomer.acquire(5)

    assert descriptors() == before
    holder.release()


def test_a_caller_interrupted_as_it_joins_the_line_does_not_keep_the_lock(tmp_path, monkeypatch):
    path = str(tmp_path / "gate")
    start = gate._Line.start
    threads = []

    def interrupted_start(line):
        start(line)
        threads.append(line)
        raise Interrupted

    monkeypatch.setattr(gate._Line, "start", interrupted_start)
    holder, newcomer = Gate(path), Gate(path)
    holder.acquire(5)
    with pytest.raises(Interrupted):
        newcomer.acquire(5)
    holder.release()
    threads[0].join(5)
    monkeypatch.undo()

    newcomer.acquire(5)
    newcomer.release()


@pytest.mark.parametrize("when", ["before it leaves the line", "after it has left the line"])
def test_a_caller_interrupted_once_the_lock_is_granted_does_not_keep_it(
    tmp_path, monkeypatch, when
):
    path = str(tmp_path / "gate")
    leave = gate._Line.leave
    interrupted = []

    def interrupted_leave(line):
        if not interrupted:
            interrupted.append(line)
            assert line._granted.is_set()
            if when.startswith("after"):
                leave(line)
            raise Interrupted
        return leave(line)

    monkeypatch.setattr(gate._Line, "leave", interrupted_leave)
    monkeypatch.setattr(gate, "_lock_at_once", lambda descriptor: False)
    newcomer = Gate(path)
    with pytest.raises(Interrupted):
        newcomer.acquire(5)
    monkeypatch.undo()

    other = Gate(path)
    other.acquire(0.5)
    other.release()
    newcomer.acquire(5)
    newcomer.release()
