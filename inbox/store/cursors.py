"""Rows of `read_cursor` and `reader`: how far an agent has read, and who reads a mailbox."""

from collections.abc import Mapping, Sequence

from inbox_orch.shared.store.engine import Session


def positions(tx: Session, agent: str, mailboxes: Sequence[str]) -> dict[str, int]:
    """The agent's cursor in each mailbox; a mailbox never read is at 0."""
    marks = ", ".join("?" * len(mailboxes))
    rows = tx.all(
        f"SELECT mailbox, position FROM read_cursor WHERE agent = ? AND mailbox IN ({marks})",
        (agent, *mailboxes),
    )
    return dict.fromkeys(mailboxes, 0) | {row[0]: row[1] for row in rows}


def advance(tx: Session, agent: str, moves: Mapping[str, int], now_ms: int) -> None:
    """Move cursors forward, never back: of two readers at once the larger wins."""
    tx.run_many(
        "INSERT INTO read_cursor (agent, mailbox, position, updated_at) VALUES (?, ?, ?, ?)"
        " ON CONFLICT (agent, mailbox) DO UPDATE SET"
        " position = max(position, excluded.position), updated_at = excluded.updated_at",
        [(agent, mailbox, position, now_ms) for mailbox, position in moves.items()],
    )


def unknown_to(tx: Session, agent: str, mailboxes: Sequence[str]) -> list[str]:
    """Those of the mailboxes that `agent` has never read."""
    return [
        mailbox
        for mailbox in mailboxes
        if tx.one("SELECT 1 FROM reader WHERE mailbox = ? AND agent = ?", (mailbox, agent)) is None
    ]


def note_reader(tx: Session, agent: str, mailboxes: Sequence[str], now_ms: int) -> None:
    """Remember that `agent` reads these mailboxes."""
    tx.run_many(
        "INSERT INTO reader (mailbox, agent, first_seen_at) VALUES (?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        [(mailbox, agent, now_ms) for mailbox in mailboxes],
    )


def has_reader(tx: Session, mailbox: str) -> bool:
    """Whether the mailbox has ever been read."""
    row = tx.one("SELECT 1 FROM reader WHERE mailbox = ? LIMIT 1", (mailbox,))
    return row is not None


def known_mailboxes(tx: Session) -> list[str]:
    """Mailboxes that have been read, for "did you mean"."""
    return [row[0] for row in tx.all("SELECT DISTINCT mailbox FROM reader")]


def delivered(tx: Session, thread_ids: Sequence[str]) -> set[str]:
    """Those of the threads whose first message some agent's cursor has passed."""
    marks = ", ".join("?" * len(thread_ids))
    rows = tx.all(
        f"SELECT t.id FROM thread AS t WHERE t.id IN ({marks}) AND EXISTS"
        " (SELECT 1 FROM read_cursor AS c WHERE c.mailbox = t.mailbox AND c.position >="
        " (SELECT min(m.id) FROM message AS m WHERE m.thread_id = t.id))",
        tuple(thread_ids),
    )
    return {row[0] for row in rows}
