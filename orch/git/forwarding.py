"""A working tree that a git was moving from one commit to another when it came to no end.

Each file is put right only if it is certainly git's doing: it has the content of one of the two
commits, or the beginning of it, or is missing. What somebody has changed stays as it is.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from .commands import git
from .repository import Repository

_ANY_END = range(-64, 256)
_LINK, _MODULE, _PROGRAM = "120000", "160000", "100755"


class Forward(NamedTuple):
    """What was to be done: `branch`, checked out in the working tree `tree`, comes from the commit
    `old` forward to `new`. `index_lock` is git's lock there, in the git directory; `theirs` is
    what was in the way before."""

    tree: str
    branch: str
    old: str
    new: str
    index_lock: str
    theirs: Sequence[str] = ()


class Entry(NamedTuple):
    """A file of a commit: its mode, and the name of its object."""

    mode: str
    name: str


class Difference(NamedTuple):
    """A path in which the commits differ; None where one has no such file."""

    path: str
    old: Entry | None
    new: Entry | None


class Standing(NamedTuple):
    """A working tree that nobody else has to do with: its index has the files of one of the
    commits. `sparse` are paths that it is not to have."""

    differences: tuple[Difference, ...]
    at_new: bool
    sparse: frozenset[str]


def differences(repository: Repository, old: str, new: str) -> tuple[Difference, ...]:
    """All paths in which two commits differ (git-diff-tree(1), RAW OUTPUT FORMAT)."""
    _, text = git(
        repository.path,
        *("diff-tree", "-r", "-z", "--no-renames", "--no-abbrev", old, new),
        reads=True,
    )
    words, found = iter(text.split("\0")), []
    for facts in words:
        if facts:
            mode, other_mode, name, other_name, _ = facts.removeprefix(":").split()
            before, after = _entry(mode, name), _entry(other_mode, other_name)
            found.append(Difference(next(words), before, after))
    return tuple(found)


def _entry(mode: str, name: str) -> Entry | None:
    return Entry(mode, name) if mode.strip("0") else None


def in_the_way(repository: Repository, tree: str, old: str, new: str) -> list[str]:
    """What is in a working tree where only the new commit has a file: somebody else's."""
    paths = [d.path for d in differences(repository, old, new) if d.old is None]
    return [path for path in paths if os.path.lexists(os.path.join(tree, path))]


def standing(repository: Repository, forward: Forward) -> Standing | None:
    """None when the index is neither that of the one nor of the other commit."""
    differing = differences(repository, forward.old, forward.new)
    status, found, sparse = _index_of(forward.tree)
    if status != 0:
        return None
    for at_new in (True, False):
        if all(found.get(d.path) == (d.new if at_new else d.old) for d in differing):
            return Standing(differing, at_new, frozenset(sparse))
    return None


def _index_of(tree: str, index: str | None = None) -> tuple[int, dict[str, Entry], set[str]]:
    status, text = git(
        tree,
        *("ls-files", "-z", "--stage", "-t", "--full-name"),
        reads=True,
        accepted=_ANY_END,
        environment=None if index is None else {"GIT_INDEX_FILE": index},
    )
    found, sparse = {}, set()
    for line in filter(None, text.split("\0")) if status == 0 else ():
        facts, path = line.split("\t", 1)
        tag, mode, name, stage = facts.split()
        found[path] = Entry(mode, name) if stage == "0" else Entry("unmerged", stage)
        if tag == "S":
            sparse.add(path)
    return status, found, sparse


def is_own_index_lock(forward: Forward, path: str, differing: Sequence[Difference]) -> bool:
    """Whether a lock holds what our git writes there: an index that it did not come to the end
    of, or that of one of the commits."""
    with open(path, "rb") as file:
        content = file.read()
    if not _is_whole(content):
        return True
    status, found, _ = _index_of(forward.tree, os.path.abspath(path))
    return status != 0 or any(
        all(found.get(d.path) == (d.new if at_new else d.old) for d in differing)
        for at_new in (True, False)
    )


def _is_whole(content: bytes) -> bool:
    """An index ends in its own checksum, or in zeros (index.skipHash)."""
    import hashlib

    for kind in (hashlib.sha1, hashlib.sha256):
        size = kind().digest_size
        if len(content) > size and content[-size:] in (kind(content[:-size]).digest(), bytes(size)):
            return True
    return False


# -- the files -------------------------------------------------------------------------------


def put_right(forward: Forward, there: Standing, *, cut_short: bool) -> None:
    """Let the files be those of the index again. `cut_short`: git had certainly begun; otherwise
    what is missing or half there counts as its doing only beside a file that is.

    Error `git_failed`.
    """
    wanted = {
        d.path: (d.new, d.old) if there.at_new else (d.old, d.new)
        for d in there.differences
        if not (d.path in there.sparse or d.path in forward.theirs or _is_module(d))
    }
    found = _contents(forward.tree, wanted)
    moved = [p for p, (_, other) in wanted.items() if other and found.get(p) == other]
    if moved or cut_short:
        moved += [p for p, (own, other) in wanted.items() if _is_cut(forward, p, found, own, other)]
    for path in moved:
        if path in found or wanted[path][0] is None:
            _remove(forward.tree, path)
    for path in moved:
        _remove_empty_folders(os.path.join(forward.tree, path))
    _check_out(forward.tree, [path for path in moved if wanted[path][0] is not None])


def _is_module(difference: Difference) -> bool:
    return any(e is not None and e.mode == _MODULE for e in (difference.old, difference.new))


def _contents(tree: str, paths: Iterable[str]) -> dict[str, Entry]:
    """What is there, as git would store it; without what is missing, and with "" as the name of
    what is no file."""
    found: dict[str, Entry] = {}
    files = []
    for path in paths:
        whole = os.path.join(tree, path)
        if _parent_is_link(tree, path) or not os.path.lexists(whole):
            continue
        mode = os.lstat(whole).st_mode
        if stat.S_ISLNK(mode):
            target = os.fsencode(os.readlink(whole))
            _, name = git(tree, "hash-object", "--no-filters", "--stdin", reads=True, given=target)
            found[path] = Entry(_LINK, name.strip())
        elif stat.S_ISREG(mode):
            files.append((path, _PROGRAM if mode & 0o100 else "100644"))
        elif not stat.S_ISDIR(mode):
            found[path] = Entry("other", "")
    names = _hashed(tree, [path for path, _ in files])
    return found | {
        path: Entry(mode, name) for (path, mode), name in zip(files, names, strict=True)
    }


def _hashed(tree: str, paths: Sequence[str]) -> list[str]:
    plain = [path for path in paths if "\n" not in path and not path.startswith('"')]
    given = "".join(f"{path}\n" for path in plain).encode("utf-8", "surrogateescape")
    _, text = git(tree, "hash-object", "--stdin-paths", reads=True, given=given)
    names = dict(zip(plain, text.split(), strict=True))
    return [
        names.get(path) or git(tree, "hash-object", "--", path, reads=True)[1].strip()
        for path in paths
    ]


def _is_cut(
    forward: Forward,
    path: str,
    found: dict[str, Entry],
    own: Entry | None,
    other: Entry | None,
) -> bool:
    """Whether a file is missing that was to be there, or only the beginning of it is."""
    if path not in found:
        # A folder that came in its place is empty, and gone, once git's files have left it.
        there = os.path.join(forward.tree, path)
        return own is not None and (not os.path.lexists(there) or os.path.isdir(there))
    if found[path] in (own, other) or found[path].mode not in ("100644", _PROGRAM):
        return False
    with open(os.path.join(forward.tree, path), "rb") as file:
        content = file.read()
    return any(
        entry is not None and _written(forward.tree, path, entry).startswith(content)
        for entry in (own, other)
    )


def _written(tree: str, path: str, entry: Entry) -> bytes:
    """A file as git writes it into the working tree."""
    _, text = git(tree, "cat-file", "--filters", f"--path={path}", entry.name, reads=True)
    return text.encode("utf-8", "surrogateescape")


def _parent_is_link(tree: str, path: str) -> bool:
    parts = path.split("/")[:-1]
    return any(os.path.islink(os.path.join(tree, *parts[: n + 1])) for n in range(len(parts)))


def _remove(tree: str, path: str) -> None:
    """Remove a file, and the folders that are empty without it."""
    with contextlib.suppress(FileNotFoundError, NotADirectoryError):
        os.unlink(os.path.join(tree, path))
    folder = os.path.dirname(path)
    with contextlib.suppress(OSError):
        while folder:
            os.rmdir(os.path.join(tree, folder))
            folder = os.path.dirname(folder)


def _remove_empty_folders(path: str) -> None:
    """In the place of a file: those that git had made there for others."""
    if not os.path.islink(path):
        for folder, _, _ in os.walk(path, topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def _check_out(tree: str, paths: Sequence[str]) -> None:
    """Files as they are in the index, where nothing stands in their way; attributes first."""
    free = [path for path in paths if not _is_taken(tree, path)]
    for first in (True, False):
        chosen = [p for p in free if (os.path.basename(p) == ".gitattributes") is first]
        if chosen:
            given = "".join(f"{path}\0" for path in chosen).encode("utf-8", "surrogateescape")
            # Without -f: nothing that has come meanwhile is written over.
            git(tree, "checkout-index", "--quiet", "-z", "--stdin", given=given)


def _is_taken(tree: str, path: str) -> bool:
    return _parent_is_link(tree, path) or os.path.lexists(os.path.join(tree, path))
