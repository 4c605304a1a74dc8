"""Commits that orch makes in the name of others, of a tree on a parent: judged work as it is
accepted, with nothing of the history in which its worker came to it; what was handed in as text.

Made of facts that are stored, so that making one again gives the same commit. Sets no ref.
"""

from typing import NamedTuple

from .commands import git, output_of
from .harvest import AUTHORS_AT
from .repository import COMMITTER, Repository


class Signed(NamedTuple):
    """By whom a commit is (a name that an agent may have), when in seconds since 1970, and its
    message."""

    author: str
    at: int
    message: str


def commit_of(repository: Repository, tree: str, parent: str, signed: Signed) -> str:
    """The commit of a tree on a parent. Errors: `git_failed`, `disk_full`, `read_only`."""
    date = f"@{signed.at} +0000"
    author = {
        "GIT_AUTHOR_NAME": signed.author,
        "GIT_AUTHOR_EMAIL": f"{signed.author}@{AUTHORS_AT}",
        "GIT_AUTHOR_DATE": date,
        "GIT_COMMITTER_DATE": date,
    }
    _, text = git(
        repository.path,
        *("-c", "i18n.commitEncoding=UTF-8", "commit-tree", tree, "-p", parent, "-F", "-"),
        environment={**COMMITTER, **author},
        given=signed.message.encode("utf-8", "backslashreplace"),
    )
    return text.strip()


def trees_of(repository: Repository, *commits: str) -> list[str]:
    """The trees of commits. Error `git_failed`."""
    return output_of(
        repository.path, "rev-parse", *(f"{each}^{{tree}}" for each in commits)
    ).split()
