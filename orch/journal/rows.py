"""Rows of `intent`: what a process is about to do, and which process that is."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.store.engine import Owner, Session

from ..runs.model import Attempt

OWNER = "owner_boot_id, owner_process, owner_started, owner_namespace"


class Intent(NamedTuple):
    """What is about to be done to git, written down before it is done."""

    number: int
    run_id: str
    attempt_id: str | None
    kind: str
    data: dict[str, Any]
    opened_at: int
    owner: Owner


def open_intent(
    tx: Session,
    attempt: Attempt,
    kind: str,
    data: Mapping[str, Any],
    *,
    owner: Owner,
    now_ms: int,
) -> None:
    """Write down what is about to be done to an attempt."""
    tx.run(
        f"INSERT INTO intent (run_id, attempt_id, kind, data, opened_at, {OWNER})"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (attempt.run_id, attempt.id, kind, json.dumps(data), now_ms, *owner),
    )


def close_intent(
    tx: Session,
    attempt_id: str,
    kind: str,
    outcome: str,
    owner: Owner,
    now_ms: int,
) -> bool:
    """It is done or undone; False when another process has closed it or taken it over."""
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
    """Become the process that carries it out; False when another was quicker."""
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


def is_begun(tx: Session, attempt: Attempt, kind: str) -> bool:
    """Whether something of a kind was begun for an attempt and is not confirmed, by anybody."""
    row = tx.only(
        "SELECT EXISTS (SELECT 1 FROM intent"
        " WHERE run_id = ? AND attempt_id = ? AND kind = ? AND closed_at IS NULL)",
        (attempt.run_id, attempt.id, kind),
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


def open_integration(
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


def note_by_number(tx: Session, number: int, data: Mapping[str, Any], owner: Owner) -> bool:
    """Add to what an open intent says; False when it is not this owner's any more."""
    return (
        tx.run(
            "UPDATE intent SET data = json_patch(data, ?)"
            f" WHERE number = ? AND closed_at IS NULL AND ({OWNER}) = (?, ?, ?, ?)",
            (json.dumps(data), number, *owner),
        )
        == 1
    )


def close_by_number(tx: Session, number: int, outcome: str, owner: Owner, now_ms: int) -> bool:
    """It is done or undone; False when another process has closed it or taken it over."""
    return (
        tx.run(
            "UPDATE intent SET closed_at = ?, outcome = ?"
            f" WHERE number = ? AND closed_at IS NULL AND ({OWNER}) = (?, ?, ?, ?)",
            (now_ms, outcome, number, *owner),
        )
        == 1
    )
