"""Checkpoints of an attempt: the snapshots that were kept of its worktree, to look at, to keep one
more, and to have the files of one elsewhere. Going back to one is the affair of `go_back`.

Nothing in a worktree is changed here.
"""

import os
from typing import Any, NamedTuple

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.ids import printable
from inbox_orch.shared.store.engine import Session, Transaction

from ..attempts import moving
from ..attempts import rows as attempts
from ..attempts.verify import untracked_at_start
from ..git import chain, facts, mending, restoring, snapshots, worktrees
from ..git.chain import Kept
from ..git.changes import Change, Facts
from ..git.failures import shown
from ..git.harvest import Unfit
from ..git.repository import Repository, is_there
from ..journal import finishing
from ..runs.desk import Desk, place_of
from ..runs.model import Attempt, Run
from . import restore
from .restore import Listed

BY_HAND = "Kept by hand"
MOST_NOTE = 200
MOST_FILES = 1000
MOST_DIFF_BYTES = 16 * 1024 * 1024


class Checkpoint(NamedTuple):
    """One of an attempt's snapshots; `number` counts them from 1, oldest first."""

    listed: Listed
    number: int
    kept: Kept

    @property
    def name(self) -> str:
        """How people name it."""
        return f"{self.listed.name}/{self.number}"

    @property
    def commit(self) -> str:
        """The commit that keeps it."""
        return self.kept.state.snapshot.commit

    @property
    def tree(self) -> str:
        """The raw tree of its files."""
        return self.kept.state.snapshot.tree

    def as_json(self) -> dict[str, Any]:
        state = self.kept.state
        attempt = self.listed.attempt
        return {
            "name": self.name,
            "attempt": attempt.id,
            "key": self.listed.key,
            "attempt_number": attempt.number,
            "number": self.number,
            "title": self.kept.title,
            "commit": self.commit,
            "tree": self.tree,
            "head": state.snapshot.head,
            "branch": None if state.branch is None else shown(state.branch),
            "doing": state.doing,
            "made_at": rfc3339(self.kept.made_at * 1000),
        }


class Shown(NamedTuple):
    """A checkpoint, and what is other in it than in `since`: the one before it, None where that is
    the attempt's base."""

    checkpoint: Checkpoint
    since: Checkpoint | None
    facts: Facts
    diff: str | None

    @property
    def files(self) -> tuple[Change, ...]:
        """The files that differ."""
        return self.facts.files

    def as_json(self) -> dict[str, Any]:
        files = self.files
        return {
            "checkpoint": self.checkpoint.as_json(),
            "since": None if self.since is None else self.since.name,
            "items": [_file(each) for each in files[:MOST_FILES]],
            "truncated": len(files) > MOST_FILES,
            "next_cursor": None,
            "changed_files": len(files),
            "added_lines": self.facts.insertions,
            "removed_lines": self.facts.deletions,
            **({} if self.diff is None else {"diff": self.diff}),
        }


class Made(NamedTuple):
    """A checkpoint that was kept by hand. `same`: nothing had changed since the last one, so that
    it is that one; `at_work`: a worker or a leader may be in the middle of a change."""

    checkpoint: Checkpoint
    same: bool
    at_work: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "checkpoint": self.checkpoint.as_json(),
            "same": self.same,
            "at_work": self.at_work,
        }


class Elsewhere(NamedTuple):
    """The files of a checkpoint in a folder of their own."""

    checkpoint: Checkpoint
    folder: str
    files: int

    def as_json(self) -> dict[str, Any]:
        return {
            "checkpoint": self.checkpoint.as_json(),
            "into": shown(self.folder),
            "files": self.files,
            "before": None,
        }


def checkpoint_list(desk: Desk, run: Run, listed: Listed | None = None) -> list[Checkpoint]:
    """The checkpoints of an attempt, or of all attempts of a run, oldest first. Errors: those of
    git."""
    if run.repository is None:
        return []
    repository = desk.repository(run)
    if listed is not None:
        return of_attempt(repository, listed)
    have = chain.with_one(repository)
    every = (each for each in restore.attempt_list(desk, run) if each.attempt.id in have)
    return [found for each in every for found in of_attempt(repository, each)]


def of_attempt(repository: Repository, listed: Listed) -> list[Checkpoint]:
    """The checkpoints of an attempt, oldest first. Error `git_failed`."""
    attempt = listed.attempt
    found = chain.history(repository, chain.ref_of(attempt.id), attempt.base_commit)
    return [Checkpoint(listed, number, kept) for number, kept in enumerate(found, 1)]


def checkpoint_named(
    desk: Desk, name: str, run_name: str | None, *, shows: bool = False
) -> tuple[Run, Checkpoint]:
    """The checkpoint `KEY/ATTEMPT/N` in the run, or `ID/N` by an attempt's id; with `shows` that
    is the last run, if none is open. Errors: `usage` (no such form), `not_found`, those of git."""
    attempt_name, _, number = name.rpartition("/")
    if not (number.isascii() and number.isdigit()) or "/" not in name:
        raise usage(f"{printable(name)} names no checkpoint", hint=_FORM)
    if "/" not in attempt_name and not _is_id(desk, attempt_name):
        raise usage(
            f"{printable(name)} names an attempt, and no checkpoint of it",
            hint=f"`orch checkpoint list {printable(name)}` shows those",
        )
    run, listed = restore.attempt_named(desk, attempt_name, run_name, shows=shows)
    found = checkpoint_list(desk, run, listed)
    for checkpoint in found:
        if checkpoint.number == int(number):
            return run, checkpoint
    there = f"`orch checkpoint list {listed.name}` shows them" if found else none_yet(listed)
    raise not_found("checkpoint", printable(name), hint=there)


_FORM = "as `lexer/1/2`: the second one of the first attempt at the task lexer"


def _is_id(desk: Desk, name: str) -> bool:
    with desk.database.snapshot() as snapshot:
        return attempts.get(snapshot, name.upper()) is not None


def none_yet(listed: Listed) -> str:
    """Why an attempt has no checkpoint, and how it gets one."""
    makes = f"`orch checkpoint make {listed.name}` keeps one"
    if listed.attempt.staged:
        return f"none of {listed.name} is there any more; {makes} of what lies there now"
    return f"{listed.name} goes by no blueprint, so that none is made by itself; {makes}"


def checkpoint_show(desk: Desk, run: Run, checkpoint: Checkpoint, *, diff: bool = False) -> Shown:
    """A checkpoint, and what it changes against the one before it, with `diff` as a text, too.
    Errors: those of git."""
    repository = desk.repository(run)
    before = checkpoint.number - 2
    since = of_attempt(repository, checkpoint.listed)[before] if before >= 0 else None
    base = str(checkpoint.listed.attempt.base_commit) if since is None else since.tree
    found = facts.facts(repository, base, checkpoint.tree)
    text = facts.diff_text(repository, base, checkpoint.tree, MOST_DIFF_BYTES) if diff else None
    return Shown(checkpoint, since, found, text)


def _file(change: Change) -> dict[str, Any]:
    return {
        "path": shown(change.path),
        "status": change.status,
        "binary": change.binary,
        "added": change.insertions,
        "removed": change.deletions,
    }


# -- keeping one more ----------------------------------------------------------------------------


def checkpoint_make(desk: Desk, run: Run, listed: Listed, note: str | None = None) -> Made:
    """Keep what lies in the worktree of an attempt now, whoever works there; nothing of it is
    touched. Errors: `usage`, `invalid_state` (there is no worktree, or what lies there cannot be
    kept), `busy`, and those of git."""
    title = title_of(note)
    attempt = listed.attempt
    repository, worktree = place_to_look(desk, run, listed)
    known, ref = untracked_at_start(attempt), chain.ref_of(attempt.id)
    mending.mend(repository)
    finishing.finish_intents(desk, run)
    with worktrees.alone(repository, place_of(desk, attempt)):
        try:
            last = repository.ref_commit(ref)
            made = snapshots.snapshot(repository, worktree, known, ref, title, None)
        except Unfit as unfit:
            raise unfit_error(listed, unfit) from unfit
        newest = of_attempt(repository, listed)[-1]
        same = made.commit == last
        with desk.database.transaction() as tx:
            present = present_of(tx, attempt)
            if not same:
                facts_said = {"checkpoint": newest.number, "commit": made.commit}
                moving.record_attempt(desk, tx, run, present, "checkpoint_made", facts_said)
    return Made(newest, same, present.live and not present.deciding)


def title_of(note: str | None) -> str:
    """The line that says what a checkpoint by hand is. Error `usage`."""
    if note is None:
        return BY_HAND
    words = note.strip()
    if not words or not words.isprintable() or len(words) > MOST_NOTE:
        raise usage(f"a note is one line of at most {MOST_NOTE} characters", hint="--note TEXT")
    return words


def place_to_look(desk: Desk, run: Run, listed: Listed) -> tuple[Repository, str]:
    """The repository and the worktree of an attempt. Errors: `invalid_state` where there is none,
    or none any more; those of git."""
    attempt = listed.attempt
    if attempt.worktree_path is None or attempt.branch is None:
        raise _no_worktree(listed, "has no worktree of its own", None)
    repository = desk.repository(run)
    if attempt.state == "allocating":
        raise _no_worktree(listed, "is still being made", "try again in a moment")
    if not is_there(attempt.worktree_path):
        hint = f"`orch checkpoint list {listed.name}` shows what is kept; restore one --into DIR"
        raise _no_worktree(listed, "has no worktree any more", hint)
    return repository, attempt.worktree_path


def _no_worktree(listed: Listed, why: str, hint: str | None) -> InboxOrchError:
    return InboxOrchError(
        "invalid_state",
        f"{listed.name} {why}",
        hint=hint or f"`orch attempt show {listed.name}` tells what there is of it",
        details={"attempt": listed.attempt.id},
    )


def unfit_error(listed: Listed, unfit: Unfit) -> InboxOrchError:
    """The error for what cannot be kept, or gone back to."""
    return InboxOrchError(
        "invalid_state",
        f"{listed.name}: {unfit}",
        hint=f"nothing was changed; its worktree is {shown(str(listed.attempt.worktree_path))}",
        details={"attempt": listed.attempt.id},
    )


def present_of(tx: Session | Transaction, attempt: Attempt) -> Attempt:
    """The attempt as it is now."""
    present = attempts.get(tx, attempt.id)
    assert present is not None
    return present


# -- elsewhere -----------------------------------------------------------------------------------


def checkpoint_into(desk: Desk, run: Run, checkpoint: Checkpoint, folder: str) -> Elsewhere:
    """Write the files of a checkpoint into a folder that is new or empty, byte for byte. Errors:
    `file_exists`, `usage` (inside the attempt's worktree, or where git or the database keeps its
    files), and those of git."""
    repository, whole = desk.repository(run), os.path.abspath(folder)
    restore.refuse_inside(_kept_free(desk, repository, checkpoint), whole)
    files = restoring.restore_raw(repository, checkpoint.commit, whole)
    return Elsewhere(checkpoint, whole, files)


def _kept_free(desk: Desk, repository: Repository, checkpoint: Checkpoint) -> list[str]:
    database = os.path.dirname(desk.database.layout.database)
    return [repository.common_directory, database, str(checkpoint.listed.attempt.worktree_path)]
