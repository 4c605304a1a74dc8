"""Keeping what exists only in a worktree: commits of its index and of its files, at a ref of ours.

The files go in as they are on disk, through no filter, so that they come back byte for byte. Of
the commit at `refs/orch/salvage/<attempt>` the tree is the whole working tree. Its parents are
HEAD, and those that its message names: the index, each stage of what is unmerged, the files that
differ from the index alone, and commits that nothing else would keep.
"""

import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from . import administration
from .commands import git
from .condition import Condition
from .failures import temporary_folder
from .hidden import copy_index
from .merged import SNAPSHOTS
from .own_refs import own_ids
from .repository import COMMITTER, Repository
from .standing import require_here

MAX_BYTES = 1024**3
# From so many files on they are synced together at the end: one by one takes minutes.
_MANY_FILES = 200
_UNSYNCED = ("-c", "core.fsyncMethod=writeout-only")
_OBJECT_ID = re.compile(r"\b(?:[0-9a-f]{64}|[0-9a-f]{40})\b")
_FOLDERS_WITH_COMMITS = ("refs", "logs", "rebase-merge", "rebase-apply", "sequencer")


class Sizes(NamedTuple):
    """How much salvage would store."""

    files: int
    content_bytes: int


def ref_of(attempt_id: str) -> str:
    """Where the salvage of an attempt is."""
    return f"refs/orch/salvage/{attempt_id}"


def sizes(worktree: str, condition: Condition) -> Sizes:
    """How much salvage of a worktree would store."""
    total = count = 0
    for path in condition.files:
        try:
            total += os.lstat(os.path.join(worktree, path)).st_size
            count += 1
        except OSError:
            continue
    return Sizes(count, total)


def snapshot(
    repository: Repository,
    worktree: str,
    condition: Condition,
    title: str,
    leaving: Mapping[str, str] = MappingProxyType({}),
) -> str | None:
    """Store what exists only in a worktree; returns the commit, None when there is nothing.
    `leaving` are the refs that go with it, and the commit of each.

    Makes objects and no ref: `Repository.keep` is to follow before anything is removed. Errors:
    `git_failed` (also for a file that cannot be read), `disk_full`, `read_only`, `io_error`.
    """
    require_here(worktree, repository.common_directory)
    kept = lone_commits(repository, worktree, condition, leaving)
    if not condition.dirty and not kept:
        return None
    with temporary_folder() as folder:
        return _Snapshot(worktree, condition, folder).commit(title, kept)


def lone_commits(
    repository: Repository, worktree: str, condition: Condition, leaving: Mapping[str, str]
) -> list[str]:
    """Commits that this worktree and the refs that are `leaving` alone keep, newest first: work
    that is elsewhere as another commit, a detached HEAD, the other side of a merge, what was
    amended or rebased away."""
    admin = administration.folder_of(worktree)
    assert admin is not None
    named = dict.fromkeys((*leaving.values(), *own_ids(worktree), *_named_in(admin)))
    if condition.head is not None:
        named = {condition.head: None, **named}
    commits = _existing_commits(repository, named)
    if not commits:
        return []
    lines = "".join(f"{commit}\n" for commit in commits)
    # Only refs count. The heads and reflogs of other worktrees go when those go.
    _, text = git(
        repository.path,
        *("rev-list", "--parents", "--stdin", "--not"),
        *(f"--exclude={ref}" for ref in (*leaving, SNAPSHOTS)),
        "--glob=refs/*",
        reads=True,
        given=lines.encode(),
    )
    rows = [line.split() for line in text.splitlines()]
    lone, reached = {row[0] for row in rows}, {parent for row in rows for parent in row[1:]}
    # Each keeps what it builds on.
    return [commit for commit in commits if commit in lone and commit not in reached]


def _named_in(admin: str) -> Iterator[str]:
    """Every object id that stands in the files of the admin folder, newest first: the state of a
    merge or rebase, and what a reflog that git cannot read any more has. What was only fetched is
    not work."""
    for folder, folders, names in os.walk(admin):
        if folder == admin:
            folders[:] = [name for name in folders if name in _FOLDERS_WITH_COMMITS]
            names = [n for n in names if n.endswith("HEAD") and n != "FETCH_HEAD"]
        for name in names:
            with open(os.path.join(folder, name), encoding="utf-8", errors="replace") as file:
                yield from reversed(_OBJECT_ID.findall(file.read()))


def _existing_commits(repository: Repository, ids: Iterable[str]) -> list[str]:
    lines = "".join(f"{name}\n" for name in ids)
    if not lines:
        return []
    _, text = git(
        repository.path,
        *("cat-file", "--batch-check=%(objectname) %(objecttype)"),
        reads=True,
        given=lines.encode(),
    )
    rows = (line.split(" ") for line in text.splitlines())
    return [row[0] for row in rows if row[1:] == ["commit"]]


def index_parts(worktree: str, condition: Condition) -> dict[str, str]:
    """Commits of what only the index has, by their names in a salvage: `Index` where it is not what
    HEAD has, and `Stage-1` to `Stage-3` of what is unmerged. Errors as for `snapshot`."""
    with temporary_folder() as folder:
        return _Snapshot(worktree, condition, folder).index_parts()


class _Snapshot:
    """One salvage in the making; `folder` is a temporary one for copies of the index."""

    def __init__(self, worktree: str, condition: Condition, folder: str) -> None:
        self.worktree = worktree
        self.condition = condition
        self.folder = folder
        admin = administration.folder_of(worktree)
        assert admin is not None
        self.index = os.path.join(admin, "index")

    def commit(self, title: str, kept: Sequence[str]) -> str:
        """The commits, from the parts to the whole."""
        parts = self.index_parts()
        entries = self._stored_files()
        if any(mode != "0" for mode, _ in entries.values()):
            parts["Changed"] = self._commit_of(self._tree({}, entries), "Changed files", ())
        tree = self._tree(None, entries)
        head = () if self.condition.head is None else (self.condition.head,)
        lines = [f"{name}: {commit}" for name, commit in parts.items()]
        lines += [f"Kept: {commit}" for commit in kept]
        parents = dict.fromkeys((*head, *parts.values(), *kept))
        return self._commit_of(tree, "\n".join([title, "", *lines]).rstrip(), tuple(parents))

    def _commit_of(self, tree: str, message: str, parents: Sequence[str]) -> str:
        named = [word for parent in parents for word in ("-p", parent)]
        _, text = git(
            self.worktree,
            *("-c", "i18n.commitEncoding=UTF-8", "commit-tree", tree, *named, "-F", "-"),
            environment=COMMITTER,
            given=message.encode("utf-8", "surrogateescape"),
        )
        return text.strip()

    # -- the index ---------------------------------------------------------------------------

    def index_parts(self) -> dict[str, str]:
        """Commits of the index where it is not what HEAD has, and of each stage of what is
        unmerged."""
        if not os.path.exists(self.index):
            return {}
        stages = self._unmerged_stages()
        unmerged = {path: ("0", "") for entries in stages.values() for path in entries}
        tree = self._tree(None, unmerged)
        parts = {}
        if tree != self._tree_of_head():
            parts["Index"] = self._commit_of(tree, "The index", ())
        for stage, entries in sorted(stages.items()):
            staged = self._tree({}, entries)
            parts[f"Stage-{stage}"] = self._commit_of(staged, f"Stage {stage}", ())
        return parts

    def _unmerged_stages(self) -> dict[str, dict[str, tuple[str, str]]]:
        stages: dict[str, dict[str, tuple[str, str]]] = {}
        if self.condition.unmerged:
            _, text = git(self.worktree, "ls-files", "-z", "--unmerged", reads=True)
            for entry in filter(None, text.split("\0")):
                facts, path = entry.split("\t", 1)
                mode, name, stage = facts.split(" ")
                stages.setdefault(stage, {})[path] = (mode, name)
        return stages

    def _tree_of_head(self) -> str | None:
        if self.condition.head is None:
            return None
        _, text = git(self.worktree, "rev-parse", f"{self.condition.head}^{{tree}}", reads=True)
        return text.strip()

    # -- the files ---------------------------------------------------------------------------

    def _stored_files(self) -> dict[str, tuple[str, str]]:
        """(mode, object id) of every changed path; mode "0" for what is gone."""
        modes = {path: _mode_of(os.path.join(self.worktree, path)) for path in self.condition.files}
        present = {path: mode for path, mode in modes.items() if mode in ("100644", "100755")}
        links = [path for path, mode in modes.items() if mode == "120000"]
        names = dict(zip(present, self._hashed(list(present)), strict=True))
        names |= dict(zip(links, self._hashed(self._targets(links)), strict=True))
        entries = {path: (mode, names.get(path, "")) for path, mode in modes.items()}
        for path in self.condition.submodules:
            entries[path] = self._gitlink(path)
        return entries

    def _targets(self, links: Sequence[str]) -> list[str]:
        """Files with what the links say: git hashes what a link leads to, not the link."""
        paths = []
        for number, path in enumerate(links):
            copy = os.path.join(self.folder, f"link-{number}")
            with open(copy, "wb") as file:
                file.write(os.fsencode(os.readlink(os.path.join(self.worktree, path))))
            paths.append(copy)
        return paths

    def _hashed(self, paths: Sequence[str]) -> list[str]:
        """The ids of blobs with the content of files, as it is."""
        if not paths:
            return []
        many = len(paths) > _MANY_FILES
        _, text = git(
            self.worktree,
            *(_UNSYNCED if many else ()),
            *("hash-object", "-w", "--no-filters", "--stdin-paths"),
            given=b"".join(map(quoted, paths)),
        )
        if many:
            os.sync()
        return text.split()

    def _gitlink(self, path: str) -> tuple[str, str]:
        """The commit that a submodule has checked out; the work in it was seen to be elsewhere."""
        folder = os.path.join(self.worktree, path)
        if not os.path.lexists(os.path.join(folder, ".git")):
            return "0", ""
        _, text = git(folder, "rev-parse", "--verify", "HEAD", reads=True)
        return "160000", text.strip()

    # -- trees -------------------------------------------------------------------------------

    def _tree(
        self,
        base: Mapping[str, object] | None,
        entries: Mapping[str, tuple[str, str]],
    ) -> str:
        """The tree of the index with these entries in place of its own; on an empty one with
        `base` {}."""
        copy = os.path.join(self.folder, "index")
        if os.path.exists(copy):
            os.unlink(copy)
        if base is None and os.path.exists(self.index):
            copy_index(self.index, copy)
        within = {"GIT_INDEX_FILE": copy}
        if entries:
            null = "0" * (64 if self._long_ids() else 40)
            # What is gone goes first: a folder may have taken the place of a file.
            ordered = sorted(entries.items(), key=lambda entry: entry[1][0] != "0")
            lines = [f"{mode} {name or null}\t{path}\0" for path, (mode, name) in ordered]
            git(
                self.worktree,
                *("update-index", "-z", "--index-info"),
                environment=within,
                given="".join(lines).encode("utf-8", "surrogateescape"),
            )
        _, text = git(self.worktree, "write-tree", environment=within)
        return text.strip()

    def _long_ids(self) -> bool:
        return self.condition.head is not None and len(self.condition.head) == 64


def _mode_of(path: str) -> str:
    """As git writes it in a tree; "0" for what is not there or has no content."""
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return "0"
    if stat.S_ISLNK(found.st_mode):
        return "120000"
    if not stat.S_ISREG(found.st_mode):
        return "0"
    return "100755" if found.st_mode & stat.S_IXUSR else "100644"


def quoted(path: str) -> bytes:
    """A line with a path as git reads it back: names may have line ends in them."""
    escaped = b"".join(
        bytes([byte]) if 32 <= byte < 127 and byte not in b'"\\' else b"\\%03o" % byte
        for byte in os.fsencode(path)
    )
    return b'"' + escaped + b'"\n'
