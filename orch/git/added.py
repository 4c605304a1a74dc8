"""The lines that a change adds, and how much text it has: from git's diff without context, in a
folder where nothing that is configured has a say. Writes nothing.

In such a diff each line of content begins with `+`, `-` or `\\`, so that what begins with `@@` or
`diff` is never content.
"""

import re
import tempfile
from collections.abc import Iterable, Iterator
from typing import BinaryIO, NamedTuple, cast

from inbox_orch.shared.store.temporary import temporary_place

from .commands import git_bytes
from .failures import named_failures
from .restoring import BATCH_BYTES, batches, contents, sized
from .sealed import Sealed

_DIFF = (
    *("diff-tree", "-r", "-p", "-U0", "--no-renames", "--no-color", "--no-ext-diff"),
    *("--no-textconv", "--no-indent-heuristic", "--inter-hunk-context=0"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)
_HUNK, _FILE = b"\n@@ ", b"\ndiff --git "
_PIECES = re.compile(rb"^(?=@@ |diff --git )", re.MULTILINE)
_PLUS = re.compile(rb"\n\+[^\n]*")
_HEAD = re.compile(rb"\n@@ -[0-9,]+ \+([0-9]+)")


class Added(NamedTuple):
    """A diff without context, with a line's end before it. `total` is how many bytes the whole has;
    the rest of what is longer than `diff` was not read."""

    diff: bytes
    total: int

    @property
    def whole(self) -> bool:
        """Whether all of it was read."""
        return self.total < len(self.diff)

    def text_bytes(self) -> int:
        """How many bytes all added and removed lines have, with their ends."""
        if not self.whole:
            return self.total
        found = 0
        for piece in _PIECES.split(self.diff):
            if piece.startswith(b"@@ "):
                found += len(piece) - piece.index(b"\n") - piece.count(b"\n")
                if b"\n\\ " in piece:
                    found -= sum(len(line) for line in piece.split(b"\n") if line[:1] == b"\\")
        return found

    def lines(self) -> bytes:
        """The added lines alone, each with a line's end and a `+` before it, and a few that only
        look like that: far less than the diff where many files are changed a little."""
        return b"".join(_PLUS.findall(self.diff))

    def place(self, at: int) -> tuple[str, int] | None:
        """The path and the number of the added line in which a byte of the diff stands; None where
        it stands in none."""
        line = self.diff.rfind(b"\n", 0, at) + 1
        hunk = self.diff.rfind(_HUNK, 0, line)
        file = self.diff.rfind(_FILE, 0, line)
        if self.diff[line : line + 1] != b"+" or hunk < file:
            return None
        head = _HEAD.match(self.diff, hunk)
        assert head is not None, "git has written it"
        return self._path(file), int(head[1]) + self.diff.count(b"\n+", hunk + 1, line - 1)

    def _path(self, file: int) -> str:
        start = self.diff.index(b"\n+++ ", file) + 5
        return _path(self.diff[start : self.diff.index(b"\n", start)])


def added(sealed: Sealed, before: str, after: str, most_bytes: int) -> Added:
    """What one tree adds to another; of a diff of more than so many bytes only the beginning is
    looked at. Errors: `git_failed`, `disk_full`, `io_error`."""
    place = temporary_place()
    with named_failures(place), tempfile.TemporaryFile(dir=place) as file:
        bounded = Bounded(file, most_bytes)
        git_bytes(
            sealed.folder,
            *(*_DIFF, before, after),
            output=cast(BinaryIO, bounded),
            environment=sealed.reading,
        )
        file.seek(0)
        content = file.read()
    return Added(b"\n" + content[: content.rfind(b"\n") + 1], bounded.total)


class Bounded:
    """A file that keeps only the beginning of what is written, and counts the rest."""

    def __init__(self, file: BinaryIO, most_bytes: int) -> None:
        self._file, self._left, self.total = file, most_bytes, 0

    def write(self, content: bytes) -> int:
        self.total += len(content)
        self._file.write(content[: self._left])
        self._left -= min(self._left, len(content))
        return len(content)


_ESCAPED = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))


def _path(name: bytes) -> str:
    """The path behind a name that git quotes where it has to (git-diff-tree(1), core.quotePath)."""
    name = name.removesuffix(b"\t")
    if name.startswith(b'"'):
        name = _unquoted(name[1:-1])
    return name.removeprefix(b"b/").decode("utf-8", "surrogateescape")


def _unquoted(name: bytes) -> bytes:
    found, at = bytearray(), 0
    while at < len(name):
        if name[at] != ord("\\"):
            found.append(name[at])
            at += 1
        elif name[at + 1] in _ESCAPED:
            found.append(_ESCAPED[name[at + 1]])
            at += 2
        else:
            found.append(int(name[at + 1 : at + 4], 8))
            at += 4
    return bytes(found)


_BLOCK_BYTES = 8 * 1024 * 1024
_OVERLAP_BYTES = 64 * 1024


def pieces(sealed: Sealed, names: Iterable[str], most_bytes: int) -> Iterator[tuple[str, bytes]]:
    """The contents of some blobs, each with its name, up to so many bytes of all: one that is large
    in pieces that overlap. Errors: `git_failed`, `disk_full`, `io_error`."""
    entries, left = [], most_bytes
    for entry in sized(sealed.folder, names, sealed.reading):
        if entry.size <= left:
            entries.append(entry)
            left -= entry.size
    for batch in batches(entries):
        read = contents(sealed.folder, batch, sealed.reading)
        yield from zip((entry.name for entry in batch), read, strict=True)
    for entry in (each for each in entries if each.size > BATCH_BYTES):
        place, last = temporary_place(), b""
        with named_failures(place), tempfile.TemporaryFile(dir=place) as file:
            words = ("cat-file", "blob", entry.name)
            git_bytes(sealed.folder, *words, output=file, environment=sealed.reading)
            file.seek(0)
            while block := file.read(_BLOCK_BYTES):
                yield entry.name, last + block
                last = block[-_OVERLAP_BYTES:]
