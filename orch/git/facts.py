"""What a change is, read by git on its result: the two trees, in a folder of our own where neither
attributes nor settings have a say. Writes nothing.

Git tells the entries and the lines; what is binary, and the lines of that, is counted here, in the
content itself.
"""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import BinaryIO, NamedTuple, cast

from inbox_orch.shared.store.temporary import temporary_place

from . import promised
from .added import Bounded
from .changes import Change, Facts
from .commands import git, git_bytes
from .failures import named_failures
from .genuine import require_genuine
from .repository import Repository
from .restoring import BATCH_BYTES, Entry, batches, contents, sized
from .sealed import Sealed, sealed_folder

__all__ = ["Change", "Facts", "Raw", "diff_text", "differences", "facts"]

_BLOCK_BYTES = 1024 * 1024
_SEEN_BYTES = 8000
"""In so many bytes at the beginning git looks for a zero byte."""
_MODULE, _LINK = "160000", "120000"
_ABSENT, _NOTHING = "000000", ":000000"
_RAW = ("diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", "--raw")
_TEXT = (
    *("diff-tree", "-r", "-p", "--no-renames", "--no-color", "--no-ext-diff", "--no-textconv"),
    *("--full-index", "--src-prefix=a/", "--dst-prefix=b/"),
)


class Raw(NamedTuple):
    """A path in which two trees differ: mode and name of what is there, None where nothing is."""

    path: str
    status: str
    old: tuple[str, str] | None
    new: tuple[str, str] | None


_raw = partial(tuple.__new__, Raw)
_made = partial(tuple.__new__, Change)


class _Content(NamedTuple):
    size: int
    binary: bool
    lines: int
    text: str | None  # of what is small enough to be where a link leads


_content = partial(tuple.__new__, _Content)


def facts(repository: Repository, before_tree: str, after_tree: str) -> Facts:
    """The facts of a change from one tree (or commit) to another.

    Errors: `git_failed` (a tree or a content that is not here, too), `disk_full`, `io_error`.
    """
    promised.bring_changed(repository, before_tree, after_tree)
    with sealed_folder(repository) as sealed:
        return facts_in(sealed, before_tree, after_tree)


def facts_in(
    sealed: Sealed,
    before_tree: str,
    after_tree: str,
    sizes: Callable[[], Mapping[str, int]] = dict,
) -> Facts:
    """`facts`, in a folder that is there already. `sizes` gives the sizes of contents that are
    known, so that git need not be asked; it is called once git has told the entries."""
    changed, lines = _read(sealed, before_tree, after_tree)
    found = _contents(sealed, changed, lines, sizes())
    files = tuple(_change(raw, lines.get(raw.path), found) for raw in changed)
    return Facts(files, sum(f.insertions for f in files), sum(f.deletions for f in files))


def differences(sealed: Sealed, before: str, after: str) -> list[Raw]:
    """The paths in which two trees differ. Error `git_failed`."""
    _, text = git(sealed.folder, *_RAW, before, after, reads=True, environment=sealed.reading)
    return _entries(text.split("\0"))


def diff_text(repository: Repository, before: str, after: str, most_bytes: int) -> str:
    """The change as a unified diff, at most so many bytes of it: then it ends with a line's end,
    and one more line says how long it is. Bytes that are not UTF-8 are escaped.

    Errors: `git_failed`, `disk_full`, `io_error`.
    """
    promised.bring_changed(repository, before, after)
    place = temporary_place()
    with (
        sealed_folder(repository) as sealed,
        named_failures(place),
        tempfile.TemporaryFile(dir=place) as file,
    ):
        bounded = Bounded(file, most_bytes)
        git_bytes(
            sealed.folder,
            *(*_TEXT, before, after),
            output=cast(BinaryIO, bounded),
            environment=sealed.reading,
        )
        file.seek(0)
        content = file.read()
    if bounded.total > most_bytes:
        whole = content.rfind(b"\n") + 1
        content = content[:whole] + b"(cut: the whole diff has %d bytes)\n" % bounded.total
    return content.decode("utf-8", "backslashreplace")


def whole_diff(repository: Repository, before: str, after: str) -> bytes:
    """The change as a diff that `git apply` takes, with the content of binary files. Errors:
    `git_failed`, `disk_full`, `io_error`."""
    promised.bring_changed(repository, before, after)
    with sealed_folder(repository) as sealed:
        # Whoever approves of it has seen this.
        require_genuine(sealed.folder, (after,), before, sealed.reading)
        words = (*_TEXT, "--binary", before, after)
        return git_bytes(sealed.folder, *words, environment=sealed.reading)


# -- what git tells --------------------------------------------------------------------------


_Lines = dict[str, tuple[int, int] | None]


def _read(sealed: Sealed, before: str, after: str) -> tuple[list[Raw], _Lines]:
    """The entries, and (insertions, deletions) of each path: None of what git counts no lines of
    (git-diff-tree(1), `--raw` and `--numstat` with `-z`)."""
    words = (*_RAW, "--numstat", before, after)
    _, text = git(sealed.folder, *words, reads=True, environment=sealed.reading)
    parts = text.split("\0")
    changed = _entries(parts)
    numbers = (part.split("\t", 2) for part in parts[2 * len(changed) :] if part)
    counted: _Lines = {
        path: None if plus == "-" else (int(plus), int(minus)) for plus, minus, path in numbers
    }
    return changed, counted


def _entries(parts: Sequence[str]) -> list[Raw]:
    """The raw entries that come first: what is of them, and a path, in turn."""
    found = []
    pairs = zip(parts[::2], parts[1::2], strict=False)
    for facts_of, path in pairs:
        if not facts_of.startswith(":"):
            break
        mode, new_mode, name, new_name, status = facts_of.split(" ")
        old = None if mode == _NOTHING else (mode[1:], name)
        new = None if new_mode == _ABSENT else (new_mode, new_name)
        found.append(_raw((path, status[0], old, new)))
    return found


# -- what is in the contents -----------------------------------------------------------------


def _contents(
    sealed: Sealed,
    changed: Sequence[Raw],
    lines: Mapping[str, tuple[int, int] | None],
    known: Mapping[str, int],
) -> dict[str, _Content]:
    """By their names, no more than some of them at a time: what is new, and what was before where
    git counts no lines. Of a small one git has seen the whole: it need not be read."""
    sides = [raw.new for raw in changed if raw.new is not None]
    uncounted = [raw for raw in changed if lines.get(raw.path) is None]
    whole = {side[1] for raw in uncounted for side in (raw.old, raw.new) if side is not None}
    whole |= {name for mode, name in sides if mode == _LINK}
    modules = _modules(changed)
    names = [name for name in {*whole, *(name for _, name in sides)} if name not in modules]
    entries = [Entry("", name, known[name], "") for name in names if name in known]
    unknown = [name for name in names if name not in known]
    entries += sized(sealed.folder, unknown, sealed.reading)
    read = [e for e in entries if e.size > _SEEN_BYTES or e.name in whole]
    found = {e.name: _content((e.size, False, 0, None)) for e in entries}
    for batch in batches(read):
        texts = contents(sealed.folder, batch, sealed.reading)
        found |= {e.name: _judged(content) for e, content in zip(batch, texts, strict=True)}
    return found | {e.name: _streamed(sealed, e) for e in read if e.size > BATCH_BYTES}


def _modules(changed: Sequence[Raw]) -> set[str]:
    sides = [side for raw in changed for side in (raw.old, raw.new) if side is not None]
    return {name for mode, name in sides if mode == _MODULE}


def _judged(content: bytes) -> _Content:
    lines = content.count(b"\n") + (not content.endswith(b"\n") if content else 0)
    text = content.decode("utf-8", "surrogateescape") if len(content) < _BLOCK_BYTES else None
    return _Content(len(content), b"\0" in content, lines, text)


def _streamed(sealed: Sealed, entry: Entry) -> _Content:
    place, binary, lines, last = temporary_place(), False, 0, b"\n"
    with named_failures(place), tempfile.TemporaryFile(dir=place) as file:
        words = ("cat-file", "blob", entry.name)
        git_bytes(sealed.folder, *words, output=file, environment=sealed.reading)
        file.seek(0)
        while block := file.read(_BLOCK_BYTES):
            binary = binary or b"\0" in block
            lines += block.count(b"\n")
            last = block[-1:]
    return _Content(entry.size, binary, lines + (last != b"\n"), None)


def _change(raw: Raw, lines: tuple[int, int] | None, found: dict[str, _Content]) -> Change:
    path, status, before, after = raw
    old_mode, old_name = before or (None, None)
    new_mode, new_name = after or (None, None)
    old, new = found.get(old_name or ""), found.get(new_name or "")
    if lines is None:
        lines = (0 if new is None else new.lines, 0 if old is None else old.lines)
        binary = True
    else:
        binary = new is not None and new.binary
    size = 0 if new is None else new.size
    target = new.text if new is not None and new_mode == _LINK else None
    names = (old_mode, new_mode, old_name, new_name)
    return _made((path, None, status, *names, size, binary, *lines, target))
