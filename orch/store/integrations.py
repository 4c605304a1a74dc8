"""Rows that `integrate` reads and changes: accepted attempts, and intents that are of a run and not
of one attempt."""

import json
from collections.abc import Mapping
from typing import Any

from inbox_orch.shared.store.engine import Session

from ..domain.model import Attempt
from .attempts import OWNER, Owner, from_row

_COLUMNS = ", ".join("a." + column for column in Attempt._fields)


def accepted(tx: Session, run_id: str) -> list[Attempt]:
    """The accepted attempt of each task of a run that has one."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM task AS t"
        " JOIN attempt AS a ON a.id = t.accepted_attempt WHERE t.run_id = ?",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def in_open_conflict(tx: Session, run_id: str) -> list[Attempt]:
    """Attempts that did not merge, of tasks that are at it again."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM attempt AS a JOIN task AS t ON t.id = a.task_id"
        " WHERE a.run_id = ? AND a.conflict IS NOT NULL"
        " AND t.state IN ('pending', 'active', 'blocked') ORDER BY a.id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def once_accepted(tx: Session, run_id: str) -> list[Attempt]:
    """Accepted attempts that have met no conflict, of tasks that are at it again."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM attempt AS a JOIN task AS t ON t.id = a.task_id"
        " WHERE a.run_id = ? AND a.conflict IS NULL AND a.state = 'succeeded'"
        " AND t.state IN ('pending', 'active', 'blocked') ORDER BY a.id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def ever_accepted(tx: Session, run_id: str) -> list[Attempt]:
    """Every attempt of a run that was accepted, oldest first; accepted still or not."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM attempt AS a WHERE a.run_id = ? AND a.state = 'succeeded'"
        " AND a.head_commit IS NOT NULL ORDER BY a.id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def starting_from_integration(tx: Session, run_id: str) -> list[str]:
    """The ids of the tasks whose next attempt is to start from where work comes together."""
    rows = tx.all(
        "SELECT id FROM task WHERE run_id = ? AND state = 'pending'"
        " AND next_base_source = 'integration' ORDER BY number",
        (run_id,),
    )
    return [str(row[0]) for row in rows]


def open_intent(
    tx: Session,
    *,
    run_id: str,
    data: Mapping[str, Any],
    owner: Owner,
    now_ms: int,
) -> int:
    """Write down what is about to be done; returns the intent's number."""
    return tx.add(
        f"INSERT INTO intent (run_id, attempt_id, kind, data, opened_at, {OWNER})"
        " VALUES (?, NULL, 'integrate', ?, ?, ?, ?, ?, ?)",
        (run_id, json.dumps(data), now_ms, *owner),
    )


def note(tx: Session, number: int, data: Mapping[str, Any], owner: Owner) -> bool:
    """Add to what an open intent says; False when it is not this owner's any more."""
    return (
        tx.run(
            "UPDATE intent SET data = json_patch(data, ?)"
            f" WHERE number = ? AND closed_at IS NULL AND ({OWNER}) = (?, ?, ?, ?)",
            (json.dumps(data), number, *owner),
        )
        == 1
    )


def close_intent(tx: Session, number: int, outcome: str, owner: Owner, now_ms: int) -> bool:
    """It is done or undone; False when somebody else has closed it or taken it over."""
    return (
        tx.run(
            "UPDATE intent SET closed_at = ?, outcome = ?"
            f" WHERE number = ? AND closed_at IS NULL AND ({OWNER}) = (?, ?, ?, ?)",
            (now_ms, outcome, number, *owner),
        )
        == 1
    )
