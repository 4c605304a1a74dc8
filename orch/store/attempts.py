"""Rows of `attempt` and `intent`."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.store.engine import Row, Session

from ..domain.model import Attempt

_COLUMNS = ", ".join(Attempt._fields)
OWNER = "owner_boot_id, owner_process, owner_started, owner_namespace"


class Owner(NamedTuple):
    """The process that is carrying out an intent: its boot, its number in which PID namespace,
    and its start time."""

    boot_id: str
    process: int
    started: int
    namespace: int


class Intent(NamedTuple):
    """What is about to be done to git, written down before it is done."""

    number: int
    run_id: str
    attempt_id: str | None
    kind: str
    data: dict[str, Any]
    opened_at: int
    owner: Owner


def insert(tx: Session, values: Mapping[str, Any]) -> None:
    """A new attempt; the keys are column names. The database refuses a second live one."""
    columns = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    tx.run(f"INSERT INTO attempt ({columns}) VALUES ({marks})", dict(values))


def get(tx: Session, attempt_id: str) -> Attempt | None:
    """One attempt."""
    row = tx.one(f"SELECT {_COLUMNS} FROM attempt WHERE id = ?", (attempt_id,))
    return None if row is None else from_row(row)


def of_task(tx: Session, task_id: str) -> list[Attempt]:
    """The attempts at a task, in order."""
    rows = tx.all(f"SELECT {_COLUMNS} FROM attempt WHERE task_id = ? ORDER BY number", (task_id,))
    return [from_row(row) for row in rows]


def live_of_task(tx: Session, task_id: str) -> Attempt | None:
    """The live attempt at a task, if there is one."""
    row = tx.one(
        f"SELECT {_COLUMNS} FROM attempt WHERE task_id = ? AND ended_at IS NULL", (task_id,)
    )
    return None if row is None else from_row(row)


def live_of_run(tx: Session, run_id: str) -> list[Attempt]:
    """Every live attempt of a run, oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM attempt WHERE run_id = ? AND ended_at IS NULL ORDER BY id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def ended_with_worktree(tx: Session, run_id: str) -> list[Attempt]:
    """The ended attempts of a run whose worktrees nobody has cleaned up, oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM attempt WHERE run_id = ? AND ended_at IS NOT NULL"
        " AND worktree_path IS NOT NULL AND removed_at IS NULL ORDER BY id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def with_worktree(tx: Session, run_id: str) -> list[Attempt]:
    """The attempts of a run whose worktree was not taken away by clean-up, oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM attempt WHERE run_id = ? AND worktree_path IS NOT NULL"
        " AND removed_at IS NULL ORDER BY id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def of_run(tx: Session, run_id: str) -> list[Attempt]:
    """Every attempt of a run, oldest first."""
    rows = tx.all(
        f"SELECT {', '.join('a.' + c for c in Attempt._fields)} FROM task AS t"
        " JOIN attempt AS a ON a.task_id = t.id WHERE t.run_id = ? ORDER BY a.id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def removed_before(tx: Session, run_id: str, moment_ms: int) -> list[str]:
    """The ids of attempts whose worktree was taken away before a moment."""
    rows = tx.all("SELECT id FROM attempt WHERE run_id = ? AND removed_at < ?", (run_id, moment_ms))
    return [row[0] for row in rows]


def latest_by_task(tx: Session, run_id: str) -> dict[str, Attempt]:
    """The newest attempt of each task of a run."""
    rows = tx.all(
        f"SELECT {', '.join('a.' + c for c in Attempt._fields)} FROM task AS t"
        " JOIN attempt AS a ON a.task_id = t.id AND a.number = t.attempts WHERE t.run_id = ?",
        (run_id,),
    )
    return {attempt.task_id: attempt for attempt in map(from_row, rows)}


def update(
    tx: Session,
    attempt_id: str,
    changes: Mapping[str, Any],
    *,
    expected_state: str,
) -> bool:
    """Change columns if the attempt is still in the state that the caller saw."""
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    return (
        tx.run(
            f"UPDATE attempt SET {assignments} WHERE id = :_id AND state = :_state",
            {**changes, "_id": attempt_id, "_state": expected_state},
        )
        == 1
    )


# -- intents -------------------------------------------------------------------------------


def open_intent(
    tx: Session,
    *,
    run_id: str,
    attempt_id: str,
    kind: str,
    data: Mapping[str, Any],
    owner: Owner,
    now_ms: int,
) -> None:
    """Write down what is about to be done."""
    tx.run(
        f"INSERT INTO intent (run_id, attempt_id, kind, data, opened_at, {OWNER})"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (run_id, attempt_id, kind, json.dumps(data), now_ms, *owner),
    )


def close_intent(
    tx: Session,
    attempt_id: str,
    kind: str,
    outcome: str,
    owner: Owner,
    now_ms: int,
) -> bool:
    """It is done or undone; False when somebody else has closed it or taken it over."""
    return (
        tx.run(
            "UPDATE intent SET closed_at = ?, outcome = ?"
            f" WHERE attempt_id = ? AND kind = ? AND closed_at IS NULL"
            f" AND ({OWNER}) = (?, ?, ?, ?)",
            (now_ms, outcome, attempt_id, kind, *owner),
        )
        == 1
    )


def take_over_intent(tx: Session, number: int, old: Owner, new: Owner) -> bool:
    """Become the one who carries it out; False when somebody else was quicker."""
    return (
        tx.run(
            f"UPDATE intent SET ({OWNER}) = (?, ?, ?, ?)"
            f" WHERE number = ? AND closed_at IS NULL AND ({OWNER}) = (?, ?, ?, ?)",
            (*new, number, *old),
        )
        == 1
    )


def owns_intent(tx: Session, attempt_id: str, kind: str, owner: Owner) -> bool:
    """Whether it is still open and this owner's."""
    row = tx.only(
        "SELECT EXISTS (SELECT 1 FROM intent"
        f" WHERE attempt_id = ? AND kind = ? AND closed_at IS NULL AND ({OWNER}) = (?, ?, ?, ?))",
        (attempt_id, kind, *owner),
    )
    return bool(row[0])


def note_in_intent(
    tx: Session,
    attempt_id: str,
    kind: str,
    data: Mapping[str, Any],
    owner: Owner,
) -> bool:
    """Add to what an open intent says; False when it is not this owner's any more."""
    return (
        tx.run(
            "UPDATE intent SET data = json_patch(data, ?)"
            f" WHERE attempt_id = ? AND kind = ? AND closed_at IS NULL"
            f" AND ({OWNER}) = (?, ?, ?, ?)",
            (json.dumps(data), attempt_id, kind, *owner),
        )
        == 1
    )


def open_intents(tx: Session, run_id: str) -> list[Intent]:
    """What has been begun in a run and not been confirmed."""
    rows = tx.all(
        f"SELECT number, run_id, attempt_id, kind, data, opened_at, {OWNER}"
        " FROM intent WHERE run_id = ? AND closed_at IS NULL ORDER BY number",
        (run_id,),
    )
    return [
        Intent(number, run, attempt, kind, json.loads(data), opened_at, Owner(*owner))
        for number, run, attempt, kind, data, opened_at, *owner in map(tuple, rows)
    ]


def done_removals(tx: Session, run_id: str) -> dict[str, dict[str, Any]]:
    """What clean-up meant to do with each attempt whose worktree it has taken away."""
    rows = tx.all(
        "SELECT attempt_id, data FROM intent WHERE run_id = ? AND kind = 'cleanup'"
        " AND outcome = 'done' ORDER BY number",
        (run_id,),
    )
    return {attempt_id: json.loads(data) for attempt_id, data in rows}


def from_row(row: Row) -> Attempt:
    """What a row with the columns of an attempt says."""
    attempt = Attempt._make(row)
    return attempt._replace(fatal=bool(attempt.fatal), goes_back=bool(attempt.goes_back))
