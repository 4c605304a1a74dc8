"""Making a worktree for an attempt, and taking away one that was never handed out.

Adding and removing happen under one lock per repository: without it, eight at once fail in up
to 29 % of tries. Only that step is locked; the files are checked out outside of it.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.gate import Gate

from .commands import git
from .repository import Repository

LOCK_SECONDS = 60.0
_LOCK_NAME = "inbox-orch.lock"


class Place(NamedTuple):
    """Where an attempt works: everything is unique to it and never used again."""

    branch: str
    path: str
    base_commit: str
    reason: str


@contextlib.contextmanager
def locked(repository: Repository) -> Iterator[int]:
    """Be the only one that adds or removes worktrees of the repository; gives the lock's
    descriptor.

    Error `busy` after a minute: never goes ahead without the lock.
    """
    gate = Gate(os.path.join(repository.common_directory, _LOCK_NAME))
    _acquire(gate, f"the worktrees of {repository.path}")
    try:
        yield gate.descriptor
    finally:
        gate.release()


def make(repository: Repository, place: Place) -> None:
    """Make branch and worktree, and check the files out.

    Whatever an earlier, killed try for the same attempt has left is cleared first; nobody has
    ever been given it. Errors: `git_failed`, `busy`, `disk_full`, `read_only`.
    """
    with _alone(place) as attempt_lock:
        with locked(repository) as repository_lock:
            _clear(repository, place)
            git(
                repository.path,
                *("worktree", "add", "--quiet", "--no-checkout", "--no-track", "--lock"),
                *("--reason", place.reason, "-b", place.branch, place.path, place.base_commit),
                shared_locks=(attempt_lock, repository_lock),
            )
        # `reset` rather than `checkout`: no hook of the user's runs on our account.
        git(
            place.path,
            *("reset", "--quiet", "--hard", place.base_commit),
            shared_locks=(attempt_lock,),
        )


def unmake(repository: Repository, place: Place) -> None:
    """Take away a worktree that was made for an attempt and never handed out."""
    with _alone(place), locked(repository):
        _clear(repository, place)


@contextlib.contextmanager
def _alone(place: Place) -> Iterator[int]:
    """Be the only one that makes this attempt's worktree.

    The git processes share the lock: when their parent is killed they go on for a while, and
    whoever finishes its work must wait for their end.
    """
    path = place.path + ".lock"
    os.makedirs(os.path.dirname(path), 0o700, exist_ok=True)
    while True:
        gate = Gate(path)
        _acquire(gate, place.path)
        if os.path.exists(path) and os.path.samestat(os.stat(path), os.fstat(gate.descriptor)):
            break
        gate.release()  # whoever held it before has removed the file: take the new one
    try:
        yield gate.descriptor
    finally:
        os.unlink(path)
        gate.release()


def _acquire(gate: Gate, what: str) -> None:
    try:
        gate.acquire(LOCK_SECONDS)
    except InboxOrchError as error:
        if error.code != "busy":
            raise
        raise InboxOrchError(
            "busy",
            f"another process has been changing {what} for {LOCK_SECONDS:g} s",
            hint="try again; `orch reconcile` finishes what a killed process has left",
            details=error.details,
        ) from error


def _clear(repository: Repository, place: Place) -> None:
    """Remove worktree, folder and branch of a try that did not come to its end.

    Git killed in the middle leaves an entry with an all-zero HEAD and the lock "initializing",
    which `worktree prune` skips and which breaks every later fetch.
    """
    entry = _entry_of(repository, place.path)
    if entry is not None:
        git(
            repository.path,
            *("worktree", "remove", "--force", "--force", place.path),
            accepted=(0, 128, 255),
        )
        _remove_folder(entry)
    _remove_folder(place.path)
    branch = f"refs/heads/{place.branch}"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(repository.common_directory, f"{branch}.lock"))
    if repository.ref_commit(branch) == place.base_commit:
        repository.drop(branch, place.base_commit)


def half_made(repository: Repository) -> list[str]:
    """Entries of worktrees, anybody's, whose making was cut short: their HEAD is all zeros, or
    they are still marked as being initialised."""
    entries = os.path.join(repository.common_directory, "worktrees")
    names = sorted(os.listdir(entries)) if os.path.isdir(entries) else []
    return [
        os.path.join(entries, name)
        for name in names
        if set(_text(os.path.join(entries, name, "HEAD"))) == {"0"}
        or _text(os.path.join(entries, name, "locked")) == "initializing"
    ]


def _text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return ""


def _entry_of(repository: Repository, path: str) -> str | None:
    """The folder below `worktrees/` of the git directory that belongs to a worktree's path.

    Found by its `gitdir` file (gitrepository-layout(5)), which git writes before anything else.
    """
    entries = os.path.join(repository.common_directory, "worktrees")
    for name in os.listdir(entries) if os.path.isdir(entries) else ():
        entry = os.path.join(entries, name)
        if _worktree_of(entry) == os.path.realpath(path):
            return entry
    return None


def _worktree_of(entry: str) -> str | None:
    try:
        with open(os.path.join(entry, "gitdir"), encoding="utf-8") as file:
            return os.path.realpath(os.path.dirname(file.read().strip()))
    except (OSError, UnicodeDecodeError):
        return None


def _remove_folder(path: str) -> None:
    if os.path.lexists(path):
        shutil.rmtree(path)
