"""What the scheduler's tables hold, for the comparison with the events, and what is left open."""

import json
from collections.abc import Iterator

from inbox_orch.shared.store.engine import Session

from ..council import rows as councils
from ..patches import event_folding as of_patches
from ..patches import rows as patches
from ..runs.model import Attempt
from ..runs.states import NEEDS_WORKTREE
from .event_folding import Fact, Folded


def facts(tx: Session) -> Iterator[Fact]:
    """The events of the scheduler in order, a few in memory at a time."""
    rows = tx.stream(
        "SELECT seq, kind, run_id, task_id, attempt_id, data FROM event"
        " WHERE run_id IS NOT NULL ORDER BY seq"
    )
    for seq, kind, run_id, task_id, attempt_id, data in rows:
        yield Fact(seq, kind, run_id, task_id, attempt_id, json.loads(data))


def stored(tx: Session) -> Folded:
    """What the tables say, in the form in which the folded events are compared with them."""
    states = {
        kind: {row[0]: row[1] for row in tx.stream(f"SELECT id, state FROM {kind}")}
        for kind in ("run", "task", "attempt")
    }
    rows = tx.all("SELECT task_id, upstream_id, condition FROM dependency")
    ledger = of_patches.stored(patches.every_id(tx), patches.every_entry(tx))
    held = {**states, **councils.folded(tx), **ledger}
    return Folded(held, {(row[0], row[1], row[2]) for row in rows}, [])


def with_worktree(tx: Session) -> list[Attempt]:
    """Live attempts whose worktree has to be there."""
    rows = tx.all(
        f"SELECT {', '.join(Attempt._fields)} FROM attempt WHERE ended_at IS NULL"
        " AND worktree_path IS NOT NULL"
        f" AND state IN ({', '.join('?' * len(NEEDS_WORKTREE))}) ORDER BY id",
        NEEDS_WORKTREE,
    )
    return [Attempt._make(row) for row in rows]
