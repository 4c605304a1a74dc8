"""The tree that a patch, or edits of single files, make of another: in an index of our own.

No working tree, no index and no ref has a part in it, and no filter runs; new objects go to those
of the repository, where nothing refers to them yet. How a worktree gets the tree: `bringing`.
"""

import os
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from . import endings, promised, replacing, unified
from .commands import NO_ANSWER, git, git_told
from .failures import named_failures, shown
from .replacing import Edit, NotFitting
from .repository import Repository
from .restoring import BATCH_BYTES, batches, contents, sized
from .sealed import Sealed, sealed_folder
from .unfit import NotApplied
from .unified import Diff, Malformed

__all__ = ["Edit", "Made", "NotApplied", "edited", "patched"]

_PLAIN_MODES = ("100644", "100755")
_MOST_REASON = 500
_MOST_NOTES = 50
_NAMES_AT_ONCE = 500
_ONE_SIDED = "a hunk had context on one side alone, and was taken where its numbers say"


class Made(NamedTuple):
    """The tree that was made, and what was done to make it: line ends, counts, offsets."""

    tree: str
    notes: tuple[str, ...] = ()


def patched(repository: Repository, tree: str, patch: bytes) -> Made:
    """The tree that a unified diff makes of another; names count from the top, with one folder
    before them (`a/`, `b/`).

    Raises `NotApplied`: `patch_format` where the text is not the diff and nothing else,
    `patch_does_not_apply` where git refuses it. Errors: `git_failed`, `disk_full`, `io_error`.
    """
    try:
        diff = unified.taken_apart(patch)
    except Malformed as wrong:
        raise NotApplied("patch_format", str(wrong)) from wrong
    names = (section.old for section in diff.sections)
    promised.bring_files(repository, tree, (_text(name) for name in names if name is not None))
    with sealed_folder(repository) as sealed:
        within = _within(sealed)
        lines, notes = endings.fitted(diff, _before(sealed, tree, diff), _name)
        git(sealed.folder, "read-tree", tree, environment=within)
        moved = _applied(sealed, within, diff.text(lines), bare=diff.bare)
        return Made(_written(sealed, within), (*diff.notes, *notes, *moved)[:_MOST_NOTES])


def edited(repository: Repository, tree: str, edits: Sequence[Edit]) -> Made:
    """The tree that edits make of another, one after the other.

    Raises `NotApplied`: `edit_not_found` and `edit_ambiguous` where what one looks for is not there
    exactly once, with the nearest lines; `patch_does_not_apply` where its path is no plain file or
    leads through something that is no folder. Errors as for `patched`.
    """
    promised.bring_files(repository, tree, (edit.path for edit in edits))
    with sealed_folder(repository) as sealed:
        within = _within(sealed)
        git(sealed.folder, "read-tree", tree, environment=within)
        entries = _entries(sealed, within)
        files = _Files(sealed, entries)
        notes = [note for edit in edits for note in files.edit(edit)]
        files.store(within)
        return Made(_written(sealed, within), tuple(dict.fromkeys(notes))[:_MOST_NOTES])


def _within(sealed: Sealed) -> dict[str, str]:
    """An index of ours; new objects go to those of the repository."""
    facts = sealed.on(sealed.folder)
    del facts["GIT_WORK_TREE"]
    return facts


def _written(sealed: Sealed, within: dict[str, str]) -> str:
    # What a partial clone has never fetched need not be here; what is new was written here.
    return git(sealed.folder, "write-tree", "--missing-ok", environment=within)[1].strip()


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _name(name: bytes) -> str:
    return shown(_text(name))


# -- a diff ----------------------------------------------------------------------------------


def _applied(sealed: Sealed, within: dict[str, str], text: bytes, *, bare: bool) -> list[str]:
    """Apply a text to the index; which hunks have found their place elsewhere. `bare`: some have
    nothing but their numbers to say where; then none may.

    Git takes a hunk without context on one side for one at that end of the file. Where it is none,
    its numbers say where it belongs, if all that is in it is there.
    """
    if not bare:
        try:
            return _offsets(_apply(sealed, within, text))
        except NotApplied as refused:
            try:
                moved = _offsets(_apply(sealed, within, text, "--unidiff-zero"))
            except NotApplied:
                moved = ["it is elsewhere"]
            if moved:
                raise refused from None
            return [_ONE_SIDED]
    moved = _offsets(_apply(sealed, within, text, "--unidiff-zero"))
    if moved:
        why = "a hunk without context says by its numbers alone where it belongs"
        raise NotApplied("patch_does_not_apply", f"{moved[0]}: {why}")
    return []


def _apply(sealed: Sealed, within: dict[str, str], text: bytes, *more: str) -> str:
    """What git says of it. All or nothing. Raises `NotApplied`."""
    words = ("apply", "--cached", "-v", "--whitespace=nowarn", *more, "-p1", "-")
    try:
        return git_told(sealed.folder, *words, environment=within, given=text)
    except InboxOrchError as error:
        if error.code != "git_failed" or error.details.get("status") == NO_ANSWER:
            raise
        raise NotApplied("patch_does_not_apply", _reason(error)) from error


def _offsets(said: str) -> list[str]:
    found, name = [], ""
    for line in said.splitlines():
        if line.startswith("Checking patch "):
            name = line.removeprefix("Checking patch ").removesuffix("...")
        moved = re.match(r"Hunk #(\d+) succeeded at (\d+) \(offset (-?\d+) lines?\)", line)
        if moved is not None:
            number, at, by = moved.groups()
            found.append(f"{shown(name)}: hunk {number} was found at line {at} (offset {by})")
    return found


def _reason(error: InboxOrchError) -> str:
    """What git has to say of a patch, without its own words around it."""
    lines = [line for line in error.message.splitlines() if "error: " in line]
    said = [line.split("error: ", 1)[1] for line in lines]
    told = "; ".join(line for line in said if not line.startswith("while searching for"))
    return shown(told or error.message)[:_MOST_REASON]


def _before(sealed: Sealed, tree: str, diff: Diff) -> dict[bytes, bytes]:
    """The contents of the files that a diff changes, of those that are plain and not too large to
    be read at once."""
    names = list(dict.fromkeys(s.old for s in diff.sections if s.old is not None and s.hunks))
    there: dict[bytes, str] = {}
    for start in range(0, len(names), _NAMES_AT_ONCE):
        chosen = [_text(name) for name in names[start : start + _NAMES_AT_ONCE]]
        words = ("ls-tree", "-z", "--full-tree", tree, "--", *chosen)
        _, text = git(sealed.folder, *words, environment=sealed.reading, reads=True)
        for entry in filter(None, text.split("\0")):
            facts, path = entry.split("\t", 1)
            mode, _, name = facts.split(" ")
            if mode in _PLAIN_MODES:
                there[path.encode("utf-8", "surrogateescape")] = name
    return dict(zip(there, _blobs(sealed, there), strict=True))


def _blobs(sealed: Sealed, there: Mapping[bytes, str]) -> list[bytes]:
    """Empty for what is too large."""
    entries = sized(sealed.folder, dict.fromkeys(there.values()), sealed.reading)
    found: dict[str, bytes] = {}
    for batch in batches([entry for entry in entries if entry.size <= BATCH_BYTES]):
        read = contents(sealed.folder, batch, sealed.reading)
        found |= {entry.name: content for entry, content in zip(batch, read, strict=True)}
    return [found.get(name, b"") for name in there.values()]


# -- edits -----------------------------------------------------------------------------------


def _entries(sealed: Sealed, within: dict[str, str]) -> dict[str, tuple[str, str]]:
    _, text = git(sealed.folder, "ls-files", "-z", "--stage", environment=within, reads=True)
    found = {}
    for entry in filter(None, text.split("\0")):
        facts, path = entry.split("\t", 1)
        mode, name, _ = facts.split(" ")
        found[path] = (mode, name)
    return found


class _Files:
    """The files of a tree while they are edited: what was changed is held here, until `store`."""

    def __init__(self, sealed: Sealed, entries: dict[str, tuple[str, str]]) -> None:
        self._sealed, self._entries = sealed, entries
        self._changed: dict[str, bytes | None] = {}
        self._read: dict[str, bytes] = {}

    def edit(self, edit: Edit) -> list[str]:
        """Make one edit; what was done to it. Raises `NotApplied`."""
        path = edit.path
        present = self._content(path)
        if present is None and (edit.new is None or edit.old is not None):
            raise NotApplied("patch_does_not_apply", f"{shown(path)} is not there")
        if present is None:
            self._refuse_place(path)
        if edit.new is None:
            self._changed[path] = None
            return []
        try:
            content, note = replacing.replaced(present, edit)
        except NotFitting as wrong:
            raise NotApplied(wrong.code, f"{shown(path)}: {wrong}") from wrong
        self._changed[path] = content
        return [] if note is None else [f"{shown(path)}: {note}"]

    def store(self, within: dict[str, str]) -> None:
        """Let the index have them."""
        written = {path: c for path, c in self._changed.items() if c is not None}
        names = dict(zip(written, self._stored(list(written.values()), within), strict=True))
        gone = [path for path in self._changed if path not in names and path in self._entries]
        # What goes first makes room.
        lines = [f"0 {'0' * len(self._entries[path][1])}\t{path}\0" for path in gone]
        for path, name in names.items():
            mode = self._entries[path][0] if path in self._entries else _PLAIN_MODES[0]
            lines.append(f"{mode} {name}\t{path}\0")
        given = "".join(lines).encode("utf-8", "surrogateescape")
        words = ("update-index", "-z", "--index-info")
        git(self._sealed.folder, *words, environment=within, given=given)

    def _stored(self, contents_of: Sequence[bytes], within: dict[str, str]) -> list[str]:
        folder = os.path.join(self._sealed.folder, "edited")
        paths = [os.path.join(folder, str(number)) for number in range(len(contents_of))]
        with named_failures(folder):
            os.mkdir(folder)
            for path, content in zip(paths, contents_of, strict=True):
                with open(path, "wb") as file:
                    file.write(content)
        words = ("hash-object", "-w", "--no-filters", "--stdin-paths")
        given = "".join(f"{path}\n" for path in paths).encode("utf-8", "surrogateescape")
        return git(self._sealed.folder, *words, environment=within, given=given)[1].split()

    def _content(self, path: str) -> bytes | None:
        """What a file has now; None where there is none. Raises `NotApplied` for what is none."""
        if path in self._changed:
            return self._changed[path]
        if path not in self._entries:
            return None
        mode, name = self._entries[path]
        if mode not in _PLAIN_MODES:
            raise NotApplied("patch_does_not_apply", f"{shown(path)} is no plain file")
        if path not in self._read:
            entry = {b"": name}
            self._read[path] = _blobs(self._sealed, entry)[0]
        return self._read[path]

    def _refuse_place(self, path: str) -> None:
        """A folder is no file, and what is no folder has nothing below it."""
        there = {p for p in self._entries if self._changed.get(p, b"") is not None}
        there |= {p for p, content in self._changed.items() if content is not None}
        parts = path.split("/")
        above = ("/".join(parts[:number]) for number in range(1, len(parts)))
        file = next((folder for folder in above if folder in there), None)
        if file is not None:
            why = f"{shown(path)} leads through {shown(file)}, which is no folder"
            raise NotApplied("patch_does_not_apply", why)
        if any(other.startswith(f"{path}/") for other in there):
            raise NotApplied("patch_does_not_apply", f"{shown(path)} is a folder")
