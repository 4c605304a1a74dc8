"""Rows of `visit`."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from inbox_orch.shared.store.engine import Session

from .visits import Visit

_COLUMNS = ", ".join(Visit._fields)
_BRIEF = ", ".join("NULL" if name == "result" else name for name in Visit._fields)
_AT_ONCE = 500


def insert(tx: Session, values: Mapping[str, Any]) -> None:
    """A new visit; the keys are column names. The database refuses a second live one."""
    columns = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    tx.run(f"INSERT INTO visit ({columns}) VALUES ({marks})", dict(values))


def begin_work(tx: Session, attempt_id: str, mailbox: str, thread_id: str, now_ms: int) -> None:
    """The one visit of an attempt without a blueprint."""
    tx.run(
        "INSERT INTO visit (attempt_id, number, stage, nth, kind, state, mailbox, thread_id,"
        " created_at) VALUES (?, 1, 'work', 1, 'agent', 'live', ?, ?, ?)",
        (attempt_id, mailbox, thread_id, now_ms),
    )


def end_live(tx: Session, attempt_id: str, state: str, now_ms: int) -> bool:
    """End the live visit with its attempt; False when there is none."""
    return (
        tx.run(
            "UPDATE visit SET state = ?, ended_at = ? WHERE attempt_id = ? AND ended_at IS NULL",
            (state, now_ms, attempt_id),
        )
        == 1
    )


def update(tx: Session, visit: Visit, changes: Mapping[str, Any]) -> bool:
    """Change columns of a visit that lives; False when it is over."""
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    return (
        tx.run(
            f"UPDATE visit SET {assignments} WHERE attempt_id = :_id AND number = :_number"
            " AND ended_at IS NULL",
            {**changes, "_id": visit.attempt_id, "_number": visit.number},
        )
        == 1
    )


def of_attempt(tx: Session, attempt_id: str) -> list[Visit]:
    """The visits of an attempt, in order."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM visit WHERE attempt_id = ? ORDER BY number", (attempt_id,)
    )
    return [Visit._make(row) for row in rows]


def of_attempts(tx: Session, attempt_ids: Collection[str]) -> dict[str, list[Visit]]:
    """The visits of each of the attempts, in order."""
    found: dict[str, list[Visit]] = {attempt_id: [] for attempt_id in attempt_ids}
    for attempt_id in found:
        found[attempt_id] = of_attempt(tx, attempt_id)
    return found


def briefly_of(tx: Session, attempt_ids: Sequence[str]) -> dict[str, list[Visit]]:
    """The visits of each of the attempts, in order, without what they came to, which may be long:
    `result` is None in all."""
    found: dict[str, list[Visit]] = {attempt_id: [] for attempt_id in attempt_ids}
    for begin in range(0, len(attempt_ids), _AT_ONCE):
        some = attempt_ids[begin : begin + _AT_ONCE]
        marks = ", ".join("?" * len(some))
        rows = tx.all(
            f"SELECT {_BRIEF} FROM visit WHERE attempt_id IN ({marks}) ORDER BY attempt_id, number",
            tuple(some),
        )
        for row in rows:
            found[row[0]].append(Visit._make(row))
    return found


def live_of(tx: Session, attempt_id: str) -> Visit | None:
    """The live visit of an attempt."""
    row = tx.one(
        f"SELECT {_COLUMNS} FROM visit WHERE attempt_id = ? AND ended_at IS NULL", (attempt_id,)
    )
    return None if row is None else Visit._make(row)
