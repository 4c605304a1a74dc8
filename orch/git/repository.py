"""One repository: what it is, what its commits are, how a worktree stands."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError, usage

from .commands import git, output_of

_COMMITTER = {
    "GIT_AUTHOR_NAME": "inbox-orch",
    "GIT_AUTHOR_EMAIL": "inbox-orch@localhost",
    "GIT_COMMITTER_NAME": "inbox-orch",
    "GIT_COMMITTER_EMAIL": "inbox-orch@localhost",
}
_MOST_PATHS = 100


class Merged(NamedTuple):
    """An in-memory merge: a commit, or the paths that conflict."""

    commit: str | None
    conflicts: tuple[str, ...]


class Found(NamedTuple):
    """How a worktree stands: its HEAD, how many commits that is ahead of its base, what is not
    committed. `contains_base` is False when HEAD does not build on the base."""

    head: str
    commits_ahead: int
    dirty_paths: tuple[str, ...]
    contains_base: bool


class Repository:
    """A git repository by the path of its main working tree (or of the bare repository)."""

    def __init__(self, path: str) -> None:
        self.path = path

    @classmethod
    def at(cls, folder: str) -> "Repository":
        """The repository that `folder` belongs to, by its main working tree.

        Error `usage` when it belongs to none; `git_missing`.
        """
        status, text = git(
            folder, "rev-parse", "--git-common-dir", reads=True, accepted=(0, 128, 129)
        )
        if status != 0:
            raise usage(
                f"{folder} is not in a git repository",
                hint="give --repo PATH, or make one with `git init`",
            )
        common = os.path.realpath(os.path.join(folder, text.rstrip("\n")))
        bare = output_of(common, "rev-parse", "--is-bare-repository") == "true"
        return cls(common if bare else os.path.dirname(common))

    @property
    def common_directory(self) -> str:
        """The git directory that all worktrees share."""
        inside = os.path.join(self.path, ".git")
        return inside if os.path.isdir(inside) else self.path

    @property
    def bare(self) -> bool:
        """Whether it has no working tree of its own."""
        return self.common_directory == self.path

    def identity(self) -> str:
        """Device and inode of the git directory: the same repository by whatever path."""
        status = os.stat(self.common_directory)
        return f"{status.st_dev}:{status.st_ino}"

    # -- commits -----------------------------------------------------------------------------

    def commit_of(self, revision: str) -> str:
        """The id of the commit that `revision` names; error `usage`."""
        status, text = git(
            self.path,
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            revision + "^{commit}",
            reads=True,
            accepted=(0, 1, 128),
        )
        if status != 0:
            raise usage(
                f"{revision!r} names no commit in {self.path}",
                hint="the repository needs a first commit" if revision == "HEAD" else None,
                revision=revision,
            )
        return text.strip()

    def contains(self, commit: str, ancestor: str) -> bool:
        """Whether `ancestor` is in the history of `commit`."""
        status, _ = git(
            self.path, "merge-base", "--is-ancestor", ancestor, commit, reads=True, accepted=(0, 1)
        )
        return status == 0

    def independent(self, commits: Sequence[str]) -> list[str]:
        """Those commits that are in the history of none of the others, in the order given."""
        if len(commits) < 2:
            return list(commits)
        kept = set(output_of(self.path, "merge-base", "--independent", *commits).split())
        return [c for c in dict.fromkeys(commits) if c in kept]

    def has_branch(self, name: str) -> bool:
        """Whether a branch of exactly this name exists."""
        return self.ref_commit(f"refs/heads/{name}") is not None

    def ref_commit(self, ref: str) -> str | None:
        """What a full ref name points at."""
        status, text = git(
            self.path, "rev-parse", "--verify", "--quiet", ref, reads=True, accepted=(0, 1, 128)
        )
        return text.strip() if status == 0 else None

    def merge(self, commits: Sequence[str], message: str) -> Merged:
        """Merge commits one after the other, in memory: no working tree is touched.

        Needs git 2.38 (`git merge-tree --write-tree`).
        """
        merged = commits[0]
        for other in commits[1:]:
            status, text = git(
                self.path,
                "merge-tree",
                "--write-tree",
                "--name-only",
                "-z",
                "--no-messages",
                merged,
                other,
                accepted=(0, 1),
            )
            tree, *paths = text.rstrip("\0").split("\0")
            if status == 1:
                return Merged(None, tuple(dict.fromkeys(paths)))
            merged = self._commit_tree(tree.strip(), (merged, other), message)
        return Merged(merged, ())

    def _commit_tree(self, tree: str, parents: Sequence[str], message: str) -> str:
        named = [word for parent in parents for word in ("-p", parent)]
        _, text = git(self.path, "commit-tree", tree, *named, "-m", message, environment=_COMMITTER)
        return text.strip()

    def keep(self, ref: str, commit: str) -> None:
        """Point a ref of ours (`refs/orch/…`) at a commit, so that it stays reachable."""
        assert ref.startswith("refs/orch/")
        git(self.path, "update-ref", ref, commit)

    def drop(self, ref: str, commit: str) -> None:
        """Remove a ref if it still points at `commit` (compare and swap)."""
        git(self.path, "update-ref", "-d", ref, commit, accepted=(0, 1, 128))

    def change_summary(self, branch: str, base: str) -> str:
        """What a branch changes against its base, as `git diff --stat`; "" when it is gone."""
        head = self.ref_commit(f"refs/heads/{branch}")
        if head is None:
            return ""
        _, text = git(self.path, "diff", "--stat=80", "--no-color", base, head, reads=True)
        return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")[:4000]

    # -- working trees -----------------------------------------------------------------------

    def dirty_paths(self, folder: str | None = None) -> tuple[str, ...]:
        """What is not committed in a working tree (the main one), untracked files included.

        At most 100 paths. A bare repository has none.
        """
        if folder is None and self.bare:
            return ()
        _, text = git(
            folder or self.path,
            "-c",
            "status.relativePaths=false",
            "status",
            "--porcelain=v1",
            "-z",
            "--untracked-files=all",
            "--ignore-submodules=none",
            "--no-renames",
            reads=True,
        )
        return tuple(entry[3:] for entry in text.split("\0") if entry)[:_MOST_PATHS]

    def look_at(self, worktree: str, base_commit: str) -> Found | None:
        """How an attempt's worktree stands; None when it is gone or is another's."""
        if not self._is_worktree_of_ours(worktree):
            return None
        head = output_of(worktree, "rev-parse", "--verify", "HEAD^{commit}")
        contains = self.contains(head, base_commit)
        ahead = int(output_of(worktree, "rev-list", "--count", f"{base_commit}..{head}"))
        return Found(head, ahead, self.dirty_paths(worktree), contains)

    def _is_worktree_of_ours(self, worktree: str) -> bool:
        """Whether the folder is a working tree of this repository: git run in a folder that is
        none would answer for whatever lies above it."""
        if not os.path.isfile(os.path.join(worktree, ".git")):
            return False
        status, text = git(
            worktree,
            "rev-parse",
            "--show-toplevel",
            "--git-common-dir",
            reads=True,
            accepted=(0, 128),
        )
        if status != 0:
            return False
        top, common = text.rstrip("\n").split("\n")
        return os.path.realpath(top) == os.path.realpath(worktree) and os.path.samefile(
            os.path.join(worktree, common), self.common_directory
        )


def check_version() -> str:
    """What git calls itself. Error `git_missing` for one that is too old for merges in memory
    (before 2.38)."""
    text = output_of("/", "version")
    digits = text.removeprefix("git version ").split(".")
    version = tuple(int(d) for d in digits[:2] if d.isdigit())
    if version < (2, 38):
        raise InboxOrchError(
            "git_missing",
            f"{text} is too old: git 2.38 or newer is needed",
            hint="update git",
        )
    return text
