"""The gate between writers, where a caller is interrupted while it queues."""

import pytest

from inbox_orch.shared.store import gate
from inbox_orch.shared.store.gate import Gate


class Interrupted(BaseException):
    """Stands for a signal's exception."""


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
