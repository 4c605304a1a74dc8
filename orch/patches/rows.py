"""Rows of `patch`, `patch_entry` and `policy`; the first two are written once."""

from collections.abc import Sequence

from inbox_orch.shared.store.engine import Session

from .model import Entry, Patch

_PATCH = ", ".join(Patch._fields)
_ENTRY = ", ".join(Entry._fields)


def insert(tx: Session, patch: Patch) -> None:
    """A new patch."""
    marks = ", ".join("?" * len(patch))
    tx.run(f"INSERT INTO patch ({_PATCH}) VALUES ({marks})", tuple(patch))


def next_number(tx: Session, attempt_id: str) -> int:
    """The number of the next patch of an attempt."""
    row = tx.only("SELECT max(number) FROM patch WHERE attempt_id = ?", (attempt_id,))
    return int(row[0] or 0) + 1


def get(tx: Session, patch_id: str) -> Patch | None:
    """The patch of this id."""
    row = tx.one(f"SELECT {_PATCH} FROM patch WHERE id = ?", (patch_id.upper(),))
    return None if row is None else Patch._make(row)


def numbered(tx: Session, attempt_id: str, number: int) -> Patch | None:
    """A patch of an attempt by its number."""
    row = tx.one(
        f"SELECT {_PATCH} FROM patch WHERE attempt_id = ? AND number = ?", (attempt_id, number)
    )
    return None if row is None else Patch._make(row)


def same(tx: Session, attempt_id: str, base_tree: str, content: str) -> Patch | None:
    """The patch of an attempt that is the same as one that is handed in again."""
    row = tx.one(
        f"SELECT {_PATCH} FROM patch WHERE attempt_id = ? AND base_tree = ? AND content = ?",
        (attempt_id, base_tree, content),
    )
    return None if row is None else Patch._make(row)


def of_attempt(tx: Session, attempt_id: str) -> list[Patch]:
    """The patches of an attempt, in order."""
    rows = tx.all(f"SELECT {_PATCH} FROM patch WHERE attempt_id = ? ORDER BY number", (attempt_id,))
    return [Patch._make(row) for row in rows]


def of_run(tx: Session, run_id: str) -> list[Patch]:
    """The patches of a run, oldest first."""
    rows = tx.all(f"SELECT {_PATCH} FROM patch WHERE run_id = ? ORDER BY created_at, id", (run_id,))
    return [Patch._make(row) for row in rows]


def replacing(tx: Session, patch_id: str) -> list[Patch]:
    """The patches that were handed in instead of another."""
    rows = tx.all(f"SELECT {_PATCH} FROM patch WHERE replaces = ? ORDER BY id", (patch_id,))
    return [Patch._make(row) for row in rows]


def add_entry(tx: Session, entry: Entry) -> None:
    """Something that is said of a patch."""
    marks = ", ".join("?" * len(entry))
    tx.run(f"INSERT INTO patch_entry ({_ENTRY}) VALUES ({marks})", tuple(entry))


def entries_of(tx: Session, patch_id: str) -> list[Entry]:
    """What was said of a patch, in order."""
    rows = tx.all(
        f"SELECT {_ENTRY} FROM patch_entry WHERE patch_id = ? ORDER BY number", (patch_id,)
    )
    return [Entry._make(row) for row in rows]


def entries_of_all(tx: Session, patch_ids: Sequence[str]) -> dict[str, list[Entry]]:
    """What was said of each of the patches, in order."""
    return {patch_id: entries_of(tx, patch_id) for patch_id in patch_ids}


def keep_policy(tx: Session, digest: str, text: str, now_ms: int) -> None:
    """Keep a policy by its digest."""
    tx.run(
        "INSERT INTO policy (digest, text, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
        (digest, text, now_ms),
    )


def policy_text(tx: Session, digest: str) -> str:
    """The policy of this digest."""
    return str(tx.only("SELECT text FROM policy WHERE digest = ?", (digest,))[0])
