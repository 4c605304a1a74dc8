"""When a thread was worked on, from its leases and events."""

from collections.abc import Sequence
from itertools import groupby, pairwise
from operator import itemgetter

from inbox_orch.shared.store.engine import Row, Session

from ..domain.model import Holders, WorkTimes

_ASKED = "question_asked"
# Whatever ends a question; a release or a failure may also come without one.
_SETTLED = ("question_answered", "question_expired", "thread_released", "thread_deferred")
_PART = 500

Settled = Sequence[tuple[int, int]]
"""From when to when questions were open, in order."""


def work_times(tx: Session, thread_ids: Sequence[str]) -> dict[str, WorkTimes]:
    """Of those threads that have been claimed."""
    found: dict[str, WorkTimes] = {}
    asked: dict[str, Settled] = {}
    for start in range(0, len(thread_ids), _PART):
        part = tuple(thread_ids[start : start + _PART])
        marks = ", ".join("?" * len(part))
        claims = tx.all(
            "SELECT thread_id, acquired_at, ended_at, expires_at FROM lease"
            f" WHERE thread_id IN ({marks}) ORDER BY thread_id, epoch",
            part,
        )
        held = {key: list(rows) for key, rows in groupby(claims, itemgetter(0))}
        found |= {
            key: WorkTimes(min(row[1] for row in rows), 0, None, None) for key, rows in held.items()
        }
        questions = tx.all(
            f"SELECT thread_id, kind, at FROM event WHERE thread_id IN ({marks})"
            f" AND kind IN ({', '.join('?' * (len(_SETTLED) + 1))}) ORDER BY thread_id, seq",
            (*part, _ASKED, *_SETTLED),
        )
        for thread_id, rows in groupby(questions, itemgetter(0)):
            if thread_id in found:
                settled, open_since = _questions([(row[1], row[2]) for row in rows])
                found[thread_id] = _with_questions(found[thread_id], settled, open_since)
                asked[thread_id] = settled
        for thread_id, of_thread in held.items():
            if len(of_thread) > 1:
                queued_ms = _queued(of_thread, asked.get(thread_id, ()))
                found[thread_id] = found[thread_id]._replace(queued_ms=queued_ms)
    return found


def holders(tx: Session, thread_ids: Sequence[str]) -> dict[str, Holders]:
    """Of those threads that have been claimed."""
    found: dict[str, Holders] = {}
    for start in range(0, len(thread_ids), _PART):
        part = tuple(thread_ids[start : start + _PART])
        rows = tx.all(
            "SELECT thread_id, holder, ended_by FROM lease"
            f" WHERE thread_id IN ({', '.join('?' * len(part))}) ORDER BY thread_id, epoch",
            part,
        )
        for thread_id, group in groupby(rows, itemgetter(0)):
            leases = [(row[1], row[2]) for row in group]
            lost = sum(ended_by == "expired" for _, ended_by in leases)
            found[thread_id] = Holders(tuple(name for name, _ in leases), lost)
    return found


def _with_questions(times: WorkTimes, settled: Settled, asked_at: int | None) -> WorkTimes:
    # A wall clock that was set back meanwhile gives no time back.
    blocked_ms = sum(max(0, end - begin) for begin, end in settled)
    settled_at = settled[-1][1] if settled else None
    return times._replace(blocked_ms=blocked_ms, asked_at=asked_at, settled_at=settled_at)


def _questions(history: Sequence[tuple[str, int]]) -> tuple[Settled, int | None]:
    """From when to when questions were open that are settled now, and since when one is."""
    settled: list[tuple[int, int]] = []
    asked_at = None
    for kind, at in history:
        if kind == _ASKED:
            asked_at = at
        elif asked_at is not None:
            settled.append((asked_at, at))
            asked_at = None
    return settled, asked_at


def _queued(held: Sequence[Row], asked: Settled) -> int:
    """How long nobody had it between one lease and the next, without the time in which a question
    was open. A lease that ran out ended then, whenever that was noticed."""
    total = 0
    for before, after in pairwise(held):
        begin, acquired_at = min(before["ended_at"], before["expires_at"]), after["acquired_at"]
        open_ms = sum(max(0, min(acquired_at, b) - max(begin, a)) for a, b in asked)
        total += max(0, acquired_at - begin - open_ms)
    return total
