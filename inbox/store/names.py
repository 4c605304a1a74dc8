"""Names by their beginning, found by probes of an index: no query goes through all threads."""

from collections.abc import Sequence

from inbox_orch.shared.store.engine import Session

from . import threads as thread_rows

# Of so many threads the newest are looked at; a state that is rare among them is not looked for
# any further.
_NEWEST = 2_000
# Behind every character that a name can have.
_BEHIND = "\U0010ffff"


def threads(
    tx: Session,
    beginning: str,
    states: Sequence[str],
    agent: str | None,
    reads: Sequence[str],
    limit: int,
) -> list[tuple[str, str, str]]:
    """(id, state, subject) of the newest threads that the agent may see, in any of the states."""
    visible, parameters = thread_rows.visibility(agent, reads)
    among = f" AND t.state IN ({', '.join('?' * len(states))})" if states else ""
    rows = tx.all(
        "SELECT t.id, t.state, t.subject FROM (SELECT number FROM thread"
        " WHERE id >= ? AND id < ? ORDER BY id DESC LIMIT ?) AS newest"
        f" CROSS JOIN thread AS t ON t.number = newest.number WHERE {visible}{among}"
        " ORDER BY t.id DESC LIMIT ?",
        (beginning, beginning + _BEHIND, _NEWEST, *parameters, *states, limit),
    )
    return [(row[0], row[1], row[2]) for row in rows]


def mailboxes(tx: Session, beginning: str, limit: int, *, read: bool = True) -> list[str]:
    """Mailboxes with a thread, and with `read` those that have been read."""
    found = _distinct(tx, "thread", "mailbox", beginning, limit)
    if read:
        found += _distinct(tx, "reader", "mailbox", beginning, limit)
    return sorted(set(found))[:limit]


def agents(tx: Session, beginning: str, limit: int) -> list[str]:
    """Agents that have sent a thread, and those that have read a mailbox."""
    found = _distinct(tx, "thread", "sender", beginning, limit)
    rows = tx.all(
        "SELECT DISTINCT agent FROM reader WHERE agent >= ? AND agent < ? ORDER BY agent LIMIT ?",
        (beginning, beginning + _BEHIND, limit),
    )
    return sorted({*found, *(row[0] for row in rows)})[:limit]


def _distinct(tx: Session, table: str, column: str, beginning: str, limit: int) -> list[str]:
    """The values of an indexed column that begin so, by one probe of the index for each."""
    rows = tx.all(
        f"WITH RECURSIVE known (name) AS (SELECT min({column}) FROM {table} WHERE {column} >= ?"
        f" UNION ALL SELECT (SELECT min({column}) FROM {table} WHERE {column} > known.name)"
        " FROM known WHERE known.name < ?)"
        " SELECT name FROM known WHERE name < ? LIMIT ?",
        (beginning, beginning + _BEHIND, beginning + _BEHIND, limit),
    )
    return [row[0] for row in rows]
