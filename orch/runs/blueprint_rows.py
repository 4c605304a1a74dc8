"""Rows of `blueprint`: the texts that the runs' tasks go by, each as it was at first."""

from inbox_orch.shared.store.engine import Session


def keep(tx: Session, run_id: str, blueprint_id: str, text: str, now_ms: int) -> str:
    """Keep a text, unless the run has one of this id already; returns the one that it has."""
    tx.run(
        "INSERT INTO blueprint (run_id, id, text, created_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (run_id, blueprint_id, text, now_ms),
    )
    return text_of(tx, run_id, blueprint_id)


def text_of(tx: Session, run_id: str, blueprint_id: str) -> str:
    """The text of a blueprint that a task of the run goes by."""
    row = tx.only("SELECT text FROM blueprint WHERE run_id = ? AND id = ?", (run_id, blueprint_id))
    return str(row[0])


def of_run(tx: Session, run_id: str) -> dict[str, str]:
    """The texts of a run's blueprints by their ids."""
    rows = tx.all("SELECT id, text FROM blueprint WHERE run_id = ? ORDER BY id", (run_id,))
    return {row[0]: row[1] for row in rows}
