"""Rows of `surroundings`: what was found out about a base, once for each tree in a run."""

import json

from inbox_orch.shared.store.engine import Session, Transaction

from .definitions import Gate
from .judging import Base
from .look import Found
from .proving import Proof, Surroundings, base_by


def get(session: Session, run_id: str, tree: str) -> Surroundings | None:
    """What is known of a base by its tree; None when nothing was tried there."""
    row = session.one(
        "SELECT found FROM surroundings WHERE run_id = ? AND tree = ?", (run_id, tree)
    )
    return None if row is None else Surroundings.from_json(json.loads(row[0]))


def put(tx: Transaction, run_id: str, tree: str, found: Found, proofs: list[Proof]) -> Surroundings:
    """Store what gates have come to on a base, beside what is known of others there; returns all
    that is known now. Of two leaders that try one gate, the later one holds."""
    known = (get(tx, run_id, tree) or Surroundings()).with_proofs(found, proofs)
    tx.run(
        "INSERT INTO surroundings (run_id, tree, found, created_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (run_id, tree)"
        " DO UPDATE SET found = excluded.found, created_at = excluded.created_at",
        (run_id, tree, json.dumps(known.as_json()), tx.now.wall_ms),
    )
    return known


def base_of(session: Session, run_id: str, tree: str, gate: Gate) -> Base:
    """What a gate is judged beside: how it stands on the base with this tree."""
    known = get(session, run_id, tree)
    return base_by(None if known is None else known.proof(gate))
