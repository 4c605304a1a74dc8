"""Files beside the database that stay though no thread has them: what was handed in as text, what
gates and actions have put out. Rows of `kept_file`.

`owner` is the id of what a file belongs to. As long as that is not over, nothing collects the file;
what was handed in is never over.
"""

from .artifacts import Stored
from .engine import Session

KINDS = ("handed_in", "output")
SINCE = 8
"""The version of the schema that has brought the table."""


def keep(tx: Session, stored: Stored, owner: str, kind: str, now_ms: int) -> None:
    """Keep a file for an owner; again is the same."""
    assert kind in KINDS
    tx.run(
        "INSERT INTO kept_file (sha256, owner, kind, bytes, created_at) VALUES (?, ?, ?, ?, ?)"
        " ON CONFLICT DO NOTHING",
        (stored.sha256, owner, kind, stored.size, now_ms),
    )


def has(tx: Session, sha256: str, owner: str) -> bool:
    """Whether a file is kept for this owner."""
    asked = "SELECT 1 FROM kept_file WHERE sha256 = ? AND owner = ? LIMIT 1"
    return tx.one(asked, (sha256, owner)) is not None


def is_kept(tx: Session, sha256: str) -> bool:
    """Whether a file is kept for anything."""
    return tx.one("SELECT 1 FROM kept_file WHERE sha256 = ? LIMIT 1", (sha256,)) is not None


def set_over(tx: Session, owner: str, at_ms: int | None) -> None:
    """What an owner has put out is over since then, or with None is not."""
    tx.run("UPDATE kept_file SET over_at = ? WHERE owner = ? AND kind = 'output'", (at_ms, owner))


def any_over(tx: Session, over_before_ms: int) -> bool:
    """Whether `let_go` would let anything go."""
    asked = "SELECT 1 FROM kept_file WHERE over_at IS NOT NULL AND over_at <= ? LIMIT 1"
    return tx.one(asked, (over_before_ms,)) is not None


def let_go(tx: Session, over_before_ms: int) -> list[str]:
    """Keep no more what has been over since before then; the digests."""
    rows = tx.all(
        "DELETE FROM kept_file WHERE over_at IS NOT NULL AND over_at <= ? RETURNING sha256",
        (over_before_ms,),
    )
    return [row[0] for row in rows]


def to_let_go(tx: Session, over_before_ms: int) -> list[str]:
    """The digests that `let_go` would let go and nothing else keeps."""
    rows = tx.all(
        "SELECT sha256 FROM kept_file GROUP BY sha256"
        " HAVING sum(over_at IS NULL OR over_at > ?) = 0",
        (over_before_ms,),
    )
    return [row[0] for row in rows]
