"""Undoing a change in memory: what a commit would be without it. Makes objects and nothing else."""

from typing import NamedTuple

from .commands import output_of
from .integrating import commit_time
from .joining import merged_tree
from .repository import Repository


class Reversed(NamedTuple):
    """The commit after the one that was given, which has the tree `before`, without the change:
    None where the paths of `conflicts` do not let go of it, or where nothing of it is left."""

    commit: str | None
    before: str
    tree: str
    conflicts: tuple[str, ...]


def reversed_in(
    repository: Repository, commit: str, before: str, after: str, message: str
) -> Reversed:
    """Take the change from tree `before` to tree `after` out of a commit. Doing it again comes to
    the same commit. Error `git_failed`, also when a tree is not there any more."""
    at = commit_time(repository, commit)
    # Both sides build on the tree after the change: one has all that came since, the other is
    # without it (git-merge-tree(1) takes commits).
    present = output_of(repository.path, "rev-parse", "--verify", f"{commit}^{{tree}}")
    start = repository.commit_tree(after, (), "After the change", at)
    with_all = repository.commit_tree(present, (start,), "With what came since", at)
    without = repository.commit_tree(before, (start,), "Without the change", at)
    tree, conflicts = merged_tree(repository.path, repository.common_directory, with_all, without)
    if conflicts:
        return Reversed(None, present, tree, conflicts)
    if tree == present:
        return Reversed(None, present, tree, ())
    return Reversed(repository.commit_tree(tree, (commit,), message, at), present, tree, ())
