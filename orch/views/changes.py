"""What the accepted, or else the newest, attempt at a task has changed against its base. Only
looks; which text stands where is git's affair."""

from collections.abc import Callable
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError, not_found
from inbox_orch.shared.ids import printable

from ..attempts.rows import details_of
from ..cleanup import restore
from ..cleanup.restore import Listed
from ..git import diffs
from ..git.diffs import ChangedFile, Span
from ..git.failures import shown
from ..git.repository import Repository, is_there
from ..patches.hiding import KeyStream
from ..runs import task_rows as tasks
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run
from ..runs.secrets import secrets_of
from . import patches
from .patches import Listed as HandedIn

MOST_FILES = 1000


class Changes(NamedTuple):
    """Where the work of an attempt is to be seen: `span` is what is compared; `untracked` are files
    in its worktree that git does not know of yet; `patches` are those of the attempt, where it does
    not say all of them; `secrets` are the values that are not shown."""

    listed: Listed
    span: Span
    untracked: tuple[str, ...]
    patches: tuple[HandedIn, ...] = ()
    secrets: tuple[str, ...] = ()

    def files(self) -> list[ChangedFile]:
        """Every file that differs. Error `git_failed`."""
        return diffs.changed_files(self.span)

    def write(self, hand_on: Callable[[bytes], None], *, stat: bool) -> None:
        """Git's own output, a piece at a time, with `***` for what looks like a key and for values
        of secrets; without any of these it is git's to the byte. Error `git_failed`."""
        stream = KeyStream(self.secrets)
        diffs.write_diff(self.span, lambda piece: _told(hand_on, stream.add(piece)), stat=stat)
        _told(hand_on, stream.finish())

    def as_json(self) -> dict[str, Any]:
        found = self.files()
        return {
            "attempt": self.listed.as_json(),
            "base": self.span.base,
            "head": self.span.head,
            "worktree": None if self.span.head is not None else shown(self.span.folder),
            "items": [file._asdict() for file in found[:MOST_FILES]],
            "truncated": len(found) > MOST_FILES,
            "next_cursor": None,
            "changed_files": len(found),
            "added_lines": sum(file.added or 0 for file in found),
            "removed_lines": sum(file.removed or 0 for file in found),
            "untracked": list(self.untracked),
            **({"patches": patches.as_json(self.patches)} if self.patches else {}),
        }


def changes(desk: Desk, name: str, run_name: str | None) -> tuple[Run, Changes]:
    """The changes of a task by its key or id (those of its accepted attempt, else of the newest),
    or of an attempt as `KEY/N` or by its id.

    Accepted work is what was accepted; of any other attempt it is what stands in its worktree, or,
    where that is gone, the commits that are left. Errors: `not_found` (also where there is
    nothing yet), `usage`, and those of git.
    """
    if name.count("/") == 2:
        hint = f"`orch patch show {printable(name)} --diff` prints what a patch changes"
        raise not_found("attempt", printable(name), hint=hint)
    run, listed = _chosen(desk, name, run_name)
    attempt = listed.attempt
    if attempt.base_commit is None or attempt.worktree_path is None:
        raise _nothing(listed.name, "has no worktree: there is nothing to compare")
    repository = desk.repository(run)
    span = _span(desk, repository, listed)
    diffs.require_readable(repository, span)
    with desk.database.snapshot() as snapshot:
        task = tasks.by_id(snapshot, attempt.task_id)
        handed_in = patches.shown_of(snapshot, run, task, [attempt]).get(attempt.id, ())
    untracked = _untracked(repository, attempt, span)
    return run, Changes(listed, span, untracked, handed_in, secrets_of(config_of(run)))


def _told(hand_on: Callable[[bytes], None], piece: bytes) -> None:
    if piece:
        hand_on(piece)


def newest_or_named(desk: Desk, name: str, run_name: str | None) -> tuple[Run, Listed]:
    """The newest attempt at the task of this key or id, or the attempt that is named, as of
    `attempt_named`. Errors: `not_found`, which says so of a task without any; `usage`."""
    try:
        return restore.attempt_named(desk, name, run_name, shows=True)
    except InboxOrchError as error:
        if error.code == "not_found" and error.details.get("kind") == "attempt":
            raise _none_yet(desk, name, run_name, error) from error
        raise


def _chosen(desk: Desk, name: str, run_name: str | None) -> tuple[Run, Listed]:
    """Of a task alone its accepted attempt, where it has one."""
    run, listed = newest_or_named(desk, name, run_name)
    if name not in (listed.key, listed.attempt.task_id):
        return run, listed
    with desk.database.snapshot() as snapshot:
        accepted = tasks.by_id(snapshot, listed.attempt.task_id).accepted_attempt
    every = restore.attempt_list(desk, run, [name])
    return run, next((each for each in every if each.attempt.id == accepted), listed)


def _none_yet(desk: Desk, name: str, run_name: str | None, error: InboxOrchError) -> InboxOrchError:
    """The error for a task that was never dispatched; for anything else the one there was."""
    run = desk.run(run_name, shows=True)
    with desk.database.snapshot() as snapshot:
        task = tasks.get(snapshot, run.id, name)
    if task is None or task.attempts:
        return error
    hint = f"`orch dispatch {task.key}` opens one, once `orch ready` lists it"
    return InboxOrchError(
        "not_found",
        f"task {task.key} is {task.state}, and has no attempt yet",
        hint=hint,
        details={"kind": "attempt", "id": task.key},
    )


def _span(desk: Desk, repository: Repository, listed: Listed) -> Span:
    attempt = listed.attempt
    base, worktree = str(attempt.base_commit), str(attempt.worktree_path)
    with desk.database.snapshot() as snapshot:
        task = tasks.by_id(snapshot, attempt.task_id)
    if task.accepted_attempt == attempt.id and task.accepted_head is not None:
        return Span(repository.path, base, task.accepted_head)
    if is_there(worktree):
        return Span(worktree, base, None)
    left = attempt.head_commit or repository.ref_commit(f"refs/heads/{attempt.branch}")
    if left is None:
        hint = f"`orch attempt show {listed.name}` tells what there is of it"
        raise _nothing(listed.name, "has left no commit, and its worktree is gone", hint)
    return Span(repository.path, base, left)


def _untracked(repository: Repository, attempt: Attempt, span: Span) -> tuple[str, ...]:
    if span.head is not None:
        return ()
    known = details_of(attempt).untracked_at_start or ()
    return tuple(p for p in repository.untracked_paths(span.folder) if p not in known)


def _nothing(name: str, why: str, hint: str | None = None) -> InboxOrchError:
    return InboxOrchError(
        "not_found",
        f"{name} {why}",
        hint=hint or f"`orch logs {name}` prints what was said about it",
        details={"kind": "change", "id": name},
    )
