"""Bringing commits together without a working tree: what is missing, merging, moving a branch.

A branch that is checked out anywhere is never moved behind its owner's back: it is
fast-forwarded in that working tree, by git, or not at all. Decides nothing about tasks.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from . import forwarding, marks, mending
from .commands import FAILURES, git, output_of, with_settings
from .failures import shown
from .forwarding import Forward
from .repository import Repository
from .standing import own_directory, require_here
from .untouched import untouched

_MOST_REVISIONS = 1000
"""So many fit on a command line with room to spare."""


class Commit(NamedTuple):
    """A commit as the history knows it; `at` is its committer's time in seconds since 1970."""

    at: int
    parents: tuple[str, ...]


class Tree(NamedTuple):
    """A working tree: its HEAD, and the branch that it has checked out (or is rebasing or
    bisecting, and will come back to). `present` is False when its folder is gone."""

    path: str
    head: str | None
    branch: str | None
    busy: bool
    present: bool


class Move(NamedTuple):
    """A branch that is to come from one commit forward to another."""

    branch: str
    new: str
    old: str


class Moved(NamedTuple):
    """What became of a branch that was to be fast-forwarded.

    `state` is `up_to_date`, `fast_forwarded`, `checked_out` (in `worktree`, which is not clean or
    cannot be reached), `refused` (git would not), or `moved` (another process moved it). `command`
    is what the owner can do, `reason` why it was not done.
    """

    state: str
    worktree: str | None = None
    command: str | None = None
    reason: str | None = None


def missing_from(repository: Repository, tip: str, heads: Sequence[str]) -> dict[str, Commit]:
    """The commits that are in the history of the heads and not in that of the tip, by their ids.

    Error `git_failed` when one of them is not there.
    """
    found: dict[str, Commit] = {}
    for start in range(0, len(heads), _MOST_REVISIONS):
        text = output_of(
            repository.path,
            *("rev-list", "--parents", "--timestamp", "--end-of-options"),
            *heads[start : start + _MOST_REVISIONS],
            f"^{tip}",
        )
        for line in text.splitlines():
            at, commit, *parents = line.split()
            found[commit] = Commit(int(at), tuple(parents))
    return found


def reached(history: Mapping[str, Commit], head: str) -> set[str]:
    """The commits in the history of `head`, itself included, as far as `history` goes."""
    seen, todo = {head}, [head]
    while todo:
        commit = history.get(todo.pop())
        for parent in () if commit is None else commit.parents:
            if parent in history and parent not in seen:
                seen.add(parent)
                todo.append(parent)
    return seen


def commit_time(repository: Repository, commit: str) -> int:
    """The committer's time of a commit, in seconds since 1970."""
    text = output_of(
        repository.path, "rev-list", "--timestamp", "--no-walk", "--end-of-options", commit
    )
    return int(text.split()[0])


def move_branch(
    repository: Repository,
    branch: str,
    new: str,
    old: str | None,
    shared_locks: Sequence[int] = (),
) -> bool:
    """Point a branch at another commit if it is still where it was (None: not there); False
    when it is not. To be used for branches that no working tree has checked out.

    A signal is raised once it has been moved, or not. `shared_locks` stay held until git has ended,
    even if we are killed.
    """
    ref = f"refs/heads/{branch}"
    # Never through a symbolic ref, which leads to a branch that may be checked out.
    moving = ("update-ref", "--no-deref", "-m", "orch integrate", ref, new, old or "0" * len(new))
    with repository.marked({ref: new}) as mark:
        locks = (*shared_locks, *mark.descriptors)
        status, _ = git(
            repository.path, *moving, accepted=(0, 1, 128), shared_locks=locks, unbroken=True
        )
        if status == 0:
            return True
        if repository.ref_commit(ref) == old:
            # It is where it was, and yet cannot be moved: git says why.
            git(repository.path, *moving, shared_locks=locks, unbroken=True)
            return True
    return False


def working_trees(repository: Repository) -> list[Tree]:
    """Every working tree of the repository, the main one first."""
    _, text = git(repository.path, "worktree", "list", "--porcelain", "-z", reads=True)
    found: list[Tree] = []
    for entry in text.split("\0\0"):
        facts: dict[str, str] = {}
        for line in filter(None, entry.split("\0")):
            name, _, value = line.partition(" ")
            facts[name] = value
        if "worktree" not in facts:
            continue
        if "bare" in facts:
            found += _unlisted(repository)
            continue
        # Of a submodule, git lists the git directory in the place of its working tree.
        path = facts["worktree"] if found or repository.bare else repository.path
        found.append(_tree(path, facts))
    return found


def _unlisted(repository: Repository) -> list[Tree]:
    """The main working tree of a repository that is bare by its settings alone (`core.bare`): git
    names none, and yet its files and index are there, with a branch checked out."""
    common = repository.common_directory
    path = os.path.dirname(common) if repository.bare else repository.path
    is_there = os.path.exists(os.path.join(path, ".git"))
    if not is_there or not os.path.exists(os.path.join(common, "index")):
        return []
    status, ref = git(
        repository.path, "symbolic-ref", "--quiet", "HEAD", reads=True, accepted=(0, 1)
    )
    facts = {"branch": ref.strip()} if status == 0 else {}
    head = repository.ref_commit("HEAD")
    return [_tree(path, facts if head is None else {**facts, "HEAD": head})]


def _tree(path: str, facts: Mapping[str, str]) -> Tree:
    head = facts.get("HEAD")
    branch = facts.get("branch", "").removeprefix("refs/heads/") or None
    present = os.path.exists(os.path.join(path, ".git"))
    waiting = next(_waiting_branches(path), None) if present and branch is None else None
    if head is not None and not head.strip("0"):
        head = None
    return Tree(path, head, branch or waiting, waiting is not None, present)


def _waiting_branches(path: str) -> Iterator[str]:
    """The branch to which a rebase or a bisection will come back; git lists none meanwhile."""
    own = own_directory(path) or path
    for name in ("rebase-merge/head-name", "rebase-apply/head-name", "BISECT_START"):
        try:
            with open(os.path.join(own, name), encoding="utf-8", errors="surrogateescape") as file:
                yield file.read().strip().removeprefix("refs/heads/")
        except FileNotFoundError:
            continue


def fast_forward(
    repository: Repository,
    move: Move,
    source: str,
    *,
    dry_run: bool = False,
    shared_locks: Sequence[int] = (),
) -> Moved:
    """Let a branch come forward from `old` to `new`, its descendant, which the branch `source`
    is at.

    Checked out nowhere, it is moved by compare-and-swap. Checked out somewhere, git itself
    moves it there when nothing is uncommitted in that working tree, and refuses, leaving
    everything as it is, when an untracked or ignored file would be overwritten. Signals and
    `shared_locks` as for `move_branch`: no working tree is left half forwarded. To be called in
    the lock of the repository, unless it is a `dry_run`.
    """
    import shlex

    branch, new, old = move
    if new == old:
        return Moved("up_to_date")
    there = [tree for tree in working_trees(repository) if tree.branch == branch]
    if not there:
        if dry_run or move_branch(repository, branch, new, old, shared_locks):
            return Moved("fast_forwarded")
        return Moved("moved", reason=f"{branch} was moved by another program meanwhile")
    tree = there[0]
    if repository.ref_commit(f"refs/tags/{source}") is not None:
        source = f"refs/heads/{source}"  # by its short name git would take the tag
    command = f"git -C {shlex.quote(shown(tree.path))} merge --ff-only {source}"
    obstacle = _obstacle(repository, tree, len(there))
    if obstacle is not None:
        return Moved("checked_out", shown(tree.path), command, obstacle)
    if dry_run:
        return Moved("fast_forwarded", shown(tree.path), command)
    reason = _forwarded_there(repository, tree, move, shared_locks)
    if reason is not None and repository.ref_commit(f"refs/heads/{branch}") != new:
        return Moved("refused", shown(tree.path), command, reason)
    return Moved("fast_forwarded", shown(tree.path), command)


def _forwarded_there(
    repository: Repository, tree: Tree, move: Move, shared_locks: Sequence[int]
) -> str | None:
    """Let git bring a working tree forward; why it did not, with the tree as it was then."""
    common, ref = repository.common_directory, f"refs/heads/{move.branch}"
    within = mending.admin_of(repository, tree.path)
    index_lock = os.path.join(within, "index.lock")
    theirs = forwarding.in_the_way(repository, tree.path, move.old, move.new)
    forward = Forward(tree.path, move.branch, move.old, move.new, index_lock, theirs)
    refs = {ref: move.new, os.path.join(within, "ORIG_HEAD"): move.old}
    locks = {**marks.of_refs(common, refs, within), index_lock: None}
    with marks.marked(common, locks, forward._asdict()) as mark:
        foreign = _foreign_lock(common, (f"{ref}.lock", f"{within}/HEAD.lock", index_lock))
        if foreign is not None:
            return foreign
        reason = _merged_there(common, tree, move, (*shared_locks, *mark.descriptors))
        if reason is None and repository.ref_commit(ref) != move.new:
            reason = "git has not moved the branch there"
        # The branch comes last: files may have been written before.
        mark.keep = reason is not None
    if reason is not None:
        mending.mend_trees(repository, shared_locks, finish=False)
    return reason


def _foreign_lock(common: str, names: Sequence[str]) -> str | None:
    for name in names:
        lock = os.path.normpath(os.path.join(common, name.lstrip("/")))
        if os.path.lexists(lock):
            return (
                f"{shown(lock)} is there: a git is at work, or one that was killed has left it."
                " When none is at work, remove that file and repeat the command"
            )
    return None


def _merged_there(common: str, tree: Tree, move: Move, locks: Sequence[int]) -> str | None:
    try:
        require_here(tree.path, common)
        git(
            tree.path,
            *("-c", "submodule.recurse=false", "merge", "--quiet", "--ff-only", "--no-autostash"),
            *("--no-overwrite-ignore", "--no-verify-signatures", "--no-stat", move.new),
            # Of the branch's own options some outdo these: to squash it, or to make a merge of it.
            environment=with_settings([(f"branch.{move.branch}.mergeOptions", "")]),
            shared_locks=locks,
            unbroken=True,
        )
    except InboxOrchError as error:
        if error.code not in FAILURES:
            raise
        return error.message
    return None


def _obstacle(repository: Repository, tree: Tree, trees: int) -> str | None:
    """Why a working tree must be left to its owner."""
    if trees > 1:
        return f"it is checked out in {trees} working trees"
    if not tree.present:
        return "the working tree that has it is not there now"
    if tree.busy:
        return "it is in the middle of a rebase or a bisection"
    try:
        require_here(tree.path, repository.common_directory)
    except InboxOrchError as error:
        if error.code != "git_failed":
            raise
        return error.message
    changed = changed_paths(tree.path, repository.common_directory)
    if changed:
        more = f" and {len(changed) - 5} more" if changed[5:] else ""
        return "not committed there: " + ", ".join(changed[:5]) + more
    return None


def changed_paths(folder: str, common: str) -> tuple[str, ...]:
    """What is changed and not committed in a working tree, without untracked files: those stand
    in the way of no fast-forward that does not bring files of the same name, and git looks; and
    without files that are as a checkout writes them, which git looks at, too."""
    _, text = git(
        folder,
        *("-c", "status.relativePaths=false", "status", "--porcelain=v1", "-z"),
        *("--untracked-files=no", "--ignore-submodules=none", "--no-renames"),
        reads=True,
    )
    found = [entry for entry in text.split("\0") if entry]
    same = untouched(folder, common, [entry[3:] for entry in found if entry.startswith(" M ")])
    return tuple(shown(entry[3:]) for entry in found if entry[3:] not in same)
