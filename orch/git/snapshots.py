"""Snapshots of a worktree: what lies in it, its HEAD and its index, in a chain of commits behind
one ref of the attempt's; and going back to one.

To be called in the attempt's lock. Neither the files nor the index, HEAD, stash and settings of
anybody are touched by a snapshot; going back takes one before, so that it is never a loss.
"""

import os
from collections.abc import Mapping, Sequence

from inbox_orch.shared.errors import InboxOrchError

from . import administration, marks, mending, raw_index, raw_trees, rewriting
from .chain import (
    Known,
    Place,
    Snapshot,
    State,
    head_of,
    is_elsewhere,
    keep,
    made,
    ref_of,
    state_of,
)
from .commands import git
from .condition import begun
from .facts import differences
from .failures import shown
from .harvest import Unfit, add_to_index
from .hidden import marked_paths, unmark
from .integrating import working_trees
from .own_refs import pseudo_refs
from .raw_trees import tree_name, tree_now
from .repository import COMMITTER, Repository
from .sealed import sealed_folder
from .standing import own_directory, require_here, require_here_on
from .worktrees import Hold

__all__ = [
    "Snapshot",
    "Unfit",
    "is_elsewhere",
    "keep",
    "put_back",
    "ref_of",
    "restore",
    "snapshot",
    "tree_name",
    "tree_now",
    "unsettled",
]

_UNFINISHED = (
    *("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_RR", "SQUASH_MSG", "CHERRY_PICK_HEAD"),
    *("REVERT_HEAD", "REBASE_HEAD", "AUTO_MERGE", "rebase-merge", "rebase-apply", "sequencer"),
    *("BISECT_LOG", "BISECT_START", "BISECT_TERMS", "BISECT_NAMES", "BISECT_EXPECTED_REV"),
)


def snapshot(
    repository: Repository,
    worktree: str,
    known: Sequence[str],
    ref: str,
    message: str,
    parent: str | None,
) -> Snapshot:
    """Keep what is in a worktree now; the same as at the end of the chain is no new one.

    `known` are the paths that were untracked at set-up, `ref` that of the chain (see `ref_of`),
    `parent` the end of it as far as the caller knows: one that was killed may have gone on.
    Raises `Unfit` as `tree_now` does. Errors: `git_failed` (also when the ref is elsewhere than
    after `parent`), `disk_full`, `read_only`, `io_error`.
    """
    place = Place(repository, worktree, known, ref, ())
    _require_own(worktree, ref)
    on = Known(require_here_on(worktree, repository.common_directory))
    seen = raw_trees.look(worktree, known)
    return made(place, seen, message, parent, known=on)


def restore(
    repository: Repository,
    worktree: str,
    hold: Hold,
    snapshot_commit: str,
    known: Sequence[str],
) -> str:
    """Let files, index and HEAD be as a snapshot has them; returns the commit of a snapshot of
    how they were before. Killed in the middle, the same again comes to the end.

    Ignored files and those of set-up stay; marks in the index go; what was begun (a merge, say) is
    at its end. A branch that HEAD has been taken to since stays where it is.
    Raises `Unfit`, with nothing changed but that snapshot, when the one wanted was made in the
    middle of a merge or before the first commit, when its branch is checked out elsewhere, when a
    program has the index, and where something that no snapshot has is in the way. Errors as for
    `snapshot`.
    """
    require_here(worktree, repository.common_directory)
    wanted = state_of(repository, snapshot_commit)
    _require_own(worktree, wanted.ref)
    _refuse_unrestorable(repository, worktree, wanted)
    with hold.shared() as lock:
        place = Place(repository, worktree, known, wanted.ref, (lock,))
        # Before anything is changed: whether that is possible.
        _add_to_index(place, {}, refresh=False)
        tip = None if wanted.branch is None else repository.ref_commit(wanted.branch)
        before = _changed_to(place, wanted.snapshot.tree, "Before going back", tip, always=True)[0]
        _end_unfinished(worktree)
        _restore_index(place, wanted.snapshot.index_tree)
        _restore_head(place, wanted, tip)
    left = _left(place, wanted.snapshot.tree)
    if left:
        raise _changing(worktree, left)
    return before


def unsettled(worktree: str) -> str | None:
    """Why a snapshot of how a worktree stands could not be gone back to; None when it could. Error
    `git_failed`."""
    doing = begun(str(own_directory(worktree)), pseudo_refs(worktree))
    if doing:
        return f"is in the middle of a {doing[0]}"
    if head_of(worktree)[0] is None:
        return "has a HEAD without any commit"
    unmerged = _text_from(worktree, "ls-files", "-z", "--unmerged")
    if unmerged:
        path = unmerged.split("\0", 1)[0].split("\t", 1)[1]
        return f"has two versions of {shown(path)} in its index"
    return None


def put_back(
    repository: Repository, worktree: str, tree: str, known: Sequence[str], ref: str
) -> tuple[str, ...]:
    """Let the files be those of a raw tree, whoever has changed them; returns the paths that were
    changed. The present files are kept in a snapshot at `ref` before. HEAD and the index stay; what
    the index knows of the files is looked at again. Raises and errors as for `restore`.
    """
    require_here(worktree, repository.common_directory)
    _require_own(worktree, ref)
    place = Place(repository, worktree, known, ref, ())
    paths = _changed_to(place, tree, "Before files were put back")[1]
    if paths:
        _refresh(place)
        left = _left(place, tree)
        if left:
            raise _changing(worktree, left)
    return paths


def _require_own(worktree: str, ref: str) -> None:
    """The worktree is not that of another attempt, by a link or a `.git` file that was put in the
    place of its own. Error `git_failed`."""
    own = own_directory(worktree)
    reason = administration.text_of(os.path.join(str(own), "locked")).split(" ")
    if len(reason) == 3 and reason[0] == "orch" and ref_of(reason[2]) != ref:
        raise InboxOrchError(
            "git_failed",
            f"{shown(worktree)} leads to the worktree of another attempt, {reason[2]}",
            hint="its folder, or the `.git` in it, was replaced: put its own back",
            details={"folder": shown(worktree), "attempt": reason[2], "status": 128},
        )


# -- the files -------------------------------------------------------------------------------


def _changed_to(
    place: Place, tree: str, message: str, tip: str | None = None, *, always: bool = False
) -> tuple[str, tuple[str, ...]]:
    """A snapshot of the present, and then the files of `tree`; the commit, and the paths that were
    touched. `tip` is a commit to be kept with it. Without a difference nothing is done, unless
    `always`."""
    repository, worktree = place.repository, place.worktree
    seen = raw_trees.look(worktree, place.known)
    set_up = raw_trees.set_up(worktree, place.known)
    with sealed_folder(repository) as sealed:
        present = raw_trees.tree_of(repository, worktree, seen)
        plan = rewriting.planned(worktree, differences(sealed, present, tree), set_up)
        if plan.in_the_way:
            # Ignored now, and yet where a file is to be: kept with the rest.
            seen = seen._replace(files=[*seen.files, *_own(plan.in_the_way, set_up)])
            present = raw_trees.tree_of(repository, worktree, seen)
            plan = rewriting.planned(worktree, differences(sealed, present, tree), set_up)
            if plan.in_the_way:
                raise Unfit(f"{shown(plan.in_the_way[0])} is in the way: move it away")
        if not plan.paths and not always:
            return "", ()
        head, branch = head_of(worktree)
        also = () if tip is None or tip == head else (tip,)
        before = made(place, seen, message, None, also, Known(branch, present))
        rewriting.carry_out(sealed, worktree, plan)
    return before.commit, plan.paths


def _own(paths: Sequence[str], set_up: "raw_trees.SetUp") -> list[str]:
    theirs = [path for path in paths if raw_trees.is_known(path, set_up)]
    if theirs:
        raise Unfit(f"{shown(theirs[0])} was there at set-up and is in the way: move it away")
    return list(paths)


def _left(place: Place, tree: str) -> list[str]:
    """Paths that are not as they were to be: something was at work there meanwhile."""
    repository, worktree = place.repository, place.worktree
    if raw_trees.is_now(repository, worktree, place.known, tree):
        return []
    set_up = raw_trees.set_up(worktree, place.known)
    seen = raw_trees.look(worktree, place.known)
    with sealed_folder(repository) as sealed:
        changed = differences(sealed, raw_trees.tree_of(repository, worktree, seen), tree)
        # Ignored by now, and there all the same.
        hidden = [r.path for r in changed if r.old is None and _is_there(worktree, r.path)]
        if hidden:
            seen = seen._replace(files=[*seen.files, *hidden])
            changed = differences(sealed, raw_trees.tree_of(repository, worktree, seen), tree)
    return [raw.path for raw in changed if not raw_trees.is_known(raw.path, set_up)]


def _is_there(worktree: str, path: str) -> bool:
    return os.path.lexists(os.path.join(worktree, path))


def _changing(worktree: str, paths: Sequence[str]) -> InboxOrchError:
    return InboxOrchError(
        "git_failed",
        f"{shown(paths[0])} was changed in {worktree} while files were put back there",
        hint="end what works there, and do it again: the present files were kept before",
        details={"paths": [shown(path) for path in paths[:100]]},
    )


# -- index and HEAD --------------------------------------------------------------------------


def _refuse_unrestorable(repository: Repository, worktree: str, wanted: State) -> None:
    if wanted.snapshot.head is None:
        raise Unfit("the snapshot was made before the first commit")
    if wanted.doing or wanted.staged:
        raise Unfit(f"the snapshot was made in the middle of a {wanted.doing or 'merge'}")
    here = os.path.realpath(worktree)
    for tree in working_trees(repository):
        name = None if tree.branch is None else f"refs/heads/{tree.branch}"
        if name is not None and name == wanted.branch and os.path.realpath(tree.path) != here:
            raise Unfit(f"{shown(tree.branch or '')} is checked out in {shown(tree.path)}, too")


def _end_unfinished(worktree: str) -> None:
    """Forget a merge, rebase or the like; its commits are in the snapshot of the present."""
    import shutil

    admin = str(own_directory(worktree))
    there = pseudo_refs(worktree)
    if not begun(admin, there):
        return
    for name in _UNFINISHED:
        path = os.path.join(admin, name)
        if os.path.isdir(path):
            shutil.rmtree(path)
        elif os.path.lexists(path):
            os.unlink(path)
    for name in pseudo_refs(worktree):
        if name in _UNFINISHED:  # where they are no files
            git(worktree, "update-ref", "--no-deref", "-d", name)


def _restore_index(place: Place, tree: str) -> None:
    worktree = place.worktree
    # In a simple one no path is marked, and none is only meant to be added.
    simple = raw_index.is_simple(str(own_directory(worktree)))
    different = _different(worktree, tree) if simple else None
    if different is not None:
        _add_to_index(place, different)
        return
    marked = [path for path in marked_paths(worktree) if _is_there(worktree, path)]
    wanted = _entries_of(_text_from(worktree, "ls-tree", "-r", "-z", "--full-tree", tree))
    present = _entries_of(_text_from(worktree, "ls-files", "-z", "--stage"))
    gone = {path: ("0", "0" * len(tree)) for path in present.keys() - wanted.keys()}
    changed = {path: entry for path, entry in wanted.items() if present.get(path) != entry}
    _add_to_index(place, gone | changed, marked)


def _different(worktree: str, tree: str) -> dict[str, tuple[str, str]] | None:
    """(mode, object id) that the tree has of each path in which the index differs from it; the mode
    is "0" of what it does not have. None where a path has two versions (git-diff-index(1))."""
    words = ("diff-index", "--cached", "-z", "--raw", "--no-renames", "--no-abbrev", tree, "--")
    rows = iter(_text_from(worktree, *words).split("\0"))
    found = {}
    for facts in filter(None, rows):
        mode, _, name, _, status = facts.removeprefix(":").split(" ")
        if status == "U":
            return None
        found[next(rows)] = ("0" if set(mode) == {"0"} else mode, name)
    return found


def _add_to_index(
    place: Place,
    entries: Mapping[str, tuple[str, str]],
    marked: Sequence[str] = (),
    *,
    refresh: bool = True,
) -> None:
    """Raises `Unfit` when a program has the index. `marked` are files whose marks go."""
    worktree, common = place.worktree, place.repository.common_directory
    index_lock = os.path.join(mending.admin_of(place.repository, worktree), "index.lock")
    with marks.marked(common, {index_lock: None}) as mark:
        held = (*place.locks, *mark.descriptors)
        add_to_index(worktree, common, entries, held, refresh=refresh)
        if marked:
            unmark(worktree, {}, marked)


def _text_from(worktree: str, *words: str) -> str:
    return git(worktree, *words, reads=True)[1]


def _entries_of(text: str) -> dict[str, tuple[str, str]]:
    """Of ls-tree(1) and ls-files(1); of what is unmerged, an entry that is no other's."""
    found = {}
    for line in filter(None, text.split("\0")):
        facts, path = line.split("\t", 1)
        mode, *rest = facts.split(" ")
        is_merged = rest[-1] == "0" or rest[0] in ("blob", "commit")
        name = rest[1] if rest[0] in ("blob", "commit") else rest[0]
        found[path] = (mode, name) if is_merged else ("unmerged", "")
    return found


def _restore_head(place: Place, wanted: State, tip: str | None) -> None:
    repository, worktree, head = place.repository, place.worktree, str(wanted.snapshot.head)
    present, branch = head_of(worktree)
    require_here(worktree, repository.common_directory)
    null = "0" * len(head)
    if wanted.branch is None:
        if branch is not None or present != head:
            _moved(place, "HEAD", ("update-ref", "--no-deref", "-m", _REASON, "HEAD", head))
        return
    if tip != head:
        words = ("update-ref", "--no-deref", "-m", _REASON, wanted.branch, head, tip or null)
        _moved(place, wanted.branch, words, head)
    if branch != wanted.branch:
        _moved(place, "HEAD", ("symbolic-ref", "-m", _REASON, "HEAD", wanted.branch))


_REASON = "orch restore"


def _moved(place: Place, ref: str, words: Sequence[str], content: str | None = None) -> None:
    repository, worktree = place.repository, place.worktree
    common = repository.common_directory
    admin = mending.admin_of(repository, worktree)
    refs = {} if content is None else {ref: content}
    locks = marks.of_refs(common, refs, admin)
    if content is None:
        locks[os.path.join(admin, "HEAD.lock")] = None
    with marks.marked(common, locks) as mark:
        git(
            worktree,
            *words,
            environment=dict(COMMITTER),
            shared_locks=(*place.locks, *mark.descriptors),
            unbroken=True,
        )


def _refresh(place: Place) -> None:
    """Let the index know the files again that are as they were."""
    worktree, common = place.worktree, place.repository.common_directory
    index_lock = os.path.join(mending.admin_of(place.repository, worktree), "index.lock")
    require_here(worktree, common)
    with marks.marked(common, {index_lock: None}) as mark:
        git(
            worktree,
            *("update-index", "-q", "--refresh"),
            accepted=(0, 1, 128),
            shared_locks=(*place.locks, *mark.descriptors),
        )
