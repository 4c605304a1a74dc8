"""Rows that `integrate` reads and changes: accepted attempts, and intents that are of a run and not
of one attempt."""

from inbox_orch.shared.store.engine import Session

from ..attempts.rows import from_row
from ..runs.model import Attempt

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
    """Attempts that did not merge, of tasks with another attempt under way."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM attempt AS a JOIN task AS t ON t.id = a.task_id"
        " WHERE a.run_id = ? AND a.conflict IS NOT NULL"
        " AND t.state IN ('pending', 'active', 'blocked') ORDER BY a.id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def once_accepted(tx: Session, run_id: str) -> list[Attempt]:
    """Accepted attempts that have met no conflict, of tasks with another attempt under way."""
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


def waits_for_integration(tx: Session, run_id: str) -> bool:
    """Whether a task's accepted commits are in no integration of its run that is done."""
    row = tx.only(
        "SELECT EXISTS (SELECT 1 FROM task AS t WHERE t.run_id = ? AND t.accepted_head IS NOT NULL"
        " AND NOT EXISTS (SELECT 1 FROM intent AS i, json_each(i.data, '$.merged') AS m"
        " WHERE i.run_id = t.run_id AND i.kind = 'integrate' AND i.outcome = 'done'"
        " AND json_extract(m.value, '$[0]') = t.accepted_attempt))",
        (run_id,),
    )
    return bool(row[0])
