"""Objects made anew without some bytes: blobs, the trees with those, the commits with those trees.

Made the same way every time, so that a second try comes to the same ids. Changes no ref but those
that it is told to move, and takes no object away: what is left behind is git's to collect.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from .commands import git, git_bytes
from .holding import Ref, reached
from .repository import Repository
from .stale import forget_lock

_ID = re.compile(rb"(?<![0-9a-f])(?:[0-9a-f]{64}|[0-9a-f]{40})(?![0-9a-f])")
_FOLDER = b"40000"
_LINKS = (b"tree ", b"parent ")
"""Lines of a commit that have ids alone."""
KEPT = "refs/orch/purged/"
"""Where what was made anew is kept, until the refs lead to it."""

Clean = Callable[[bytes], bytes]


class Move(NamedTuple):
    """A ref that is to lead to something else: compare and swap."""

    ref: str
    old: str
    new: str


class Remade(NamedTuple):
    """What was made anew: which refs are to move, and the new ids by the old ones."""

    moves: tuple[Move, ...]
    ids: dict[str, str]


def remade(
    repository: Repository,
    ours: Sequence[Ref],
    others: Collection[str],
    held: Mapping[str, str],
    clean: Clean,
) -> Remade:
    """Make what `ours` lead to and `others` (ids) do not anew, as far as it holds something.
    Errors: `git_failed`, `disk_full`, `read_only`."""
    own = reached(repository, [ref.at for ref in ours], others)
    if own.keys().isdisjoint(held):
        return Remade((), {})
    maker = _Maker(repository, own.keys(), held, clean)
    commits = _commits(repository, ours, others)
    for commit in commits:
        maker.commit(commit)
    moves = [Move(r.name, r.at, maker.new[r.at]) for r in ours if r.at in maker.new]
    return Remade(tuple(moves), maker.new)


def kept(repository: Repository, moves: Sequence[Move], locks: Sequence[int]) -> None:
    """Keep what refs are going to lead to."""
    for move in moves:
        repository.keep(KEPT + move.new, move.new, locks)


def moved(repository: Repository, move: Move, locks: Sequence[int]) -> bool:
    """Let a ref lead to the new commit; False when it has moved, and stays where it is."""
    words = ("update-ref", "--no-deref", "-m", "orch purge", move.ref, move.new, move.old)
    if move.ref.startswith("refs/orch/"):
        forget_lock(repository.common_directory, move.ref)
    with repository.marked({move.ref: move.new}) as mark:
        status, _ = git(
            repository.path,
            *words,
            accepted=(0, 1, 128),
            shared_locks=(*locks, *mark.descriptors),
        )
    return status == 0 or repository.ref_commit(move.ref) == move.new


class _Maker:
    """Makes objects anew, each once."""

    def __init__(
        self,
        repository: Repository,
        own: Collection[str],
        held: Mapping[str, str],
        clean: Clean,
    ) -> None:
        self.new: dict[str, str] = {}
        self._repository = repository
        self._clean = clean
        self._own = frozenset(own)
        self._held = held
        self._seen: set[str] = set()
        self._contents = _contents(repository, [n for n in own if held.get(n) != "blob"])

    def commit(self, name: str) -> None:
        """Its tree, parents and message; its signature goes where it would be wrong."""
        content = self._contents[name][1]
        head, _, message = content.partition(b"\n\n")
        lines = head.split(b"\n")
        self._tree(lines[0].removeprefix(b"tree ").decode())
        clean = [each if each.startswith(_LINKS) else self._clean(each) for each in lines]
        parts = (b"\n".join(clean), self._clean(message))
        renamed = [_ID.sub(self._renamed, each) for each in parts]
        if renamed != [head, message]:
            self.new[name] = self._stored("commit", _unsigned(renamed[0]) + b"\n\n" + renamed[1])

    def _renamed(self, found: re.Match[bytes]) -> bytes:
        return self.new.get(found[0].decode(), found[0].decode()).encode()

    def _tree(self, name: str) -> None:
        if name not in self._own or name in self._seen:
            return
        self._seen.add(name)
        entries, changed = [], False
        for mode, path, each in _entries(self._contents[name][1], len(name) // 2):
            if mode == _FOLDER:
                self._tree(each)
            elif each in self._own and self._held.get(each) == "blob":
                self._blob(each)
            new = (mode, self._clean(path), self.new.get(each, each))
            changed = changed or new != (mode, path, each)
            entries.append(new)
        if changed:
            self.new[name] = self._stored("tree", _tree_of(entries))

    def _blob(self, name: str) -> None:
        if name not in self.new:
            content = git_bytes(self._repository.path, "cat-file", "blob", name)
            self.new[name] = self._stored("blob", self._clean(content))

    def _stored(self, kind: str, content: bytes) -> str:
        words = ("hash-object", "-w", "--no-filters", "--stdin", "-t", kind)
        return git(self._repository.path, *words, given=content)[1].strip()


def _commits(repository: Repository, ours: Sequence[Ref], others: Collection[str]) -> list[str]:
    """Those that only `ours` lead to, each after its parents."""
    words = ("rev-list", "--topo-order", "--reverse", "--missing=allow-any", "--stdin")
    lines = [*(ref.at for ref in ours), *(f"^{each}" for each in others)]
    given = "".join(f"{line}\n" for line in lines).encode()
    return git(repository.path, *words, reads=True, given=given)[1].split()


def _contents(repository: Repository, names: Sequence[str]) -> dict[str, tuple[str, bytes]]:
    """Kind and content of the trees and commits among some objects."""
    given = "".join(f"{name}\n" for name in names).encode()
    checking = ("cat-file", "--batch-check=%(objectname) %(objecttype)")
    _, text = git(repository.path, *checking, reads=True, given=given)
    rows = (line.split(" ") for line in text.splitlines())
    wanted = [row[0] for row in rows if row[1:] in (["tree"], ["commit"])]
    given = "".join(f"{name}\n" for name in wanted).encode()
    content = git_bytes(repository.path, "cat-file", "--batch", given=given)
    found, at = {}, 0
    for _ in wanted:
        end = content.index(b"\n", at)
        name, kind, size = content[at:end].decode().split(" ")
        found[name] = (kind, content[end + 1 : end + 1 + int(size)])
        at = end + 2 + int(size)
    return found


def _entries(content: bytes, id_bytes: int) -> list[tuple[bytes, bytes, str]]:
    found, at = [], 0
    while at < len(content):
        end = content.index(b"\0", at)
        mode, _, path = content[at:end].partition(b" ")
        at = end + 1 + id_bytes
        found.append((mode, path, content[end + 1 : at].hex()))
    return found


def _tree_of(entries: Sequence[tuple[bytes, bytes, str]]) -> bytes:
    """In git's order; of names that are the same now, the later ones get a number."""
    taken: set[bytes] = set()
    lines = []
    for mode, path, name in entries:
        free, number = path, 1
        while free in taken:
            number += 1
            free = path + b"-%d" % number
        taken.add(free)
        key = free + b"/" if mode == _FOLDER else free
        lines.append((key, mode + b" " + free + b"\0" + bytes.fromhex(name)))
    return b"".join(line for _, line in sorted(lines))


def _unsigned(head: bytes) -> bytes:
    """The lines over a message without a signature, which goes over several lines."""
    kept, inside = [], False
    for line in head.split(b"\n"):
        inside = line.startswith(b"gpgsig") or (inside and line.startswith(b" "))
        if not inside:
            kept.append(line)
    return b"\n".join(kept)
