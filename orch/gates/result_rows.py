"""Rows of what gates have come to, by the tree that they judged.

`ground` is `grounds.ground_digest`: another gate, set-up or tool is another row.
"""

import json

from inbox_orch.shared.store.engine import Session, Transaction

from .grounds import ALONE
from .results import GateResult

STORED = ("passed", "failed")
"""The states that stay true of a tree. What could not be judged is tried again, and why something
was skipped is known without looking."""

_AFTER = ALONE[:-1] + chr(ord(ALONE[-1]) + 1)


def get(session: Session, run_id: str, tree: str, gate: str, ground: str) -> GateResult | None:
    """What the gate has come to on that tree, `reused`; None when it was not judged so."""
    row = session.one(
        "SELECT result FROM gate_result WHERE run_id = ? AND tree = ? AND gate = ? AND ground = ?",
        (run_id, tree, gate, ground),
    )
    if row is None:
        return None
    return GateResult.from_json(json.loads(row[0]))._replace(reused=True)


def alone(session: Session, run_id: str, tree: str, gate: str) -> GateResult | None:
    """What the gate has come to on that tree judged by itself, on whatever ground, the last time;
    None when it never was. So the result of a base is known again."""
    row = session.one(
        "SELECT result FROM gate_result WHERE run_id = ? AND tree = ? AND gate = ?"
        " AND ground >= ? AND ground < ? ORDER BY created_at DESC, ground LIMIT 1",
        (run_id, tree, gate, ALONE, _AFTER),
    )
    if row is None:
        return None
    return GateResult.from_json(json.loads(row[0]))._replace(reused=True)


def put(tx: Transaction, run_id: str, tree: str, ground: str, result: GateResult) -> bool:
    """Store a result; of two for the same, the later one holds. False for one of a state that is
    not stored. The artifact with its output is not named: nothing would keep it from being
    pruned."""
    if result.state not in STORED:
        return False
    facts = result._replace(artifact=None, reused=False).as_json()
    tx.run(
        "INSERT INTO gate_result (run_id, tree, gate, ground, result, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (run_id, tree, gate, ground)"
        " DO UPDATE SET result = excluded.result, created_at = excluded.created_at",
        (run_id, tree, result.gate, ground, json.dumps(facts), tx.now.wall_ms),
    )
    return True
