"""The lines that a change adds, and how much text it has: from git's diff without context, in a
folder where nothing that is configured has a say. Writes nothing.
"""

import tempfile
from bisect import bisect_right
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


class Added(NamedTuple):
    """Added lines, one after the other, each with its line's end. `text_bytes` is how many bytes
    all added and removed lines have. `places` are (offset in `content`, path, number of the line)
    of the first line of each piece. `whole` is whether all of it could be read."""

    content: bytes
    text_bytes: int
    places: tuple[tuple[int, str, int], ...]
    whole: bool = True

    def place(self, offset: int) -> tuple[str, int]:
        """The path and the line in which a byte of `content` stands."""
        start, path, line = self.places[bisect_right(self.places, offset, key=_offset) - 1]
        return path, line + self.content.count(b"\n", start, offset)


def _offset(place: tuple[int, str, int]) -> int:
    return place[0]


def added(sealed: Sealed, before: str, after: str, most_bytes: int) -> Added:
    """What one tree adds to another. Of a diff of more than so many bytes only the beginning is
    looked at, and all counted. Errors: `git_failed`, `disk_full`, `io_error`."""
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
    found = parsed(content[: content.rfind(b"\n") + 1])
    if bounded.total <= most_bytes:
        return found
    return found._replace(text_bytes=max(found.text_bytes, bounded.total), whole=False)


class Bounded:
    """A file that keeps only the beginning of what is written, and counts the rest."""

    def __init__(self, file: BinaryIO, most_bytes: int) -> None:
        self._file, self._left, self.total = file, most_bytes, 0

    def write(self, content: bytes) -> int:
        self.total += len(content)
        self._file.write(content[: self._left])
        self._left -= min(self._left, len(content))
        return len(content)


def parsed(diff: bytes) -> Added:
    """The added lines of a diff without context."""
    kept: list[bytes] = []
    places: list[tuple[int, str, int]] = []
    path, offset, text_bytes = "", 0, 0
    lines = iter(diff.split(b"\n"))
    for line in lines:
        if line.startswith(b"+++ "):
            path = _path(line[4:])
        elif line.startswith(b"@@ "):
            removed, added, number = _counts(line)
            for _ in range(removed):
                text_bytes += len(next(lines, b""))
            if added:
                places.append((offset, path, number))
            for _ in range(added):
                text = _added_line(lines)
                if text is None:
                    break
                kept.append(text)
                offset += len(text) + 1
                text_bytes += len(text) + 1
    return Added(b"\n".join([*kept, b""]), text_bytes, tuple(places))


def _added_line(lines: Iterator[bytes]) -> bytes | None:
    """The next added line; what git says between about a line's end is passed over."""
    line = next(lines, None)
    if line is not None and line.startswith(b"\\"):
        line = next(lines, None)
    return None if line is None else line[1:]


def _counts(line: bytes) -> tuple[int, int, int]:
    """How many lines are removed and added, and the number of the first that is added."""
    _, old, new, _ = line.split(b" ", 3)
    removed = old.partition(b",")[2] or b"1"
    number, _, added = new[1:].partition(b",")
    return int(removed), int(added or b"1"), int(number)


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
