"""One repository: what it is, what its commits are, how a worktree stands."""

import os
import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError, usage

from . import marks
from .commands import exact_names, git, output_of
from .failures import shown
from .hidden import hidden_changes
from .joining import merged_tree
from .nested import unpushed_submodules
from .stale import forget_lock
from .standing import is_bare, main_setting, own_directory, refuse_settings
from .untouched import untouched

# Set explicitly: the user's name has no part in it, and may not even be configured.
COMMITTER = {
    "GIT_AUTHOR_NAME": "inbox-orch",
    "GIT_AUTHOR_EMAIL": "inbox-orch@localhost",
    "GIT_COMMITTER_NAME": "inbox-orch",
    "GIT_COMMITTER_EMAIL": "inbox-orch@localhost",
}
_DATES = ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE")
_MOST_PATHS = 100
_OBJECT_ID = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# The name that a revision begins with (gitrevisions(7)).
_NAME = re.compile(r"(?!refs/)(?:[^~^:@]|@(?!\{))+")


class Merged(NamedTuple):
    """An in-memory merge: a commit, or the paths that conflict."""

    commit: str | None
    conflicts: tuple[str, ...]


class Found(NamedTuple):
    """How a worktree stands: its HEAD, how many commits that is ahead of its base, what is not
    committed. `contains_base` is False when HEAD does not build on the base; there is no `head`
    when HEAD names no commit. `unpushed_submodules` are those of which HEAD names a commit that
    only the worktree has."""

    head: str | None
    commits_ahead: int
    dirty_paths: tuple[str, ...]
    contains_base: bool
    unpushed_submodules: tuple[str, ...] = ()


class Repository:
    """A git repository by the path of its main working tree (or of the bare repository)."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._common_directory: str | None = None

    @classmethod
    def at(cls, folder: str) -> "Repository":
        """The repository that `folder` belongs to, by its main working tree.

        Error `usage` when it belongs to none; `git_missing`; `git_failed` when git refuses it.
        """
        if not os.path.isdir(folder):
            raise usage(f"there is no folder {shown(folder)}", hint="--repo DIR names another")
        common = _common_directory_at(folder, discovers=True)
        path = common if is_bare(common) else _main_working_tree(common, folder)
        if not cls(path).is_at(path) or not os.path.samefile(_common_directory_at(path), common):
            raise usage(
                f"{shown(common)} has its files in {shown(path)}, from where git does not find it",
                hint="`git config core.worktree` names that folder; its `.git` must lead back",
            )
        if shown(path) != path or not path.isprintable():
            raise usage(
                f"{shown(path)!r} cannot be the path of a run's repository",
                hint="its name must be UTF-8 without control characters",
            )
        return cls(path)

    @property
    def common_directory(self) -> str:
        """The git directory that all worktrees share."""
        if self._common_directory is None:
            inside = os.path.join(self.path, ".git")
            if os.path.isdir(inside):
                self._common_directory = inside
            elif os.path.isfile(inside):  # a submodule, or --separate-git-dir
                self._common_directory = _common_directory_at(self.path)
            else:
                self._common_directory = self.path
        return self._common_directory

    @property
    def bare(self) -> bool:
        """Whether it has no working tree of its own."""
        return self.common_directory == self.path

    def is_at(self, folder: str) -> bool:
        """Whether `folder` belongs to this repository, in whichever of its working trees."""
        try:
            known = os.path.samefile(folder, self.common_directory)
            common = _common_directory_at(folder, discovers=not known)
            return os.path.samefile(common, self.common_directory)
        except (InboxOrchError, OSError):
            return False

    def identity(self) -> str:
        """The inode of the git directory: the same repository by whatever path. Not the device,
        whose number may be another after the next boot."""
        return str(os.stat(self.common_directory).st_ino)

    # -- commits -----------------------------------------------------------------------------

    def commit_of(self, revision: str, within: str | None = None) -> str:
        """The id of the commit that `revision` names, a branch before a tag of the same name.
        Errors: `usage` (also for what is no single commit), `git_failed`.

        `within` is the folder where it was said: in a linked worktree `HEAD` is another one.
        """
        folder = within if within is not None and self.is_at(within) else self.path
        status, text = git(
            folder,
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            branch_first(self, revision) + "^{commit}",
            reads=True,
            accepted=(0, 1, 128),
        )
        if status != 0 or not _OBJECT_ID.fullmatch(text.strip()):
            output_of(folder, "rev-parse", "--git-dir")  # whether there is a repository at all
            raise usage(
                f"{revision!r} names no commit in {self.path}",
                hint="the repository needs a first commit"
                if revision == "HEAD"
                else "`git branch --all` and `git tag` list what can be named",
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

    def branch_at(self, name: str) -> str | None:
        """The branch of exactly this name, or that to which it leads: a symbolic ref is another
        name of one. None when there is none."""
        ref = f"refs/heads/{name}"
        status, _ = git(
            self.path, "show-ref", "--verify", "--quiet", ref, reads=True, accepted=(0, 1, 128)
        )
        if status != 0:
            return None
        status, text = git(self.path, "symbolic-ref", "--quiet", ref, reads=True, accepted=(0, 1))
        real = text.strip() if status == 0 else ref
        return real.removeprefix("refs/heads/") if real.startswith("refs/heads/") else None

    def has_other_names(self, ref: str) -> bool:
        """Whether a symbolic ref leads to this one: it would lead nowhere without it."""
        text = output_of(self.path, "for-each-ref", "--format=%(symref)")
        return ref in text.split("\n")

    def ref_commit(self, ref: str) -> str | None:
        """What a full ref name points at. Error `git_failed`."""
        status, text = git(
            self.path, "rev-parse", "--verify", "--quiet", ref, reads=True, accepted=(0, 1, 128)
        )
        if status == 0:
            return text.strip()
        if status != 1:
            output_of(self.path, "rev-parse", "--git-dir")  # whether there is a repository at all
        return None

    def merge(self, commits: Sequence[str], message: str, *, at: int | None = None) -> Merged:
        """Merge commits one after the other, in memory: no working tree is touched.

        `at` dates the merge, in seconds since 1970; the same merge with the same date is the same
        commit. Needs git 2.38 (`git merge-tree --write-tree`). Error `git_failed`, also when git
        knows no commit that two of them build on.
        """
        merged = commits[0]
        for other in commits[1:]:
            tree, conflicts = merged_tree(self.path, self.common_directory, merged, other)
            if conflicts:
                return Merged(None, conflicts)
            merged = self.commit_tree(tree, (merged, other), message, at)
        return Merged(merged, ())

    def commit_tree(self, tree: str, parents: Sequence[str], message: str, at: int | None) -> str:
        """A commit of ours, which nothing refers to yet; `at` dates it, in seconds since 1970.
        Error `git_failed`."""
        named = [word for parent in parents for word in ("-p", parent)]
        dated = {} if at is None else dict.fromkeys(_DATES, f"@{at} +0000")
        _, text = git(
            self.path,
            # Our messages are UTF-8, whatever the user writes theirs in.
            *("-c", "i18n.commitEncoding=UTF-8", "commit-tree", tree, *named, "-m", message),
            environment={**COMMITTER, **dated},
        )
        return text.strip()

    def keep(self, ref: str, commit: str, shared_locks: Sequence[int] = ()) -> None:
        """Point a ref of ours (`refs/orch/…`) at a commit, so that it stays reachable.
        `shared_locks` stay held until git has ended, even if we are killed."""
        forget_lock(self.common_directory, ref)
        with self.marked({ref: commit}) as mark:
            locks = (*shared_locks, *mark.descriptors)
            git(self.path, "update-ref", "--no-deref", ref, commit, shared_locks=locks)

    def drop(self, ref: str, commit: str, shared_locks: Sequence[int] = ()) -> bool:
        """Remove a ref if it still points at `commit` (compare and swap); locks as for `keep`.
        False when it could not be removed, and does so still."""
        if ref.startswith("refs/orch/"):
            forget_lock(self.common_directory, ref)
        dropping = ("update-ref", "--no-deref", "-d", ref, commit)
        with self.marked({ref: ""}) as mark:
            locks = (*shared_locks, *mark.descriptors)
            status, _ = git(self.path, *dropping, accepted=(0, 1, 128), shared_locks=locks)
        return status == 0 or self.ref_commit(ref) != commit

    def marked(self, refs: Mapping[str, str]) -> AbstractContextManager[marks.Open]:
        """A mark for the git that is going to point refs at commits, or to remove them (""): by
        it, locks that are left are known. Git has to share its descriptors."""
        return marks.marked(self.common_directory, marks.of_refs(self.common_directory, refs))

    def change_summary(self, head: str, base: str) -> str:
        """What `head` changes against `base`, as `git diff --stat`; "" when one of them is gone.

        Only for reading: what cannot be told is left out.
        """
        status, text = git(
            self.path,
            *("diff", "--stat=80", "--no-color", "--no-ext-diff", "--end-of-options", base, head),
            reads=True,
            accepted=(0, 1, 128, 129),
        )
        return shown(text)[:4000] if status == 0 else ""

    # -- working trees -----------------------------------------------------------------------

    def working_tree_at(self, folder: str | None) -> str | None:
        """The top of the working tree of this repository that `folder` lies in, the main one by
        default; None where there is none (a bare repository)."""
        if folder is None or not self.is_at(folder):
            return None if self.bare else self.path
        status, text = git(folder, "rev-parse", "--show-toplevel", reads=True, accepted=(0, 128))
        return text.rstrip("\n") if status == 0 else None if self.bare else self.path

    def dirty_paths(
        self, folder: str | None = None, untracked_at_start: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """What is not committed in a working tree (the main one), untracked files included,
        without those that are known, and those that are as a checkout writes them.

        At most 100 paths, bytes that are not UTF-8 escaped. A bare repository has none.
        """
        return tuple(map(shown, self._dirt(folder, untracked_at_start)))[:_MOST_PATHS]

    def dirt(self, worktree: str, untracked_at_start: Sequence[str] = ()) -> list[str]:
        """All that is not committed in a worktree, also what git was told not to look at, with
        bytes that are not UTF-8 as surrogates. Repositories of their own end with a slash."""
        found = (*self._dirt(worktree, untracked_at_start), *hidden_changes(worktree))
        return list(dict.fromkeys(found))

    def _dirt(self, folder: str | None, untracked_at_start: Sequence[str]) -> list[str]:
        if folder is None and self.bare:
            return []
        working_tree = folder or self.path
        _, text = git(
            working_tree,
            *("-c", "status.relativePaths=false", *exact_names(working_tree)),
            *("status", "--porcelain=v1", "-z", "--untracked-files=all"),
            *("--ignore-submodules=none", "--no-renames"),
            reads=True,
        )
        known = {f"?? {path}" for path in untracked_at_start}
        found = [entry for entry in text.split("\0") if entry]
        modified = [entry[3:] for entry in found if entry.startswith(" M ")]
        top = self.working_tree_at(folder) or working_tree if modified else working_tree
        same = untouched(top, self.common_directory, modified) if modified else set()
        return [e[3:] for e in found if e[3:] not in same and shown(e) not in known]

    def untracked_paths(self, folder: str) -> tuple[str, ...]:
        """What is neither in the index of a working tree nor ignored, at most 100 paths."""
        _, text = git(
            folder,
            *exact_names(folder),
            *("ls-files", "-z", "--others", "--exclude-standard", "--full-name"),
            reads=True,
        )
        return tuple(shown(path) for path in text.split("\0") if path)[:_MOST_PATHS]

    def uncommitted(self, worktree: str, untracked_at_start: Sequence[str] = ()) -> tuple[str, ...]:
        """What is not committed in a worktree of ours; nothing when it is gone or cannot be
        read."""
        if not self._is_worktree_of_ours(worktree):
            return ()
        try:
            return self.dirty_paths(worktree, untracked_at_start)
        except InboxOrchError as error:
            if error.code != "git_failed":
                raise
            return ()

    def paths_at(self, commit: str) -> tuple[str, ...]:
        """The paths of a commit. Error `git_failed`."""
        words = ("ls-tree", "-r", "-z", "--name-only", "--full-tree", commit)
        return tuple(git(self.path, *words, reads=True)[1].split("\0")[:-1])

    def changed_paths(self, commit: str, since: str) -> tuple[str, ...]:
        """The paths in which two commits differ, at most 100; nothing when one is gone."""
        status, text = git(
            self.path,
            *("diff-tree", "-r", "--name-only", "-z", "--no-renames", since, commit),
            reads=True,
            accepted=(0, 128),
        )
        paths = text.split("\0") if status == 0 else ()
        return tuple(shown(path) for path in paths if path)[:_MOST_PATHS]

    def look_at(
        self, worktree: str, base_commit: str, untracked_at_start: Sequence[str] = ()
    ) -> Found | None:
        """How an attempt's worktree stands; None when it is gone or is another's.

        What was there untracked before the worker came need not be committed.
        Error `git_failed` when git cannot tell (a damaged index, say), or looks for its files
        elsewhere.
        """
        if not self._is_worktree_of_ours(worktree):
            self._refuse_elsewhere(worktree)
            return None
        dirty = tuple(map(shown, self.dirt(worktree, untracked_at_start)))[:_MOST_PATHS]
        status, text = git(
            worktree,
            *("rev-parse", "--verify", "--quiet", "HEAD^{commit}"),
            reads=True,
            accepted=(0, 1, 128),
        )
        if status != 0:
            return Found(None, 0, dirty, False)
        head = text.strip()
        contains = self.contains(head, base_commit)
        ahead = int(output_of(worktree, "rev-list", "--count", f"{base_commit}..{head}"))
        unpushed = unpushed_submodules(worktree, base_commit, head) if ahead else ()
        return Found(head, ahead, dirty, contains, tuple(map(shown, unpushed))[:_MOST_PATHS])

    def _refuse_elsewhere(self, worktree: str) -> None:
        """Error `git_failed` for a worktree of ours that a setting keeps git from."""
        own = own_directory(worktree)
        entries = os.path.realpath(os.path.join(self.common_directory, "worktrees"))
        if own is not None and os.path.dirname(own) == entries and os.path.isdir(own):
            refuse_settings(worktree, self.common_directory)

    def _is_worktree_of_ours(self, worktree: str) -> bool:
        """Whether the folder is a working tree of this repository: git run in a folder that is
        none would answer for whatever lies above it."""
        if not is_there(worktree):
            return False
        status, top = git(worktree, "rev-parse", "--show-toplevel", reads=True, accepted=(0, 128))
        if status != 0:
            return False
        same_folder = os.path.realpath(top.removesuffix("\n")) == os.path.realpath(worktree)
        return same_folder and self.is_at(worktree)


def branch_first(repository: Repository, revision: str) -> str:
    """A revision by the full name of the branch that it begins with, if there is such a branch: git
    itself prefers a tag of the same name, and people mean the branch."""
    found = _NAME.match(revision)
    name = "" if found is None else found.group()
    # Git takes neither for the name of a branch: what it keeps for itself, and a whole id.
    is_gits = name in ("", "@", "HEAD") or name.endswith("_HEAD") or _OBJECT_ID.fullmatch(name)
    return revision if is_gits or not repository.has_branch(name) else f"refs/heads/{revision}"


def is_there(worktree: str) -> bool:
    """Whether a folder is a working tree at all, seen without asking git."""
    return os.path.isfile(os.path.join(worktree, ".git"))


def _common_directory_at(folder: str, *, discovers: bool = False) -> str:
    """Error `usage` when the folder is in no repository; `git_failed`, `git_missing`."""
    asking = ("rev-parse", "--path-format=absolute", "--git-common-dir")
    try:
        _, text = git(folder, *asking, reads=True, discovers=discovers)
    except InboxOrchError as error:
        if error.code != "git_failed" or "not a git repository" not in error.message:
            raise
        raise usage(
            f"{shown(folder)} is not in a git repository",
            hint="give --repo PATH, or make one with `git init`",
        ) from error
    return os.path.realpath(text.rstrip("\n"))


def _main_working_tree(common: str, folder: str) -> str:
    """Beside the git directory, or where a submodule's says; a git directory that lies
    elsewhere does not know its main working tree, which can only be asked from inside."""
    if os.path.basename(common) == ".git":
        return os.path.dirname(common)
    named = main_setting(common, "core.worktree")
    if named is not None:
        return os.path.realpath(os.path.join(common, named))
    own = output_of(folder, "rev-parse", "--path-format=absolute", "--git-dir")
    if os.path.realpath(own) != common:
        raise usage(
            f"{shown(folder)} does not lead to the main working tree of its repository",
            hint="give that as --repo",
        )
    return os.path.realpath(output_of(folder, "rev-parse", "--show-toplevel"))
