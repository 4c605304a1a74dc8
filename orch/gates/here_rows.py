"""Rows that lead from a folder to the attempt whose worktree it is, and to what is known of its
run's gates."""

import json

from inbox_orch.shared.store.engine import Session

from ..runs.model import Attempt
from .proving import Surroundings

_COLUMNS = ", ".join(Attempt._fields)


def with_worktree_called(session: Session, name: str) -> list[Attempt]:
    """The attempts that have, or had, a worktree whose folder has this name, newest first; those
    whose worktree was taken away are left out."""
    rows = session.all(
        f"SELECT {_COLUMNS} FROM attempt WHERE removed_at IS NULL"
        " AND substr(worktree_path, -length(:end)) = :end ORDER BY id DESC",
        {"end": f"/{name}"},
    )
    found = [Attempt._make(row) for row in rows]
    return [a._replace(fatal=bool(a.fatal), goes_back=bool(a.goes_back)) for a in found]


def newest_surroundings(session: Session, run_id: str) -> Surroundings | None:
    """What was found out last about a base of a run; None when nothing was."""
    row = session.one(
        "SELECT found FROM surroundings WHERE run_id = ? ORDER BY created_at DESC LIMIT 1",
        (run_id,),
    )
    return None if row is None else Surroundings.from_json(json.loads(row[0]))
