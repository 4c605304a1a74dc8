"""What a commit, or a working tree as it stands, changes against a commit: git's own words.

Only reads: no lock of git's is taken, no program of the user's config is started.
"""

import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from .commands import git, git_bytes
from .failures import shown
from .repository import Repository
from .standing import require_here

_OPTIONS = ("--no-color", "--no-ext-diff", "--no-textconv")
_PAIR = re.compile(r"([0-9a-f]{40,64}) ([0-9a-f]{40,64})\n")


class Span(NamedTuple):
    """From a commit to another one, or, without `head`, to the working tree `folder`."""

    folder: str
    base: str
    head: str | None

    @property
    def commits(self) -> tuple[str, ...]:
        """What git is given."""
        return (self.base,) if self.head is None else (self.base, self.head)


class ChangedFile(NamedTuple):
    """One file, and how many lines it gained and lost; None for a binary one."""

    path: str
    added: int | None
    removed: int | None


class _Sink:
    """A file for git to write to, which hands each piece on."""

    def __init__(self, hand_on: Callable[[bytes], None]) -> None:
        self._hand_on = hand_on

    def write(self, piece: bytes) -> int:
        """Hand on a piece."""
        self._hand_on(piece)
        return len(piece)


def require_readable(repository: Repository, span: Span) -> None:
    """Git in the working tree of a span looks at that folder. Error `git_failed`."""
    if span.head is None:
        require_here(span.folder, repository.common_directory)


def write_diff(span: Span, hand_on: Callable[[bytes], None], *, stat: bool) -> None:
    """The whole diff, or `git diff --stat`, a piece at a time. Error `git_failed`."""
    form = ("--stat=80",) if stat else ("--patch",)
    words = ("diff", *form, *_OPTIONS, "--end-of-options", *span.commits, "--")
    sink = _Sink(hand_on)
    git_bytes(span.folder, *words, output=sink)  # type: ignore[arg-type]


def changed_files(span: Span) -> list[ChangedFile]:
    """Every file that differs, by its path; a renamed one is two. Error `git_failed`."""
    _, text = git(
        span.folder,
        *("diff", "--numstat", "-z", "--no-renames", *_OPTIONS),
        *("--end-of-options", *span.commits, "--"),
        reads=True,
    )
    rows = (row.split("\t", 2) for row in text.split("\0") if row)
    return [ChangedFile(shown(path), _number(plus), _number(minus)) for plus, minus, path in rows]


def files_between(
    repository: Repository, pairs: Collection[tuple[str, str]]
) -> dict[tuple[str, str], tuple[ChangedFile, ...]]:
    """For pairs of commits, base and head, every file that differs: two processes of git's for all
    of them. A pair of which something is gone is left out. Error `git_failed`."""
    trees = _trees(repository, {commit for pair in pairs for commit in pair})
    whole = {p: (trees[p[0]], trees[p[1]]) for p in pairs if p[0] in trees and p[1] in trees}
    found = _files_of_trees(repository, sorted(set(whole.values())))
    return {pair: found[between] for pair, between in whole.items() if between in found}


def _trees(repository: Repository, commits: Collection[str]) -> dict[str, str]:
    """The trees of those commits that are there."""
    if not commits:
        return {}
    asked = sorted(commits)
    given = "".join(f"{commit}^{{tree}}\n" for commit in asked)
    words = ("cat-file", "--batch-check=%(objectname) %(objecttype)")
    _, text = git(repository.path, *words, reads=True, given=given.encode())
    said = (line.split(" ") for line in text.splitlines())
    return {
        commit: name for commit, (name, kind) in zip(asked, said, strict=True) if kind == "tree"
    }


def _files_of_trees(
    repository: Repository, pairs: Sequence[tuple[str, str]]
) -> dict[tuple[str, str], tuple[ChangedFile, ...]]:
    """Git ends at the first tree that lacks something: then each half is asked for by itself."""
    if not pairs:
        return {}
    status, text = git(
        repository.path,
        *("diff-tree", "--stdin", "-r", "--numstat", "-z", "--no-renames"),
        reads=True,
        accepted=(0, 128),
        given="".join(f"{base} {head}\n" for base, head in pairs).encode(),
    )
    if status == 0:
        return _told_of_trees(text)
    if len(pairs) == 1:
        return {}
    middle = len(pairs) // 2
    return {
        **_files_of_trees(repository, pairs[:middle]),
        **_files_of_trees(repository, pairs[middle:]),
    }


def _told_of_trees(text: str) -> dict[tuple[str, str], tuple[ChangedFile, ...]]:
    """A line for each pair, and after it its files, each of which ends with a NUL."""
    found: dict[tuple[str, str], list[ChangedFile]] = {}
    files: list[ChangedFile] = []
    for row in text.split("\0"):
        while (heading := _PAIR.match(row)) is not None:
            files = found.setdefault((heading[1], heading[2]), [])
            row = row[heading.end() :]
        if row:
            plus, minus, path = row.split("\t", 2)
            files.append(ChangedFile(shown(path), _number(plus), _number(minus)))
    return {pair: tuple(each) for pair, each in found.items()}


def _number(text: str) -> int | None:
    return int(text) if text.isdigit() else None
