"""Taking a worktree away: into a trash, from which both of its folders can be moved back.

Every step may be done again. Nothing is deleted but refs whose work was proven to be elsewhere,
and what has been in the trash for long. Never runs `git worktree prune`, which takes the admin
folder of every worktree that is not there at the moment, whosever it is.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.folders import make_private_folders, refuse_links, sync_folder

from . import administration
from .commands import FAILURES, git
from .failures import named_failures
from .integrating import working_trees
from .merged import Target
from .repository import Repository
from .stale import forget_lock
from .worktrees import Place

_TRASH = ".trash"
_ADMIN_TRASH = "inbox-orch-trash"


class Trash(NamedTuple):
    """Where the two folders of a removed worktree are. Each is on the disk that it was on, so
    that it only has to be renamed."""

    worktree: str
    admin: str


class Deletion(NamedTuple):
    """A ref that is to go if it still has its commit, and the target, if any, that has to have
    its own still."""

    ref: str
    commit: str
    target: Target | None


class Deleted(NamedTuple):
    """The refs that are gone, and of those that git failed to delete the names, with its words."""

    gone: list[Deletion]
    failed: dict[str, str]


def trash_of(repository: Repository, worktree_root: str, attempt_id: str) -> Trash:
    """The trash of an attempt: beside the worktrees of all runs, and in the git directory."""
    return Trash(
        os.path.join(worktree_root, _TRASH, attempt_id, "worktree"),
        os.path.join(repository.common_directory, _ADMIN_TRASH, attempt_id),
    )


def move_worktree(place: Place, trash: Trash) -> None:
    """The working tree goes into the trash. From here on the removal can only be finished.

    Errors: `io_error`, `read_only`, `disk_full`, `unsafe_link`.
    """
    folder = os.path.dirname(trash.worktree)
    refuse_links(folder, os.path.dirname(folder), os.path.dirname(trash.admin))
    with named_failures(place.path):
        make_private_folders(folder)
        os.rename(place.path, trash.worktree)
    _sync(folder)
    _sync(os.path.dirname(place.path))


def is_moved(trash: Trash) -> bool:
    """Whether the working tree has come into the trash."""
    return _is_own_folder(os.path.dirname(trash.worktree)) and os.path.lexists(trash.worktree)


def move_admin(repository: Repository, place: Place, trash: Trash) -> None:
    """The admin folder follows, if it is still there."""
    entry = administration.registered(repository, place)
    if entry is None:
        return
    refuse_links(os.path.dirname(trash.admin))
    with named_failures(entry):
        os.makedirs(os.path.dirname(trash.admin), 0o700, exist_ok=True)
        os.rename(entry, trash.admin)
    _sync(os.path.dirname(trash.admin))
    # As git itself does, which takes an empty folder for no harm but never makes one.
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(entry))


def give_up_trash(trash: Trash) -> None:
    """Remove what was made for a working tree that did not come."""
    with contextlib.suppress(OSError):
        os.rmdir(os.path.dirname(trash.worktree))


def delete_refs(
    repository: Repository, deletions: Sequence[Deletion], shared_locks: Sequence[int]
) -> Deleted:
    """Delete refs by compare and swap, each with its proof looked at again in the same
    transaction.

    One that has moved meanwhile, whose target has, that is checked out, or that a symbolic ref
    leads to, stays. `shared_locks`
    stay held until git has ended, even if we are killed.
    """
    gone: list[Deletion] = []
    failed: dict[str, str] = {}
    for each in deletions:
        try:
            if _deleted(repository, each, shared_locks):
                gone.append(each)
        except InboxOrchError as error:
            if error.code not in FAILURES:
                raise
            if repository.ref_commit(each.ref) == each.commit:
                failed[each.ref] = error.message
    return Deleted(gone, failed)


def still_there(repository: Repository, deletions: Iterable[Deletion]) -> list[Deletion]:
    """Those whose ref still has its commit."""
    wanted = list(deletions)
    if not wanted:
        return []
    _, text = git(
        repository.path,
        *("for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/orch", "refs/orch"),
        reads=True,
    )
    there = set(text.splitlines())
    return [each for each in wanted if f"{each.commit} {each.ref}" in there]


def _deleted(repository: Repository, deletion: Deletion, shared_locks: Sequence[int]) -> bool:
    """Whether it is gone. Errors: `git_failed`, `disk_full`, `read_only`."""
    ref, commit, target = deletion
    if repository.ref_commit(ref) is None:
        return True
    if ref.startswith("refs/heads/") and _is_in_use(repository, ref):
        return False
    lines = ["start"]
    if target is not None:
        present = repository.ref_commit(target.ref)
        if present is None or not _still_holds(repository, target, present):
            return False
        lines.append(f"verify {target.ref} {present}")
    # A symbolic ref goes by itself: what it leads to is another branch.
    lines += ["option no-deref", f"delete {ref} {commit}", "prepare", "commit"]
    if ref.startswith("refs/orch/"):
        forget_lock(repository.common_directory, ref)
    locked = {ref: ""} if target is None else {ref: "", target.ref: ""}
    with repository.marked(locked) as mark:
        git(
            repository.path,
            *("update-ref", "--stdin"),
            given="".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"),
            shared_locks=(*shared_locks, *mark.descriptors),
        )
    return True


def _is_in_use(repository: Repository, ref: str) -> bool:
    """Whether a working tree has a branch checked out, or a symbolic ref leads to it."""
    branch = ref.removeprefix("refs/heads/")
    held = any(tree.branch == branch for tree in working_trees(repository))
    return held or repository.has_other_names(ref)


def _still_holds(repository: Repository, target: Target, present: str) -> bool:
    """A target may have gone on since, but not back. `present` is what it points at, which may be
    a tag."""
    commit = repository.ref_commit(f"{present}^{{commit}}")
    return commit is not None and repository.contains(commit, target.commit)


def empty_trash(
    repository: Repository, worktree_root: str, attempt_ids: Iterable[str]
) -> list[str]:
    """Delete what is in the trash of these attempts; returns those of which there was anything.

    What cannot be deleted now is left to the next time.
    """
    emptied = []
    for attempt_id in attempt_ids:
        trash = trash_of(repository, worktree_root, attempt_id)
        places = (os.path.dirname(trash.worktree), trash.admin)
        folders = [place for place in places if _is_own_folder(place)]
        for folder in folders:
            _delete_tree(folder)
        if folders:
            emptied.append(attempt_id)
    return emptied


def in_trash(repository: Repository, worktree_root: str) -> set[str]:
    """The names of what is in the trash: ids of attempts, maybe of other databases."""
    folders = (
        os.path.join(worktree_root, _TRASH),
        os.path.join(repository.common_directory, _ADMIN_TRASH),
    )
    return {name for folder in folders if os.path.isdir(folder) for name in os.listdir(folder)}


def _is_own_folder(path: str) -> bool:
    """Whether there is a folder, and no link to one on the last two steps to it."""
    links = os.path.islink(path) or os.path.islink(os.path.dirname(path))
    return os.path.isdir(path) and not links


def _delete_tree(folder: str) -> None:
    import shutil

    # Module caches of some languages have folders that may not be written to.
    for inner, folders, _ in os.walk(folder):
        for name in (inner, *(os.path.join(inner, each) for each in folders)):
            with contextlib.suppress(OSError):
                found = os.lstat(name)
                if stat.S_ISDIR(found.st_mode) and found.st_mode & 0o700 != 0o700:
                    os.chmod(name, 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _sync(folder: str) -> None:
    """Renames are on disk before it is written down that they were done.

    Where that fails, what was renamed is renamed all the same: to say that it was not would let
    go of what was salvaged. After a loss of power it may be back, which loses nothing.
    """
    with contextlib.suppress(OSError):
        sync_folder(folder)
