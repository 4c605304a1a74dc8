"""Bringing salvage back: the files of a worktree as they were, into a folder of their own.

What was changed is written as it was stored, through no filter. The rest is checked out, as it
was before. Never writes over anything.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.signals import postponed

from .commands import git, git_bytes
from .failures import failure, shown, temporary_folder
from .repository import Repository
from .standing import require_here

BATCH_BYTES = 32 * 1024 * 1024
"""What is larger is never read as a whole."""
_PART = "Changed", "Index", "Stage-1", "Stage-2", "Stage-3"


class Entry(NamedTuple):
    """One path of a tree."""

    mode: str
    name: str
    size: int
    path: str


_entry = partial(tuple.__new__, Entry)


class Parts(NamedTuple):
    """The commits that a salvage is made of, by their names; `kept` would be lost without it."""

    named: dict[str, str]
    kept: tuple[str, ...]


class Restored(NamedTuple):
    """How many files came back, how many of them as they were stored; `unfiltered` is why the
    others did not go through their filters, None when they did."""

    files: int
    changed: int
    unfiltered: str | None


def parts_of(repository: Repository, commit: str) -> Parts:
    """What the message of a salvage says."""
    _, text = git(
        repository.path, "show", "--no-patch", "--format=%B", "--end-of-options", commit, reads=True
    )
    lines = [line.partition(": ") for line in text.splitlines()]
    named = {name: value for name, _, value in lines if name in _PART}
    return Parts(named, tuple(value for name, _, value in lines if name == "Kept"))


def restore(repository: Repository, commit: str, folder: str) -> Restored:
    """Bring the files of a salvage into a folder that is new or empty; all or nothing.

    Errors: `file_exists`, `git_failed`, `disk_full`, `read_only`, `io_error`.
    """
    _require_empty(folder)
    changed = parts_of(repository, commit).named.get("Changed")
    raw = {} if changed is None else {e.path: e for e in _entries(repository, changed)}
    rest = [e for e in _entries(repository, commit) if e.path not in raw]
    unfiltered: list[str | None] = []

    def fill(partial: str) -> None:
        unfiltered.append(_check_out(repository, rest, partial))
        _write(repository, list(raw.values()), partial)
        _complete_git_directories(partial)

    _filled(folder, fill)
    return Restored(len(rest) + len(raw), len(raw), unfiltered[0])


def restore_raw(repository: Repository, commit: str, folder: str) -> int:
    """Bring the files of a raw tree into a folder that is new or empty, byte for byte; all or
    nothing. Returns how many there are. Errors as for `restore`."""
    _require_empty(folder)
    entries = _entries(repository, commit)
    _filled(folder, lambda partial: _write(repository, entries, partial))
    return len(entries)


def _filled(folder: str, fill: Callable[[str], None]) -> None:
    """Fill a folder beside, which then takes the place of the one that is wanted."""
    import shutil
    import tempfile

    parent = os.path.dirname(os.path.abspath(folder))
    try:
        os.makedirs(parent, exist_ok=True)
        # Within one that only we may enter: the folder itself is made as any other.
        private = tempfile.mkdtemp(prefix=f".{os.path.basename(folder)}.", dir=parent)
        partial = os.path.join(private, "files")
        os.mkdir(partial)
    except OSError as error:
        raise failure(folder, error) from error
    try:
        fill(partial)
        # Takes the place of an empty folder, and of nothing else (rename(2)).
        os.rename(partial, folder)
    except OSError as error:
        raise failure(folder, error) from error
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _require_empty(folder: str) -> None:
    try:
        taken = os.path.islink(folder) or bool(os.listdir(folder))
    except FileNotFoundError:
        taken = False
    except OSError:
        taken = True
    if taken:
        raise InboxOrchError(
            "file_exists",
            f"{shown(folder)} is there already, and is not empty",
            hint="give another folder: --into DIR",
            details={"path": shown(folder)},
        )


def _entries(repository: Repository, commit: str) -> list[Entry]:
    _, text = git(
        repository.path, *("ls-tree", "-r", "-z", "--long", "--full-tree", commit), reads=True
    )
    entries = []
    for line in filter(None, text.split("\0")):
        facts, path = line.split("\t", 1)
        mode, _, name, size = facts.split()
        if {".", "..", ".git"} & {part.lower() for part in path.split("/")}:
            raise InboxOrchError(
                "git_failed",
                f"the salvage has a path {shown(path)!r}",
                hint="nothing was written; `git show` reads single files out of the commit",
            )
        entries.append(Entry(mode, name, 0 if size == "-" else int(size), path))
    return entries


def _complete_git_directories(folder: str) -> None:
    """Git takes a folder for a repository only with its `refs`, which is empty where all of them
    are packed; and an empty folder is in no tree."""
    for inner, folders, files in os.walk(folder):
        if "HEAD" in files and "objects" in folders and "refs" not in folders:
            os.mkdir(os.path.join(inner, "refs"))


# -- what was not changed --------------------------------------------------------------------


def _check_out(repository: Repository, entries: Sequence[Entry], folder: str) -> str | None:
    """As git checks out, with the filters that the files had come through. Without them where
    one does not work any more; returns what it said."""
    import shutil

    with temporary_folder() as temporary:
        within = {
            "GIT_INDEX_FILE": os.path.join(temporary, "index"),
            "GIT_DIR": repository.common_directory,
            "GIT_WORK_TREE": folder,
        }
        lines = "".join(f"{e.mode} {e.name}\t{e.path}\0" for e in entries)
        git(
            folder,
            *("update-index", "-z", "--index-info"),
            environment=within,
            given=lines.encode("utf-8", "surrogateescape"),
        )
        try:
            # A git that was left behind would go on writing while the folder is taken away.
            with postponed():
                require_here(folder, repository.common_directory, within)
                git(folder, "checkout-index", "--all", "--force", "--quiet", environment=within)
        except InboxOrchError as error:
            if error.code != "git_failed":
                raise
            for name in os.listdir(folder):
                inner = os.path.join(folder, name)
                is_folder = os.path.isdir(inner) and not os.path.islink(inner)
                (shutil.rmtree if is_folder else os.unlink)(inner)
            _write(repository, entries, folder)
            return error.message[:500]
    return None


# -- what was ---------------------------------------------------------------------------------


def _write(repository: Repository, entries: Sequence[Entry], folder: str) -> None:
    """Files as their blobs are, links last: nothing is ever written through one."""
    for entry in entries:
        parent = os.path.dirname(os.path.join(folder, entry.path))
        os.makedirs(parent, exist_ok=True)
    files = [entry for entry in entries if entry.mode in ("100644", "100755")]
    for batch in batches(files):
        for entry, content in zip(batch, contents(repository.path, batch), strict=True):
            with open(_created(folder, entry), "wb") as file:
                file.write(content)
    for entry in (e for e in files if e.size > BATCH_BYTES):
        with open(_created(folder, entry), "wb") as file:
            git_bytes(repository.path, "cat-file", "blob", entry.name, output=file)
    links = [entry for entry in entries if entry.mode == "120000"]
    for entry, target in zip(links, contents(repository.path, links), strict=True):
        os.symlink(target, os.fsencode(os.path.join(folder, entry.path)))
    for entry in entries:
        if entry.mode == "160000":  # a submodule: its place
            os.makedirs(os.path.join(folder, entry.path), exist_ok=True)


def _created(folder: str, entry: Entry) -> int:
    mode = 0o777 if entry.mode == "100755" else 0o666
    path = os.path.join(folder, entry.path)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)


def sized(
    folder: str, names: Iterable[str], environment: dict[str, str] | None = None
) -> list[Entry]:
    """Blobs by their names, with their sizes; mode and path are "". Error `git_failed` when one
    is not here."""
    given = "".join(f"{name}\n" for name in names).encode()
    if not given:
        return []
    words = ("cat-file", "--buffer", "--batch-check=%(objectname) %(objectsize)")
    _, text = git(folder, *words, reads=True, given=given, environment=environment)
    found = []
    for line in text.splitlines():
        name, _, size = line.partition(" ")
        if size == "missing":
            # For git's own words.
            git(folder, "cat-file", "blob", name, reads=True, environment=environment)
        found.append(_entry(("", name, int(size), "")))
    return found


def batches(entries: Sequence[Entry]) -> Iterator[list[Entry]]:
    """As many at a time as fit into memory well; what is larger comes by itself."""
    batch: list[Entry] = []
    size = 0
    for entry in entries:
        if entry.size > BATCH_BYTES:
            continue
        if batch and size + entry.size > BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += entry.size
    if batch:
        yield batch


def contents(
    folder: str, entries: Sequence[Entry], environment: dict[str, str] | None = None
) -> Iterator[bytes]:
    """The blobs of some entries, in their order (git-cat-file(1), BATCH OUTPUT)."""
    if not entries:
        return
    given = "".join(f"{entry.name}\n" for entry in entries).encode()
    output = git_bytes(
        folder, "cat-file", "--batch", "--buffer", given=given, environment=environment
    )
    at = 0
    for entry in entries:
        at = output.index(b"\n", at) + 1
        yield output[at : at + entry.size]
        at += entry.size + 1
