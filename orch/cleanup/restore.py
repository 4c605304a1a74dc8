"""`attempt list`, `attempt show`, `attempt restore`."""

import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.ids import MOST_CANDIDATES, ambiguous, beginning_of_id, printable
from inbox_orch.shared.store.engine import Session

from ..attempts import rows as attempts
from ..git import removal, restoring, salvage
from ..git.failures import shown
from ..git.repository import Repository, is_there
from ..git.restoring import Parts, Restored
from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Attempt, Run


class Listed(NamedTuple):
    """An attempt with its task's key."""

    attempt: Attempt
    key: str

    @property
    def name(self) -> str:
        """How people name it."""
        return f"{self.key}/{self.attempt.number}"

    def as_json(self) -> dict[str, Any]:
        return {**self.attempt.as_json(), "key": self.key}


class Shown(NamedTuple):
    """An attempt, and what there is of it on disk: its worktree, what clean-up has kept, and
    where in the trash the worktree is."""

    listed: Listed
    worktree_exists: bool
    salvage_ref: str | None
    parts: Parts | None
    trash: str | None

    def as_json(self) -> dict[str, Any]:
        return {
            "attempt": self.listed.as_json(),
            "worktree_exists": self.worktree_exists,
            "salvage_ref": self.salvage_ref,
            "salvage_parts": None if self.parts is None else self.parts.named,
            "kept_commits": [] if self.parts is None else list(self.parts.kept),
            "trash": self.trash,
        }


class BroughtBack(NamedTuple):
    """Salvage in a folder."""

    listed: Listed
    folder: str
    commit: str
    restored: Restored
    parts: Parts

    def as_json(self) -> dict[str, Any]:
        return {
            "attempt": self.listed.as_json(),
            "folder": shown(self.folder),
            "salvage_ref": salvage.ref_of(self.listed.attempt.id),
            "salvage_commit": self.commit,
            "salvage_parts": self.parts.named,
            "kept_commits": list(self.parts.kept),
            "files": self.restored.files,
            "changed": self.restored.changed,
            "unfiltered": self.restored.unfiltered,
        }


def attempt_list(desk: Desk, run: Run, task_names: Sequence[str] = ()) -> list[Listed]:
    """The attempts of a run, or of certain tasks, oldest first. Error `not_found`."""
    with desk.database.snapshot() as snapshot:
        keys = {task.id: task.key for task in tasks.of_run(snapshot, run.id)}
        wanted = {desk.task(snapshot, run, name).id for name in task_names} or keys.keys()
        found = attempts.of_run(snapshot, run.id)
    return [Listed(a, keys[a.task_id]) for a in found if a.task_id in wanted]


def attempt_named(
    desk: Desk, name: str, run_name: str | None, *, shows: bool = False
) -> tuple[Run, Listed]:
    """The attempt with this id, of whichever run, or with this task's key and number
    (`KEY/N`; of the newest with `KEY` alone) in the run; with `shows` that is the last one, if
    none is open; else the only attempt whose id begins so. Errors: `not_found`, `usage`."""
    with desk.database.snapshot() as snapshot:
        attempt = attempts.get(snapshot, name.upper())
        if attempt is not None:
            return _listed(snapshot, attempt)
    try:
        run = desk.run(run_name, shows=shows)
        return run, _by_key(desk, run, name)
    except InboxOrchError as refusal:
        beginning = beginning_of_id(name)
        if beginning is None:
            raise
        with desk.database.snapshot() as snapshot:
            begun = attempts.beginning(snapshot, beginning, MOST_CANDIDATES + 1)
            if len(begun) == 1:
                return _listed(snapshot, begun[0])
        if begun:
            raise ambiguous("attempt", name, [each.id for each in begun]) from refusal
        raise


def _listed(tx: Session, attempt: Attempt) -> tuple[Run, Listed]:
    run = runs.get(tx, attempt.run_id)
    assert run is not None
    return run, Listed(attempt, tasks.by_id(tx, attempt.task_id).key)


def _by_key(desk: Desk, run: Run, name: str) -> Listed:
    key, _, number = name.partition("/")
    found = attempt_list(desk, run, [key])
    if number:
        found = [listed for listed in found if str(listed.attempt.number) == number]
    if not found:
        raise not_found("attempt", printable(name), hint="`orch attempt list` shows them")
    return found[-1]


def attempt_show(desk: Desk, run: Run, listed: Listed) -> Shown:
    """An attempt, and what there is of it. Errors: those of git."""
    attempt = listed.attempt
    if attempt.worktree_path is None:
        return Shown(listed, False, None, None, None)
    repository = desk.repository(run)
    commit = _salvage_of(repository, attempt)
    parts = None if commit is None else restoring.parts_of(repository, commit)
    return Shown(
        listed,
        is_there(attempt.worktree_path),
        None if commit is None else salvage.ref_of(attempt.id),
        parts,
        _in_trash(run, repository, attempt),
    )


def attempt_restore(
    desk: Desk, run: Run, listed: Listed, *, into: str | None = None
) -> BroughtBack:
    """Bring back what clean-up has salvaged, into a folder that is new or empty: `into`, or
    one beside the run's worktrees. Changes nothing else, and can be repeated.

    Errors: `not_found` (nothing was salvaged), `file_exists`, `usage` (where git or the
    database keeps its files), and those of git.
    """
    attempt, repository = listed.attempt, desk.repository(run)
    commit = _salvage_of(repository, attempt)
    if commit is None:
        raise _nothing_salvaged(run, repository, listed)
    folder = into
    if folder is None:
        folder = f"{attempt.worktree_path}-restored"
    folder = os.path.abspath(folder)
    database = os.path.dirname(desk.database.layout.database)
    refuse_inside((repository.common_directory, database), folder)
    restored = restoring.restore(repository, commit, folder)
    parts = restoring.parts_of(repository, commit)
    return BroughtBack(listed, folder, commit, restored, parts)


def refuse_inside(places: Iterable[str], folder: str) -> None:
    """Files of a worktree among those of git would be taken for refs and objects. Error `usage`
    for a folder inside one of the places."""
    whole = os.path.realpath(folder)
    for kept in places:
        if os.path.commonpath((whole, os.path.realpath(kept))) == os.path.realpath(kept):
            raise usage(
                f"{shown(folder)} lies inside {shown(kept)}, which has files of its own",
                hint="give another folder: --into DIR",
            )


def _salvage_of(repository: Repository, attempt: Attempt) -> str | None:
    """The commit, if it is there; a removal that was cut short may not be written down yet."""
    named = attempt.salvage_commit or salvage.ref_of(attempt.id)
    return repository.ref_commit(f"{named}^{{commit}}")


def _in_trash(run: Run, repository: Repository, attempt: Attempt) -> str | None:
    trash = removal.trash_of(repository, str(run.worktree_root), attempt.id)
    return trash.worktree if removal.is_moved(trash) else None


def _nothing_salvaged(run: Run, repository: Repository, listed: Listed) -> InboxOrchError:
    attempt = listed.attempt
    trash = _in_trash(run, repository, attempt)
    if attempt.worktree_path is not None and is_there(attempt.worktree_path):
        hint = f"its worktree is there: {attempt.worktree_path}"
    elif trash is not None:
        hint = f"all of it was in commits; the folder itself is in the trash: {trash}"
    else:
        hint = "all of it was in commits"
    return not_found("salvage of attempt", listed.name, hint=hint)
