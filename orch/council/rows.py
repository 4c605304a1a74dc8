"""Rows of `council` and the tables beside it."""

import json
from collections.abc import Sequence

from inbox_orch.shared.store.engine import Session

from .stored import Round, StoredCouncil, StoredOverride, StoredReply, StoredReport, StoredSeat

_TABLES = {
    StoredCouncil: "council",
    Round: "council_round",
    StoredSeat: "council_seat",
    StoredReply: "council_reply",
    StoredOverride: "council_override",
    StoredReport: "council_report",
}
Stored = StoredCouncil | Round | StoredSeat | StoredReply | StoredOverride | StoredReport


def insert(tx: Session, row: Stored) -> None:
    """A new row of the table that it belongs to."""
    columns, marks = ", ".join(row._fields), ", ".join("?" * len(row))
    tx.run(f"INSERT INTO {_TABLES[type(row)]} ({columns}) VALUES ({marks})", tuple(row))


def reply(tx: Session, attempt_id: str) -> StoredReply | None:
    """What an attempt came to."""
    row = tx.one(
        f"SELECT {', '.join(StoredReply._fields)} FROM council_reply WHERE attempt_id = ?",
        (attempt_id,),
    )
    return None if row is None else StoredReply._make(row)


def get(tx: Session, run_id: str) -> StoredCouncil | None:
    """The council that a run is, None for any other run."""
    row = tx.one(
        f"SELECT {', '.join(StoredCouncil._fields)} FROM council WHERE run_id = ?", (run_id,)
    )
    return None if row is None else StoredCouncil._make(row)


def run_ids(tx: Session) -> list[str]:
    """The runs that are councils, oldest first."""
    rows = tx.all("SELECT run_id FROM council ORDER BY created_at, run_id")
    return [row[0] for row in rows]


def rounds(tx: Session, run_id: str) -> list[Round]:
    """The rounds of a council, in order."""
    rows = tx.all(
        f"SELECT {', '.join(Round._fields)} FROM council_round WHERE run_id = ? ORDER BY number",
        (run_id,),
    )
    return [Round._make(row) for row in rows]


def close_round(tx: Session, run_id: str, number: int, closed_by: str, now_ms: int) -> bool:
    """End a round; False when another process has."""
    return (
        tx.run(
            "UPDATE council_round SET closed_at = ?, closed_by = ?"
            " WHERE run_id = ? AND number = ? AND closed_at IS NULL",
            (now_ms, closed_by, run_id, number),
        )
        == 1
    )


def seats(tx: Session, run_id: str) -> list[StoredSeat]:
    """The seats of every round of a council, in their order."""
    rows = tx.all(
        f"SELECT {', '.join(StoredSeat._fields)} FROM council_seat WHERE run_id = ?"
        " ORDER BY round, position",
        (run_id,),
    )
    return [StoredSeat._make(row) for row in rows]


def seat_of_task(tx: Session, task_id: str) -> StoredSeat | None:
    """The seat that a task asks, None for any other task."""
    row = tx.one(
        f"SELECT {', '.join(StoredSeat._fields)} FROM council_seat WHERE task_id = ?", (task_id,)
    )
    return None if row is None else StoredSeat._make(row)


def note_closing(tx: Session, seat: StoredSeat, closing: str) -> None:
    """Remember how far a seat had come when its round was closed without it."""
    tx.run(
        "UPDATE council_seat SET closing = ? WHERE run_id = ? AND round = ? AND position = ?",
        (closing, seat.run_id, seat.round, seat.position),
    )


def unsettled(tx: Session, run_id: str) -> list[tuple[str, str]]:
    """(attempt, task) of the attempts whose thread has come to an end and that have not been
    looked at, oldest first."""
    rows = tx.all(
        "SELECT a.id, a.task_id FROM attempt AS a JOIN council_seat AS s ON s.task_id = a.task_id"
        " WHERE a.run_id = ? AND a.state NOT IN ('allocating', 'provisioned', 'offered',"
        " 'running', 'blocked', 'succeeded', 'rejected')"
        " AND NOT EXISTS (SELECT 1 FROM council_reply AS r WHERE r.attempt_id = a.id)"
        " ORDER BY a.created_at, a.id",
        (run_id,),
    )
    return [(row[0], row[1]) for row in rows]


def threads_of_round(tx: Session, run_id: str, number: int) -> list[str]:
    """Every thread that was sent in a round."""
    rows = tx.all(
        "SELECT a.thread_id FROM attempt AS a JOIN council_seat AS s ON s.task_id = a.task_id"
        " WHERE s.run_id = ? AND s.round = ? AND a.thread_id IS NOT NULL ORDER BY a.id",
        (run_id, number),
    )
    return [row[0] for row in rows]


def replies(tx: Session, run_id: str, *, texts: bool = True) -> list[StoredReply]:
    """What every attempt of a council came to; `raw` is left out (None) without `texts`."""
    columns = [c if texts or c != "raw" else "NULL" for c in StoredReply._fields]
    rows = tx.all(
        f"SELECT {', '.join(columns)} FROM council_reply WHERE run_id = ?"
        " ORDER BY created_at, attempt_id",
        (run_id,),
    )
    found = [StoredReply._make(row) for row in rows]
    return [reply._replace(late=bool(reply.late)) for reply in found]


def overrides(tx: Session, run_id: str) -> list[StoredOverride]:
    """What leaders have settled, in order."""
    rows = tx.all(
        f"SELECT {', '.join(StoredOverride._fields)} FROM council_override WHERE run_id = ?"
        " ORDER BY number",
        (run_id,),
    )
    found = [StoredOverride._make(row) for row in rows]
    return [override._replace(forced=bool(override.forced)) for override in found]


def revision(tx: Session, run_id: str) -> int:
    """The newest revision of what is counted, 0 before the first round is closed."""
    row = tx.only("SELECT max(number) FROM council_revision WHERE run_id = ?", (run_id,))
    return int(row[0] or 0)


def add_revision(tx: Session, run_id: str, cause: str, now_ms: int) -> int:
    """One more revision; its number."""
    number = revision(tx, run_id) + 1
    tx.run(
        "INSERT INTO council_revision (run_id, number, cause, created_at) VALUES (?, ?, ?, ?)",
        (run_id, number, cause, now_ms),
    )
    return number


def revisions(tx: Session, run_id: str) -> list[tuple[int, str, int]]:
    """(number, cause, wall-clock milliseconds) of every revision, in order."""
    rows = tx.all(
        "SELECT number, cause, created_at FROM council_revision WHERE run_id = ? ORDER BY number",
        (run_id,),
    )
    return [(row[0], row[1], row[2]) for row in rows]


def report(tx: Session, run_id: str, name: str, sha256: str) -> StoredReport | None:
    """A report with this content, if it has been stored before."""
    row = tx.one(
        f"SELECT {', '.join(StoredReport._fields)} FROM council_report"
        " WHERE run_id = ? AND name = ? AND sha256 = ?",
        (run_id, name, sha256),
    )
    return None if row is None else StoredReport._make(row)


def reports(tx: Session, run_id: str) -> list[StoredReport]:
    """Every stored report of a council, oldest first."""
    rows = tx.all(
        f"SELECT {', '.join(StoredReport._fields)} FROM council_report WHERE run_id = ?"
        " ORDER BY created_at, name, sha256",
        (run_id,),
    )
    return [StoredReport._make(row) for row in rows]


def folded(tx: Session) -> dict[str, dict[str, str]]:
    """What the tables hold, in the form in which events are folded (domain/council_folding)."""
    rounds_held = tx.all(
        "SELECT run_id || '/' || number, CASE WHEN closed_at IS NULL THEN 'open' ELSE 'closed' END"
        " FROM council_round"
    )
    replies_held = tx.all("SELECT attempt_id, state || ' ' || raw_sha256 FROM council_reply")
    overrides_held = tx.all("SELECT run_id || '/' || number, kind, items FROM council_override")
    revisions_held = tx.all("SELECT run_id, max(number) FROM council_revision GROUP BY run_id")
    reports_held = tx.all(
        "SELECT run_id || '/' || name || '/' || sha256, revision FROM council_report"
    )
    return {
        "round": {row[0]: row[1] for row in rounds_held},
        "reply": {row[0]: row[1] for row in replies_held},
        "override": {row[0]: _settled(row[1], json.loads(row[2])) for row in overrides_held},
        "revision": {row[0]: str(row[1]) for row in revisions_held},
        "report": {row[0]: str(row[1]) for row in reports_held},
    }


def _settled(kind: str, items: Sequence[str]) -> str:
    return " ".join((kind, *items))
