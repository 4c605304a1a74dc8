"""Where the HEAD of a worktree is, read as files: cheap enough for every look at a run.

The layout is that of gitrepository-layout(5); where it tells nothing (another ref format), git
is asked. Changes nothing.
"""

import os

from . import administration
from .commands import git
from .repository import Repository

_HEXADECIMAL = set("0123456789abcdef")


class Heads:
    """The HEADs of a repository's worktrees at about one moment."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository
        self._packed: dict[str, str] | None = None

    def of(self, worktree: str) -> str | None:
        """The commit that HEAD is; None when the folder is no worktree of the repository, or
        its HEAD names no commit."""
        admin = administration.folder_of(worktree)
        entries = os.path.join(self._repository.common_directory, "worktrees")
        if admin is None or os.path.dirname(admin) != os.path.realpath(entries):
            return None
        found = administration.text_of(os.path.join(admin, "HEAD"))
        if _is_commit(found):
            return found
        ref = found.removeprefix("ref: ")
        return self._commit_of(ref) or self._asked(worktree)

    def _commit_of(self, ref: str) -> str | None:
        common = self._repository.common_directory
        found = administration.text_of(os.path.join(common, ref))
        if _is_commit(found):
            return found
        if self._packed is None:
            self._packed = _packed_refs(os.path.join(common, "packed-refs"))
        return self._packed.get(ref)

    def _asked(self, worktree: str) -> str | None:
        status, text = git(
            worktree,
            *("rev-parse", "--verify", "--quiet", "HEAD^{commit}"),
            reads=True,
            accepted=(0, 1, 128),
        )
        return text.strip() if status == 0 else None


def commits_beyond(repository: Repository, head: str, known: list[str]) -> int:
    """How many commits are in the history of `head` and of none of the others.

    Error `git_failed`, when one of them is not there any more.
    """
    others = [f"^{commit}" for commit in known]
    _, text = git(repository.path, "rev-list", "--count", head, *others, reads=True)
    return int(text)


def _is_commit(text: str) -> bool:
    return len(text) in (40, 64) and set(text) <= _HEXADECIMAL


def _packed_refs(path: str) -> dict[str, str]:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            lines = [line.split() for line in file if line[0] not in "#^"]
    except OSError:
        return {}
    return {words[1]: words[0] for words in lines if len(words) == 2}


def branch_in(folder: str) -> str | None:
    """The branch that is checked out in the working tree of a folder, also one without a commit;
    None when HEAD is detached. Errors are git's."""
    status, text = git(folder, "symbolic-ref", "--quiet", "HEAD", reads=True, accepted=(0, 1))
    ref = text.strip() if status == 0 else ""
    return ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else None
