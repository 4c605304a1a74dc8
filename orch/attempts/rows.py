"""Rows of `attempt` and `intent`, and what the column `details` of an attempt has, as values."""

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from inbox_orch.shared.store.engine import Row, Session

from ..runs.model import Attempt

if TYPE_CHECKING:
    from ..gates.checks import Checked
    from ..git.copying import LeftOut

_COLUMNS = ", ".join(Attempt._fields)


class Late(NamedTuple):
    """Commits that came after an attempt had ended: the newest, how many, and the ref that
    keeps them."""

    head: str
    commits: int
    ref: str


class Adopted(NamedTuple):
    """That an attempt's commits were taken as its task's work: the newest, where it was found
    (`worktree`, `late`, `branch`, `recorded`), and the agent that took it."""

    head: str
    source: str
    by: str


class Harvested(NamedTuple):
    """What was committed for a worker: the newest commit, and how many files that changed."""

    commit: str
    files: int


class Start(NamedTuple):
    """What lay in the worktree of an attempt with a blueprint when it began: its tree, and the
    commit that keeps it; the tree of its base's commit; and whether gates had still to be tried
    there."""

    tree: str
    commit: str
    base_tree: str
    prove: bool


class Text(NamedTuple):
    """What was handed in as text, without a worker: the name, digest and size of the file that has
    it, whether it is a diff or edits (`way`), by whom, and the refused patch that it is for."""

    name: str
    sha256: str
    size: int
    way: str
    by: str
    replaces: str | None = None


class Brought(NamedTuple):
    """What was made of a text that was handed in: the commit, the digest of the text, whether that
    is a diff or edits, and what was done to make it."""

    commit: str
    sha256: str
    way: str
    notes: tuple[str, ...] = ()


class Details(NamedTuple):
    """What is known of an attempt beyond its columns; None where nothing was written down.

    `not_copied`: untracked files that its worktree was to have, and did not get;
    `untracked_at_start`: paths that its worker need not commit; `dirty_paths`: what it had not
    committed; `unpushed_submodules`: paths whose commits are nowhere else; `change_summary`:
    `git diff --stat` of its work; `checks`: what they have come to so far; `verdict_message`: the
    id of the message that told of the verdict. `harvest`: whether what its worker leaves is to be
    committed, False once that is over; `harvested`: what was. `start`: what it began with, where
    it goes by a blueprint; `unverified`: why accepted work was not judged as it should have been.
    `handed_in`: the newest commit of its worker, where another one was made of that tree.
    `hands_in_text`: what is changed stands in the result; `text`: what was handed in without a
    worker; `brought`: what was made of such a text.
    """

    not_copied: "tuple[LeftOut, ...] | None" = None
    untracked_at_start: tuple[str, ...] | None = None
    dirty_paths: tuple[str, ...] | None = None
    unpushed_submodules: tuple[str, ...] | None = None
    change_summary: str | None = None
    adopted: Adopted | None = None
    checks: "tuple[Checked, ...] | None" = None
    verdict_message: str | None = None
    late: Late | None = None
    harvest: bool | None = None
    harvested: Harvested | None = None
    start: Start | None = None
    unverified: str | None = None
    handed_in: str | None = None
    hands_in_text: bool | None = None
    text: Text | None = None
    brought: Brought | None = None


class Failure(NamedTuple):
    """Why an attempt was never handed out: an error's code, and what the error says besides."""

    code: str
    facts: Mapping[str, Any]


def insert(tx: Session, values: Mapping[str, Any]) -> Attempt:
    """A new attempt; the keys are column names. The database refuses a second live one."""
    columns = ", ".join(values)
    marks = ", ".join(f":{name}" for name in values)
    (row,) = tx.all(
        f"INSERT INTO attempt ({columns}) VALUES ({marks}) RETURNING {_COLUMNS}", dict(values)
    )
    return from_row(row)


def get(tx: Session, attempt_id: str) -> Attempt | None:
    """One attempt."""
    row = tx.one(f"SELECT {_COLUMNS} FROM attempt WHERE id = ?", (attempt_id,))
    return None if row is None else from_row(row)


def beginning(tx: Session, attempt_id: str, limit: int) -> list[Attempt]:
    """The attempts whose id begins so, oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM attempt WHERE id >= ? AND id < ? ORDER BY id LIMIT ?",
        (attempt_id, attempt_id + "\U0010ffff", limit),
    )
    return [from_row(row) for row in rows]


def of_task(tx: Session, task_id: str) -> list[Attempt]:
    """The attempts at a task, in order."""
    rows = tx.all(f"SELECT {_COLUMNS} FROM attempt WHERE task_id = ? ORDER BY number", (task_id,))
    return [from_row(row) for row in rows]


def live_of_task(tx: Session, task_id: str) -> Attempt | None:
    """The live attempt at a task, if there is one."""
    row = tx.one(
        f"SELECT {_COLUMNS} FROM attempt WHERE task_id = ? AND ended_at IS NULL", (task_id,)
    )
    return None if row is None else from_row(row)


def live_of_run(tx: Session, run_id: str) -> list[Attempt]:
    """Every live attempt of a run, oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM attempt WHERE run_id = ? AND ended_at IS NULL ORDER BY id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def ended_with_worktree(tx: Session, run_id: str) -> list[Attempt]:
    """The ended attempts of a run whose worktrees have not been cleaned up, oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM attempt WHERE run_id = ? AND ended_at IS NOT NULL"
        " AND worktree_path IS NOT NULL AND removed_at IS NULL ORDER BY id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def with_worktree(tx: Session, run_id: str) -> list[Attempt]:
    """The attempts of a run whose worktree was not taken away by clean-up, oldest first."""
    rows = tx.all(
        f"SELECT {_COLUMNS} FROM attempt WHERE run_id = ? AND worktree_path IS NOT NULL"
        " AND removed_at IS NULL ORDER BY id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def of_run(tx: Session, run_id: str) -> list[Attempt]:
    """Every attempt of a run, oldest first."""
    rows = tx.all(
        f"SELECT {', '.join('a.' + c for c in Attempt._fields)} FROM task AS t"
        " JOIN attempt AS a ON a.task_id = t.id WHERE t.run_id = ? ORDER BY a.id",
        (run_id,),
    )
    return [from_row(row) for row in rows]


def removed_before(tx: Session, run_id: str, moment_ms: int) -> list[str]:
    """The ids of attempts whose worktree was taken away before a moment."""
    rows = tx.all("SELECT id FROM attempt WHERE run_id = ? AND removed_at < ?", (run_id, moment_ms))
    return [row[0] for row in rows]


def latest_by_task(tx: Session, run_id: str) -> dict[str, Attempt]:
    """The newest attempt of each task of a run."""
    rows = tx.all(
        f"SELECT {', '.join('a.' + c for c in Attempt._fields)} FROM task AS t"
        " JOIN attempt AS a ON a.task_id = t.id AND a.number = t.attempts WHERE t.run_id = ?",
        (run_id,),
    )
    return {attempt.task_id: attempt for attempt in map(from_row, rows)}


def update(
    tx: Session,
    attempt_id: str,
    changes: Mapping[str, Any],
    *,
    expected_state: str,
) -> bool:
    """Change columns if the attempt is still in the state that the caller saw."""
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    return (
        tx.run(
            f"UPDATE attempt SET {assignments} WHERE id = :_id AND state = :_state",
            {**changes, "_id": attempt_id, "_state": expected_state},
        )
        == 1
    )


def move(
    tx: Session, attempt_id: str, changes: Mapping[str, Any], *, expected_state: str
) -> Attempt | None:
    """The attempt as `update` leaves it; None when it is in that state no more."""
    assignments = ", ".join(f"{name} = :{name}" for name in changes)
    rows = tx.all(
        f"UPDATE attempt SET {assignments} WHERE id = :_id AND state = :_state"
        f" RETURNING {_COLUMNS}",
        {**changes, "_id": attempt_id, "_state": expected_state},
    )
    return from_row(rows[0]) if rows else None


def done_removals(tx: Session, run_id: str) -> dict[str, dict[str, Any]]:
    """What clean-up meant to do with each attempt whose worktree it has taken away."""
    rows = tx.all(
        "SELECT attempt_id, data FROM intent WHERE run_id = ? AND kind = 'cleanup'"
        " AND outcome = 'done' ORDER BY number",
        (run_id,),
    )
    return {attempt_id: json.loads(data) for attempt_id, data in rows}


def from_row(row: Row) -> Attempt:
    """What a row with the columns of an attempt says."""
    attempt = Attempt._make(row)
    return attempt._replace(fatal=bool(attempt.fatal), goes_back=bool(attempt.goes_back))


# -- the column `details` ----------------------------------------------------------------


def details_of(attempt: Attempt) -> Details:
    """What the column `details` has. Keys that no field is for are left aside."""
    stored = _stored(attempt)
    known = {name: stored[name] for name in Details._fields if stored.get(name) is not None}
    return Details(**{name: _value(name, plain) for name, plain in known.items()})


def details_with(attempt: Attempt, more: Details) -> str:
    """The column `details` with the fields that `more` sets, besides all that it has."""
    given = {name: value for name, value in more._asdict().items() if value is not None}
    return json.dumps({**_stored(attempt), **{name: _plain(v) for name, v in given.items()}})


def details_of_new(details: Details) -> str:
    """The column `details` of an attempt that is made."""
    given = {name: value for name, value in details._asdict().items() if value is not None}
    return json.dumps({name: _plain(value) for name, value in given.items()})


def failure_column(failure: Failure) -> str:
    """The column `details` of an attempt that was never handed out."""
    return json.dumps({"code": failure.code, **failure.facts})


def _stored(attempt: Attempt) -> dict[str, Any]:
    stored: dict[str, Any] = {} if attempt.details is None else json.loads(attempt.details)
    return stored


def _value(name: str, plain: Any) -> Any:
    """A field's value, from what JSON has of it."""
    if name == "not_copied":
        from ..git.copying import LeftOut

        return tuple(LeftOut(each["path"], each["reason"]) for each in plain)
    if name == "checks":
        from ..gates.checks import Checked

        return tuple(Checked.from_json(each) for each in plain)
    if name == "adopted":
        return Adopted(plain["head"], plain["source"], plain["by"])
    if name == "late":
        return Late(plain["head"], plain["commits"], plain["ref"])
    if name == "harvested":
        return Harvested(plain["commit"], plain["files"])
    if name == "text":
        return Text(**plain)
    if name == "brought":
        return Brought(**{**plain, "notes": tuple(plain["notes"])})
    if name == "start":
        return Start(plain["tree"], plain["commit"], plain["base_tree"], plain["prove"])
    return plain if isinstance(plain, (str, bool)) else tuple(plain)


def _plain(value: Any) -> Any:
    """What JSON has of a field's value."""
    if not isinstance(value, tuple):
        return value
    fields = getattr(value, "as_json", None) or getattr(value, "_asdict", None)
    return [_plain(each) for each in value] if fields is None else fields()


def failed_setup(attempt: Attempt) -> dict[str, Any] | None:
    """How the set-up command of an attempt failed, as `SetupEnded.as_json` has it; None where none
    did, or where nothing of its end is known."""
    stored = _stored(attempt)
    return stored if stored.get("code") == "setup_failed" and "output_tail" in stored else None
