"""What a commit's tree has, read without a checkout: names down to some depth, and single files.

Reads objects alone: no working tree and no index has a part in it, and no filter runs.
"""

from collections.abc import Iterable
from typing import NamedTuple

from .commands import git_bytes, output_of

MOST_ENTRIES = 20_000
_MOST_FOLDERS = 1_000
_MOST_ARGUMENT_BYTES = 100_000


class Entry(NamedTuple):
    """One name in a tree: its path from the top, the id of its object, and whether it is a folder
    or a plain file. What is neither is a link or a submodule."""

    path: str
    object_id: str
    folder: bool
    file: bool


def entries(
    directory: str, tree: str, depth: int, passed_over: Iterable[str] = ()
) -> dict[str, Entry]:
    """The entries of a tree by their paths, down to `depth` folders and at most `MOST_ENTRIES`;
    nothing below a folder whose name is in `passed_over`.

    `directory` is one of the repository, `tree` whatever names a tree there. Each level is one
    call of git. Error `git_failed`.
    """
    left_out = frozenset(passed_over)
    object_id = output_of(directory, "rev-parse", "--verify", "--end-of-options", tree + "^{tree}")
    found: dict[str, Entry] = {}
    level = _listed(directory, object_id, ())
    for _ in range(depth):
        for entry in level:
            if len(found) < MOST_ENTRIES:
                found[entry.path] = entry
        folders = [e.path + "/" for e in level if e.folder and _name(e.path) not in left_out]
        if not folders or len(found) >= MOST_ENTRIES:
            break
        level = _listed(directory, object_id, _as_many_as_fit(folders))
    return found


def content(directory: str, entry: Entry, most_bytes: int) -> bytes | None:
    """What a plain file holds; None for what is none, and for one with more bytes than that.
    Error `git_failed`."""
    if not entry.file:
        return None
    if int(output_of(directory, "cat-file", "-s", entry.object_id)) > most_bytes:
        return None
    return git_bytes(directory, "cat-file", "blob", entry.object_id)


def _listed(directory: str, tree: str, folders: tuple[str, ...]) -> list[Entry]:
    # `--full-tree`: paths count from the top, wherever git is called.
    listing = git_bytes(directory, "ls-tree", "-z", "--full-tree", tree, "--", *folders)
    found = []
    for line in listing.decode("utf-8", "surrogateescape").split("\0"):
        facts, tab, path = line.partition("\t")
        if tab:
            mode, kind, object_id = facts.split()
            found.append(Entry(path, object_id, kind == "tree", mode.startswith("100")))
    return found


def _as_many_as_fit(folders: list[str]) -> tuple[str, ...]:
    """No more names than may stand in one call."""
    found, size = [], 0
    for folder in folders[:_MOST_FOLDERS]:
        size += len(folder.encode("utf-8", "surrogateescape")) + 1
        if size > _MOST_ARGUMENT_BYTES:
            break
        found.append(folder)
    return tuple(found)


def _name(path: str) -> str:
    return path.rpartition("/")[2]
