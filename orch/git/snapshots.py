"""Snapshots of a worktree: what lies in it, its HEAD and its index, in a chain of commits behind
one ref of the attempt's; and going back to one.

To be called in the attempt's lock. Neither the files nor the index, HEAD, stash and settings of
anybody are touched by a snapshot; going back takes one before, so that it is never a loss.
"""

import os
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from . import marks, mending, raw_trees, rewriting, salvage
from .commands import git, output_of
from .condition import Condition, begun
from .facts import differences
from .failures import shown
from .harvest import Unfit, add_to_index
from .hidden import marked_paths, unmark
from .integrating import working_trees
from .own_refs import pseudo_refs
from .raw_trees import tree_now
from .repository import COMMITTER, Repository
from .sealed import sealed_folder
from .stale import forget_lock
from .standing import own_directory, require_here
from .worktrees import Hold

__all__ = ["Snapshot", "Unfit", "put_back", "ref_of", "restore", "snapshot", "tree_now"]

_REFS = "refs/orch/attempts/"
_UNFINISHED = (
    *("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "MERGE_RR", "SQUASH_MSG", "CHERRY_PICK_HEAD"),
    *("REVERT_HEAD", "REBASE_HEAD", "AUTO_MERGE", "rebase-merge", "rebase-apply", "sequencer"),
    *("BISECT_LOG", "BISECT_START", "BISECT_TERMS", "BISECT_NAMES", "BISECT_EXPECTED_REV"),
)
_SIDES = ("MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "REBASE_HEAD")
"""Commits that something begun has to do with; a branch that has them may go."""


class Snapshot(NamedTuple):
    """One of a chain. `tree` is the raw tree of the files, `head` the commit of HEAD (None when
    there is none yet), `index_tree` what the index had, without what was unmerged."""

    commit: str
    tree: str
    head: str | None
    index_tree: str


class _State(NamedTuple):
    """What a snapshot says of itself: `branch` is the ref that HEAD named, None when it was
    detached; `doing` what was begun in the worktree, `ref` that of the chain."""

    snapshot: Snapshot
    branch: str | None
    doing: str | None
    ref: str
    staged: bool


class _Place(NamedTuple):
    """Where snapshots are made of what: `locks` are shared with git."""

    repository: Repository
    worktree: str
    known: Sequence[str]
    ref: str
    locks: Sequence[int]


def ref_of(attempt_id: str) -> str:
    """Where the chain of an attempt is."""
    return f"{_REFS}{attempt_id}"


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
    place = _Place(repository, worktree, known, ref, ())
    require_here(worktree, repository.common_directory)
    seen = raw_trees.look(repository, worktree, known)
    return _snapshot(place, seen, message, parent)


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
    wanted = _state_of(repository, snapshot_commit)
    _refuse_unrestorable(repository, worktree, wanted)
    with hold.shared() as lock:
        place = _Place(repository, worktree, known, wanted.ref, (lock,))
        tip = None if wanted.branch is None else repository.ref_commit(wanted.branch)
        before = _changed_to(place, wanted.snapshot.tree, "Before going back", tip, always=True)[0]
        _end_unfinished(worktree)
        _restore_index(place, wanted.snapshot.index_tree)
        _restore_head(place, wanted, tip)
    left = _left(place, wanted.snapshot.tree)
    if left:
        raise _changing(worktree, left)
    return before


def put_back(
    repository: Repository, worktree: str, tree: str, known: Sequence[str], ref: str
) -> tuple[str, ...]:
    """Let the files be those of a raw tree, whoever has changed them; returns the paths that were
    changed. The present files are kept in a snapshot at `ref` before. HEAD and the index stay; what
    the index knows of the files is looked at again. Raises and errors as for `restore`.
    """
    require_here(worktree, repository.common_directory)
    place = _Place(repository, worktree, known, ref, ())
    paths = _changed_to(place, tree, "Before files were put back")[1]
    if paths:
        _refresh(place)
        left = _left(place, tree)
        if left:
            raise _changing(worktree, left)
    return paths


# -- making one ------------------------------------------------------------------------------


def _snapshot(
    place: _Place,
    seen: raw_trees.Seen,
    message: str,
    parent: str | None,
    also: Sequence[str] = (),
) -> Snapshot:
    """`also` are commits that are to be kept beside HEAD."""
    repository, worktree, ref = place.repository, place.worktree, place.ref
    previous, at = _end_of_chain(repository, ref, parent)
    tree = raw_trees.tree_of(repository, worktree, seen)
    head, branch = _head_of(worktree)
    admin = str(own_directory(worktree))
    pseudo = pseudo_refs(worktree)
    doing = begun(admin, pseudo)
    condition = Condition(head, branch, (), (), tuple(seen.unmerged), (), (), (), (), (), "")
    parts = salvage.index_parts(worktree, condition)
    index_tree = _index_tree(repository, parts, head)
    made = Snapshot("", tree, head, index_tree)
    if previous is not None and not doing and not seen.unmerged:
        last = _state_of(repository, previous)
        same = last.snapshot._replace(commit="") == made and last.branch == branch
        if same and not last.doing and not last.staged and not also:
            if at is None:
                _advance(place, previous, None)
            return last.snapshot
    kept = salvage.lone_commits(repository, worktree, condition, {}) if doing else []
    kept += [name for ref_name, name in pseudo.items() if doing and ref_name in _SIDES]
    facts = [("Ref", ref), ("On", branch), ("Head", head), ("Index-tree", index_tree)]
    facts += [("Doing", doing[0] if doing else None), *parts.items()]
    facts += [("Kept", commit) for commit in dict.fromkeys((*also, *kept))]
    parents = dict.fromkeys(filter(None, (previous, head, *parts.values(), *also, *kept)))
    commit = _commit_of(worktree, tree, list(parents), _text_of(message, facts))
    _advance(place, commit, at)
    return made._replace(commit=commit)


def _end_of_chain(
    repository: Repository, ref: str, parent: str | None
) -> tuple[str | None, str | None]:
    """(the last commit, what the ref is at)."""
    if not ref.startswith(_REFS):
        raise ValueError(f"{ref} is no ref of snapshots")
    at = repository.ref_commit(ref)
    if at is None or parent is None or at == parent or repository.contains(at, parent):
        return at or parent, at
    raise InboxOrchError(
        "git_failed",
        f"{ref} is at {at}, which does not come after {parent}",
        hint="something else has moved it; `git log --first-parent` shows what is there",
        details={"ref": ref, "commit": at},
    )


def _head_of(worktree: str) -> tuple[str | None, str | None]:
    words = ("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    status, head = git(worktree, *words, reads=True, accepted=(0, 1, 128))
    status_of_ref, ref = git(
        worktree, "symbolic-ref", "--quiet", "HEAD", reads=True, accepted=(0, 1)
    )
    branch = ref.removesuffix("\n") if status_of_ref == 0 else None
    return (head.strip() if status == 0 else None), branch


def _index_tree(repository: Repository, parts: Mapping[str, str], head: str | None) -> str:
    commit = parts.get("Index", head)
    if commit is None:
        return git(repository.path, "mktree", given=b"")[1].strip()
    return output_of(repository.path, "rev-parse", f"{commit}^{{tree}}")


def _text_of(message: str, facts: Sequence[tuple[str, str | None]]) -> str:
    lines = [f"{name}: {value}" for name, value in facts if value is not None]
    return "\n".join([message.strip(), "", *lines])


def _commit_of(worktree: str, tree: str, parents: Sequence[str], text: str) -> str:
    named = [word for parent in parents for word in ("-p", parent)]
    words = ("-c", "i18n.commitEncoding=UTF-8", "commit-tree", tree, *named, "-F", "-")
    given = text.encode("utf-8", "surrogateescape")
    return git(worktree, *words, environment=dict(COMMITTER), given=given)[1].strip()


def _advance(place: _Place, new: str, old: str | None) -> None:
    """Compare and swap."""
    repository, ref = place.repository, place.ref
    forget_lock(repository.common_directory, ref)
    with repository.marked({ref: new}) as mark:
        git(
            repository.path,
            *("update-ref", "--no-deref", ref, new, old or "0" * len(new)),
            shared_locks=(*place.locks, *mark.descriptors),
        )


def _state_of(repository: Repository, commit: str) -> _State:
    """What the last lines of a snapshot's message say. Error `git_failed` for another commit."""
    _, text = git(
        repository.path,
        *("show", "--no-patch", "--no-notes", "--encoding=UTF-8", "--format=%T%n%H%n%B"),
        *("--no-show-signature", "--end-of-options", commit),
        reads=True,
    )
    tree, name, message = text.split("\n", 2)
    lines = [line.partition(": ") for line in message.strip("\n").split("\n\n")[-1].split("\n")]
    said = {key: value for key, _, value in lines}
    if not said.get("Ref", "").startswith(_REFS) or "Index-tree" not in said:
        raise InboxOrchError(
            "git_failed",
            f"{shown(commit)} is no snapshot of a worktree",
            hint=f"`git for-each-ref {_REFS}` shows where those are",
            details={"commit": shown(commit)},
        )
    found = Snapshot(name, tree, said.get("Head"), said["Index-tree"])
    staged = any(key.startswith("Stage-") for key in said)
    return _State(found, said.get("On"), said.get("Doing"), said["Ref"], staged)


# -- the files -------------------------------------------------------------------------------


def _changed_to(
    place: _Place, tree: str, message: str, tip: str | None = None, *, always: bool = False
) -> tuple[str, tuple[str, ...]]:
    """A snapshot of the present, and then the files of `tree`; the commit, and the paths that were
    touched. `tip` is a commit to be kept with it. Without a difference nothing is done, unless
    `always`."""
    repository, worktree = place.repository, place.worktree
    seen = raw_trees.look(repository, worktree, place.known)
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
        head = _head_of(worktree)[0]
        also = () if tip is None or tip == head else (tip,)
        before = _snapshot(place, seen, message, None, also)
        rewriting.carry_out(sealed, worktree, plan)
    return before.commit, plan.paths


def _own(paths: Sequence[str], set_up: "raw_trees.SetUp") -> list[str]:
    theirs = [path for path in paths if raw_trees.is_known(path, set_up)]
    if theirs:
        raise Unfit(f"{shown(theirs[0])} was there at set-up and is in the way: move it away")
    return list(paths)


def _left(place: _Place, tree: str) -> list[str]:
    """Paths that are not as they were to be: something was at work there meanwhile."""
    repository, worktree = place.repository, place.worktree
    set_up = raw_trees.set_up(worktree, place.known)
    seen = raw_trees.look(repository, worktree, place.known)
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


def _refuse_unrestorable(repository: Repository, worktree: str, wanted: _State) -> None:
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


def _restore_index(place: _Place, tree: str) -> None:
    worktree, common = place.worktree, place.repository.common_directory
    marked = [path for path in marked_paths(worktree) if _is_there(worktree, path)]
    wanted = _entries_of(_text_from(worktree, "ls-tree", "-r", "-z", "--full-tree", tree))
    present = _entries_of(_text_from(worktree, "ls-files", "-z", "--stage"))
    gone = {path: ("0", "0" * len(tree)) for path in present.keys() - wanted.keys()}
    changed = {path: entry for path, entry in wanted.items() if present.get(path) != entry}
    index_lock = os.path.join(mending.admin_of(place.repository, worktree), "index.lock")
    with marks.marked(common, {index_lock: None}) as mark:
        held = (*place.locks, *mark.descriptors)
        add_to_index(worktree, common, gone | changed, held)
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


def _restore_head(place: _Place, wanted: _State, tip: str | None) -> None:
    repository, worktree, head = place.repository, place.worktree, str(wanted.snapshot.head)
    present, branch = _head_of(worktree)
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


def _moved(place: _Place, ref: str, words: Sequence[str], content: str | None = None) -> None:
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


def _refresh(place: _Place) -> None:
    """Let the index know the files again that are as they were."""
    worktree, common = place.worktree, place.repository.common_directory
    index_lock = os.path.join(mending.admin_of(place.repository, worktree), "index.lock")
    with marks.marked(common, {index_lock: None}) as mark:
        git(
            worktree,
            *("update-index", "-q", "--refresh"),
            accepted=(0, 1, 128),
            shared_locks=(*place.locks, *mark.descriptors),
        )
