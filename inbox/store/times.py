"""When a thread was worked on, from its leases and events."""

from collections.abc import Sequence
from itertools import groupby
from operator import itemgetter

from inbox_orch.shared.store.engine import Session

from ..domain.model import Holders, WorkTimes

_ASKED = "question_asked"
# Whatever ends a question; a release or a failure may also come without one.
_SETTLED = ("question_answered", "question_expired", "thread_released", "thread_deferred")
_PART = 500


def work_times(tx: Session, thread_ids: Sequence[str]) -> dict[str, WorkTimes]:
    """Of those threads that have been claimed."""
    found: dict[str, WorkTimes] = {}
    for start in range(0, len(thread_ids), _PART):
        part = tuple(thread_ids[start : start + _PART])
        marks = ", ".join("?" * len(part))
        claims = tx.all(
            "SELECT thread_id, min(acquired_at) FROM lease"
            f" WHERE thread_id IN ({marks}) GROUP BY thread_id",
            part,
        )
        found |= {row[0]: WorkTimes(row[1], 0, None, None) for row in claims}
        questions = tx.all(
            f"SELECT thread_id, kind, at FROM event WHERE thread_id IN ({marks})"
            f" AND kind IN ({', '.join('?' * (len(_SETTLED) + 1))}) ORDER BY thread_id, seq",
            (*part, _ASKED, *_SETTLED),
        )
        for thread_id, rows in groupby(questions, itemgetter(0)):
            if thread_id in found:
                history = [(row[1], row[2]) for row in rows]
                found[thread_id] = _with_questions(found[thread_id], history)
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


def _with_questions(times: WorkTimes, history: Sequence[tuple[str, int]]) -> WorkTimes:
    blocked_ms, asked_at, settled_at = 0, None, None
    for kind, at in history:
        if kind == _ASKED:
            asked_at = at
        elif asked_at is not None:
            # A wall clock that was set back meanwhile gives no time back.
            blocked_ms += max(0, at - asked_at)
            asked_at, settled_at = None, at
    return times._replace(blocked_ms=blocked_ms, asked_at=asked_at, settled_at=settled_at)
