"""Names of runs, councils and tasks, for shells that complete and for "did you mean"."""

from inbox_orch.shared.store.engine import Session

# Behind every character that a name can have.
_BEHIND = "\U0010ffff"


def runs(tx: Session, beginning: str, limit: int) -> list[tuple[str, str, str]]:
    """(name, state, title) of the newest runs, those first that are not closed."""
    rows = tx.all(
        "SELECT name, state, title FROM run WHERE name >= ? AND name < ?"
        " ORDER BY state = 'closed', created_at DESC LIMIT ?",
        (beginning, beginning + _BEHIND, limit),
    )
    return [(row[0], row[1], row[2]) for row in rows]


def councils(tx: Session, beginning: str, limit: int) -> list[tuple[str, str, str]]:
    """(name, state, title) of the newest councils, those first that are not closed."""
    rows = tx.all(
        "SELECT r.name, r.state, r.title FROM run AS r JOIN council AS c ON c.run_id = r.id"
        " WHERE r.name >= ? AND r.name < ? ORDER BY r.state = 'closed', r.created_at DESC LIMIT ?",
        (beginning, beginning + _BEHIND, limit),
    )
    return [(row[0], row[1], row[2]) for row in rows]


def tasks(tx: Session, run_id: str, beginning: str, limit: int) -> list[tuple[str, str, str]]:
    """(key, state, title) of a run's tasks, by key."""
    rows = tx.all(
        "SELECT key, state, title FROM task WHERE run_id = ? AND key >= ? AND key < ?"
        " ORDER BY key LIMIT ?",
        (run_id, beginning, beginning + _BEHIND, limit),
    )
    return [(row[0], row[1], row[2]) for row in rows]


def attempts(tx: Session, run_id: str, beginning: str, limit: int) -> list[tuple[str, str]]:
    """(KEY/NUMBER, state) of a run's attempts, by key and number."""
    key = beginning.partition("/")[0]
    rows = tx.all(
        "SELECT t.key || '/' || a.number, a.state FROM task AS t"
        " JOIN attempt AS a ON a.task_id = t.id"
        " WHERE t.run_id = ? AND t.key >= ? AND t.key < ? ORDER BY t.key, a.number LIMIT ?",
        (run_id, key, key + _BEHIND, limit),
    )
    return [(row[0], row[1]) for row in rows if row[0].startswith(beginning)]


def patches(tx: Session, run_id: str, beginning: str, limit: int) -> list[tuple[str, str]]:
    """(KEY/ATTEMPT/NUMBER, how it came) of a run's patches, by key and numbers."""
    key = beginning.partition("/")[0]
    rows = tx.all(
        "SELECT t.key || '/' || a.number || '/' || p.number, p.way FROM task AS t"
        " JOIN attempt AS a ON a.task_id = t.id JOIN patch AS p ON p.attempt_id = a.id"
        " WHERE t.run_id = ? AND t.key >= ? AND t.key < ?"
        " ORDER BY t.key, a.number, p.number LIMIT ?",
        (run_id, key, key + _BEHIND, limit),
    )
    return [(row[0], row[1]) for row in rows if row[0].startswith(beginning)]
