"""A change that was handed in as text becomes a tree, and a commit of it by whoever wrote it.

Nothing is judged here, nothing is stored but objects, to which nothing refers yet.
"""

from ..git import applying
from ..git.applying import Made
from ..git.repository import Repository
from ..git.unfit import NotApplied
from .given import Given


def made(repository: Repository, tree: str, given: Given) -> Made:
    """The tree that it makes of another. Raises `NotApplied`, also where it changes nothing.
    Errors: `git_failed`, `disk_full`, `io_error`."""
    if given.edits is None:
        found = applying.patched(repository, tree, given.raw)
    else:
        found = applying.edited(repository, tree, given.edits)
    if found.tree == tree:
        raise NotApplied("patch_does_not_apply", "it changes nothing")
    return found
