"""Rows of `patch`, `patch_entry` and `policy`; the first two are written once."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from inbox_orch.shared.store.engine import Session

from .model import Entry, Patch

_PATCH = ", ".join(Patch._fields)
_ENTRY = ", ".join(Entry._fields)
_WHERE = "t.id, t.key, a.id, a.number, a.state, a.thread_id, a.ended_at"


class Where(NamedTuple):
    """Where a patch belongs: its task with the key of that, its attempt with number and state, the
    thread of that, and when it ended (wall milliseconds; None while it lives)."""

    task_id: str
    key: str
    attempt_id: str
    attempt: int
    state: str
    thread_id: str | None
    ended_at: int | None

    @property
    def given_up(self) -> bool:
        """Whether the attempt has ended without being accepted."""
        return self.ended_at is not None and self.state != "succeeded"

    @property
    def given_up_at(self) -> int | None:
        """When it has; None where it has not."""
        return self.ended_at if self.given_up else None

    def name_of(self, patch: Patch) -> str:
        """How people name a patch of this attempt."""
        return self.named(patch.number)

    def named(self, number: int) -> str:
        """How people name the patch of this number."""
        return f"{self.key}/{self.attempt}/{number}"


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


def held_up(tx: Session, run_id: str) -> list[Patch]:
    """The patches of a run that did not simply come in, oldest first: somebody was asked about
    them, they were refused, fitted nothing, or were taken back, whatever was said since."""
    rows = tx.all(
        f"SELECT {_PATCH} FROM patch WHERE run_id = ? AND EXISTS (SELECT 1 FROM patch_entry"
        " WHERE patch_id = patch.id AND kind <> 'gates' AND outcome IN"
        " ('asked', 'denied', 'refused', 'failed', 'restored', 'undone'))"
        " ORDER BY patch.created_at, patch.id",
        (run_id,),
    )
    return [Patch._make(row) for row in rows]


def beginning(tx: Session, patch_id: str, limit: int) -> list[Patch]:
    """The patches whose id begins so, oldest first."""
    rows = tx.all(
        f"SELECT {_PATCH} FROM patch WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
        (patch_id, patch_id + "\U0010ffff", limit),
    )
    return [Patch._make(row) for row in rows]


def of_task(tx: Session, task_id: str) -> list[Patch]:
    """The patches of all attempts at a task, oldest first."""
    columns = ", ".join(f"p.{name}" for name in Patch._fields)
    rows = tx.all(
        f"SELECT {columns} FROM attempt AS a JOIN patch AS p ON p.attempt_id = a.id"
        " WHERE a.task_id = ? ORDER BY a.number, p.number",
        (task_id,),
    )
    return [Patch._make(row) for row in rows]


def where(tx: Session, attempt_id: str) -> Where:
    """Where the patches of an attempt belong."""
    row = tx.only(
        f"SELECT {_WHERE} FROM attempt AS a JOIN task AS t ON t.id = a.task_id WHERE a.id = ?",
        (attempt_id,),
    )
    return Where._make(row)


def where_named(tx: Session, run_id: str, key: str, number: int) -> Where | None:
    """Where the patches of an attempt belong, by the key of its task and its number."""
    row = tx.one(
        f"SELECT {_WHERE} FROM task AS t JOIN attempt AS a ON a.task_id = t.id"
        " WHERE t.run_id = ? AND t.key = ? AND a.number = ?",
        (run_id, key, number),
    )
    return None if row is None else Where._make(row)


def places_of_run(tx: Session, run_id: str) -> dict[str, Where]:
    """Where the patches of a run belong, by the ids of its attempts."""
    rows = tx.all(
        f"SELECT {_WHERE} FROM task AS t JOIN attempt AS a ON a.task_id = t.id WHERE t.run_id = ?",
        (run_id,),
    )
    return {each.attempt_id: each for each in map(Where._make, rows)}


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


# -- as the events tell it -------------------------------------------------------------------


def every_id(tx: Session) -> list[str]:
    """The ids of all patches."""
    return [row[0] for row in tx.stream("SELECT id FROM patch")]


def every_entry(tx: Session) -> Iterator[tuple[str, list[Entry]]]:
    """What was said of each patch of which something was said, in order."""
    rows = tx.stream(f"SELECT {_ENTRY} FROM patch_entry ORDER BY patch_id, number")
    for patch_id, entries in groupby(map(Entry._make, rows), key=lambda entry: entry.patch_id):
        yield patch_id, list(entries)
