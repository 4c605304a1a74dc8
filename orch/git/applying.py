"""The tree that a patch, or edits of single files, make of another: in an index of our own.

No working tree, no index and no ref has a part in it, and no filter runs; new objects go to those
of the repository, where nothing refers to them yet.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from .commands import NO_ANSWER, git, git_bytes
from .failures import shown
from .harvest import Unfit
from .repository import Repository
from .sealed import Sealed, sealed_folder

_PLAIN_MODES = ("100644", "100755")
_MOST_REASON = 500


class Edit(NamedTuple):
    """A change of one file: the one occurrence of `old` becomes `new`; or, where `old` is None,
    `new` is all that the file has; None there takes the file away."""

    path: str
    old: str | None
    new: str | None


def patched(repository: Repository, tree: str, patch: bytes) -> str:
    """The tree that a unified diff makes of another; names count from the top, with one folder
    before them (`a/`, `b/`).

    Raises `Unfit` where git refuses it: it does not apply, or leads out of the tree. Errors:
    `git_failed`, `disk_full`, `io_error`.
    """
    with sealed_folder(repository) as sealed:
        within = _within(sealed)
        _fill(sealed, tree, within)
        words = ("apply", "--cached", "--whitespace=nowarn", "-p1", "-")
        try:
            git(sealed.folder, *words, environment=within, given=patch)
        except InboxOrchError as error:
            if error.code != "git_failed" or error.details.get("status") == NO_ANSWER:
                raise
            raise Unfit(_said(error)) from error
        return _written(sealed, within)


def edited(repository: Repository, tree: str, edits: Sequence[Edit]) -> str:
    """The tree that edits make of another, one after the other.

    Raises `Unfit` where one cannot be made: what it looks for is not there exactly once, its path
    is no plain file or leads through something that is no folder. Errors as for `patched`.
    """
    with sealed_folder(repository) as sealed:
        within = _within(sealed)
        _fill(sealed, tree, within)
        entries = _entries(sealed, within)
        for edit in edits:
            line = _line_of(sealed, within, entries, edit)
            git(
                sealed.folder,
                *("update-index", "-z", "--index-info"),
                environment=within,
                given=f"{line}\0".encode("utf-8", "surrogateescape"),
            )
            mode, rest = line.split(" ", 1)
            if mode == "0":
                del entries[edit.path]
            else:
                entries[edit.path] = (mode, rest.split("\t", 1)[0])
        return _written(sealed, within)


def _within(sealed: Sealed) -> dict[str, str]:
    """An index of ours; new objects go to those of the repository."""
    facts = sealed.on(sealed.folder)
    del facts["GIT_WORK_TREE"]
    return facts


def _fill(sealed: Sealed, tree: str, within: dict[str, str]) -> None:
    git(sealed.folder, "read-tree", tree, environment=within)


def _written(sealed: Sealed, within: dict[str, str]) -> str:
    return git(sealed.folder, "write-tree", environment=within)[1].strip()


def _said(error: InboxOrchError) -> str:
    """What git has to say of a patch, without its own words around it."""
    lines = [line for line in error.message.splitlines() if "error: " in line]
    told = "; ".join(line.split("error: ", 1)[1] for line in lines) or error.message
    return shown(told)[:_MOST_REASON]


def _entries(sealed: Sealed, within: dict[str, str]) -> dict[str, tuple[str, str]]:
    _, text = git(sealed.folder, "ls-files", "-z", "--stage", environment=within, reads=True)
    found = {}
    for entry in filter(None, text.split("\0")):
        facts, path = entry.split("\t", 1)
        mode, name, _ = facts.split(" ")
        found[path] = (mode, name)
    return found


def _line_of(
    sealed: Sealed,
    within: dict[str, str],
    entries: Mapping[str, tuple[str, str]],
    edit: Edit,
) -> str:
    """What the index is told (git-update-index(1), `--index-info`)."""
    path, present = edit.path, entries.get(edit.path)
    _refuse_path(entries, path)
    if present is not None and present[0] not in _PLAIN_MODES:
        raise Unfit(f"{shown(path)} is no plain file")
    if present is None and (edit.new is None or edit.old is not None):
        raise Unfit(f"{shown(path)} is not there")
    if edit.new is None:
        assert present is not None
        return f"0 {'0' * len(present[1])}\t{path}"
    content = edit.new.encode("utf-8", "surrogateescape")
    if edit.old is not None:
        assert present is not None
        before = git_bytes(
            sealed.folder, "cat-file", "blob", present[1], environment=sealed.reading
        )
        content = _replaced(before, edit.old, content, path)
    words = ("hash-object", "-w", "--no-filters", "--stdin")
    name = git(sealed.folder, *words, environment=within, given=content)[1].strip()
    mode = _PLAIN_MODES[0] if present is None else present[0]
    return f"{mode} {name}\t{path}"


def _replaced(before: bytes, old: str, new: bytes, path: str) -> bytes:
    wanted = old.encode("utf-8", "surrogateescape")
    times = before.count(wanted) if wanted else 0
    if times != 1:
        said = "is not there" if times == 0 else f"is there {times} times"
        raise Unfit(f"what is to be replaced in {shown(path)} {said}, and has to be once")
    return before.replace(wanted, new)


def _refuse_path(entries: Mapping[str, tuple[str, str]], path: str) -> None:
    """A folder is no file, and what is no folder has nothing below it."""
    parts = path.split("/")
    for number in range(1, len(parts)):
        above = "/".join(parts[:number])
        if above in entries:
            raise Unfit(f"{shown(path)} leads through {shown(above)}, which is no folder")
    if any(other.startswith(f"{path}/") for other in entries):
        raise Unfit(f"{shown(path)} is a folder")
