"""Objects of a repository that hold some bytes, and what keeps them. Reads only.

Every object is looked at, whether anything leads to it or not, packed or loose. Nothing is fetched
that a partial clone lacks.
"""

import re
from collections.abc import Collection, Iterable, Sequence
from typing import BinaryIO, NamedTuple, cast

from .commands import git, git_bytes, output_of
from .integrating import working_trees
from .repository import Repository

_HERE_ONLY = {"GIT_NO_LAZY_FETCH": "1"}


class Ref(NamedTuple):
    """A ref with what it points at."""

    name: str
    at: str


class _Search:
    """Takes what `git cat-file --batch` writes, and notes which objects match."""

    def __init__(self, parts: Collection[bytes]) -> None:
        self.found: dict[str, str] = {}
        self._pattern = re.compile(b"|".join(map(re.escape, parts)))
        self._longest = max(map(len, parts))
        self._rest = b""
        self._name, self._kind = "", ""
        self._left: int | None = None
        self._tail = b""

    def write(self, data: bytes) -> int:
        text, at = self._rest + data, 0
        while True:
            if self._left is None:
                end = text.find(b"\n", at)
                if end < 0:
                    break
                self._begin(text[at:end].decode("ascii"))
                at = end + 1
            at += self._take(text[at : at + (self._left or 0)])
            if self._left:
                break
            self._left = None
        self._rest = text[at:]
        return len(data)

    def _begin(self, header: str) -> None:
        self._name, self._kind, size = header.split(" ")
        self._left, self._tail = int(size) + 1, b""

    def _take(self, piece: bytes) -> int:
        assert self._left is not None
        self._left -= len(piece)
        if self._name not in self.found:
            text = self._tail + piece
            if self._pattern.search(text):
                self.found[self._name] = self._kind
            self._tail = text[-self._longest :]
        return len(piece)


def holding(repository: Repository, parts: Collection[bytes]) -> dict[str, str]:
    """The objects in which one of the parts stands, with their kinds. Error `git_failed`."""
    search = _Search(parts)
    git_bytes(
        repository.path,
        *("cat-file", "--batch-all-objects", "--batch", "--unordered", "--buffer"),
        output=cast("BinaryIO", search),
        environment=_HERE_ONLY,
    )
    return search.found


def refs(repository: Repository) -> list[Ref]:
    """Every ref, and the HEAD of every working tree that has no branch."""
    text = output_of(repository.path, "for-each-ref", "--format=%(objectname) %(refname)")
    found = [Ref(*line.split(" ", 1)[::-1]) for line in text.splitlines()]
    trees = working_trees(repository)
    return found + [
        Ref(f"HEAD of {tree.path}", tree.head)
        for tree in trees
        if tree.head is not None and tree.branch is None
    ]


def checked_out(repository: Repository) -> set[str]:
    """The refs of the branches that a working tree has, or a symbolic ref leads to."""
    found = {f"refs/heads/{tree.branch}" for tree in working_trees(repository) if tree.branch}
    symbolic = output_of(repository.path, "for-each-ref", "--format=%(symref)").splitlines()
    return found | {name for name in symbolic if name}


def reached(
    repository: Repository, tips: Iterable[str], but: Iterable[str] = ()
) -> dict[str, None]:
    """All objects that commits lead to and others do not, in no order. Error `git_failed`."""
    lines = [*tips, *(f"^{each}" for each in but)]
    words = ("rev-list", "--objects", "--no-object-names", "--missing=allow-any", "--stdin")
    given = "".join(f"{line}\n" for line in lines).encode()
    if not lines:
        return {}
    _, text = git(repository.path, *words, reads=True, given=given, environment=_HERE_ONLY)
    return dict.fromkeys(text.split())


def keepers(
    repository: Repository, among: Iterable[Ref], objects: Collection[str], most: int
) -> tuple[list[str], bool]:
    """Which of some refs lead to one of the objects: the first ones that are found, from so many on
    no more, and whether there may be more. Halves in which none is are passed over."""
    found: list[str] = []
    waiting = [sorted(among, key=lambda ref: ref.at)]
    while waiting and len(found) < most:
        refs = waiting.pop()
        tips = dict.fromkeys(ref.at for ref in refs)
        if reached(repository, tips).keys().isdisjoint(objects):
            continue
        if len(tips) == 1:
            found += [ref.name for ref in refs]
        else:
            half = len(refs) // 2
            waiting += [refs[half:], refs[:half]]
    return sorted(found), bool(waiting)


def commits_with(
    repository: Repository, objects: dict[str, str], tips: Sequence[str], most: int
) -> list[str]:
    """Commits that have one of the objects in their message, or brought it in or took it out, of
    the first so many objects, and at most so many."""
    found = dict.fromkeys(name for name, kind in objects.items() if kind == "commit")
    blobs = [name for name, kind in objects.items() if kind == "blob"]
    given = "".join(f"{tip}\n" for tip in tips).encode()
    for name in blobs[:most]:
        if len(found) >= most:
            break
        words = ("log", "--no-renames", "--format=%H", f"--find-object={name}", "--stdin")
        _, text = git(repository.path, *words, reads=True, given=given, environment=_HERE_ONLY)
        found |= dict.fromkeys(text.split())
    return list(found)[:most]
