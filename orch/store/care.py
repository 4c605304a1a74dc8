"""What the scheduler's tables hold, for the comparison with the events, and what is left open."""

import json
import sqlite3
from collections.abc import Iterator

from ..domain.folding import Fact, Folded
from ..domain.model import Attempt
from ..domain.states import NEEDS_WORKTREE
from . import councils


def facts(connection: sqlite3.Connection) -> Iterator[Fact]:
    """The events of the scheduler in order, a few in memory at a time."""
    cursor = connection.execute(
        "SELECT seq, kind, run_id, task_id, attempt_id, data FROM event"
        " WHERE run_id IS NOT NULL ORDER BY seq"
    )
    for seq, kind, run_id, task_id, attempt_id, data in cursor:
        yield Fact(seq, kind, run_id, task_id, attempt_id, json.loads(data))


def stored(connection: sqlite3.Connection) -> Folded:
    """The same as the tables have it."""
    states = {
        kind: {row[0]: row[1] for row in connection.execute(f"SELECT id, state FROM {kind}")}
        for kind in ("run", "task", "attempt")
    }
    rows = connection.execute("SELECT task_id, upstream_id, condition FROM dependency")
    held = {**states, **councils.folded(connection)}
    return Folded(held, {(row[0], row[1], row[2]) for row in rows}, [])


def with_worktree(connection: sqlite3.Connection) -> list[Attempt]:
    """Live attempts whose worktree has to be there."""
    rows = connection.execute(
        f"SELECT {', '.join(Attempt._fields)} FROM attempt WHERE ended_at IS NULL"
        " AND worktree_path IS NOT NULL"
        f" AND state IN ({', '.join('?' * len(NEEDS_WORKTREE))}) ORDER BY id",
        NEEDS_WORKTREE,
    ).fetchall()
    return [Attempt._make(row) for row in rows]
