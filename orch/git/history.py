"""What is told of commits, and what else a tree has: read in a sealed folder, bounded. Writes
nothing.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import NamedTuple

from .commands import git, git_bytes
from .restoring import batches, contents, sized
from .sealed import Sealed

_LINK = "120000"
_MOST_FOLDERS = 2000
MOST_COMMITS = 1000
MOST_TARGET_BYTES = 4096
"""No link on Linux leads further."""


class Commit(NamedTuple):
    """A commit, its parents, and all that it says: who made it, and its message."""

    name: str
    parents: tuple[str, ...]
    text: str


def commits(sealed: Sealed, base: str, head: str) -> list[Commit] | None:
    """The commits that a head has and a base has not, newest first; none where one of them is a
    tree, None where there are more than `MOST_COMMITS`. Error `git_failed`."""
    if kinds(sealed, (base, head)) != ["commit", "commit"]:
        return []
    _, text = git(
        sealed.folder,
        *("log", "-z", f"--max-count={MOST_COMMITS + 1}", "--no-notes", "--no-show-signature"),
        *("--encoding=UTF-8", "--format=%H%n%P%n%an <%ae>%n%cn <%ce>%n%B", head, f"^{base}"),
        reads=True,
        environment=sealed.reading,
    )
    found = [_commit(entry) for entry in text.split("\0") if entry]
    return None if len(found) > MOST_COMMITS else found


def _commit(entry: str) -> Commit:
    name, parents, text = entry.split("\n", 2)
    return Commit(name, tuple(parents.split()), text)


def whole_texts(sealed: Sealed, names: Sequence[str]) -> Iterator[bytes]:
    """All that commits have in them, in the order of their names: headers of any kind, too, and
    what stands behind a zero byte, where git ends a message. Error `git_failed`."""
    found = sized(sealed.folder, names, sealed.reading)
    for batch in batches(found):
        yield from contents(sealed.folder, batch, sealed.reading)


def kinds(sealed: Sealed, names: Collection[str]) -> list[str]:
    """What each of some objects is: commit, tree, …, or `missing`. Error `git_failed`."""
    given = "".join(f"{name}\n" for name in names).encode()
    words = ("cat-file", "--batch-check=%(objecttype)")
    _, text = git(sealed.folder, *words, given=given, reads=True, environment=sealed.reading)
    return [line.split(" ")[-1] for line in text.splitlines()]


def entries(sealed: Sealed, tree: str) -> list[tuple[str, str, str]]:
    """(mode, name of the object, path) of all that a tree has. Error `git_failed`."""
    words = ("ls-tree", "-r", "-z", "--full-tree", tree)
    _, text = git(sealed.folder, *words, reads=True, environment=sealed.reading)
    found = []
    for entry in text.split("\0")[:-1]:
        facts, _, path = entry.partition("\t")
        mode, _, name = facts.split(" ")
        found.append((mode, name, path))
    return found


def beside(sealed: Sealed, tree: str, paths: Iterable[str]) -> list[str]:
    """The paths that lie in one folder with one of these, or with a folder that one lies in: far
    less than all that a large tree has. Error `git_failed`."""
    folders = {""}
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder not in folders:
            folders.add(folder)
            folder = folder.rpartition("/")[0]
    if len(folders) > _MOST_FOLDERS or any("\n" in folder for folder in folders):
        return [path for _, _, path in entries(sealed, tree)]
    given = "".join(f"{tree}:{folder}\n" for folder in folders)
    words = ("cat-file", "--batch", "--buffer")
    asked = given.encode("utf-8", "surrogateescape")
    output = git_bytes(sealed.folder, *words, given=asked, environment=sealed.reading)
    found, at = [], 0
    for folder in folders:
        end = output.index(b"\n", at)
        head, at = output[at:end], end + 1
        if head.endswith(b" missing"):
            continue
        size = int(head.rpartition(b" ")[2])
        above = f"{folder}/" if folder else ""
        found += [above + name for name in _names(output[at : at + size], len(tree) // 2)]
        at += size + 1
    return found


def _names(tree: bytes, id_bytes: int) -> Iterator[str]:
    """The names in a tree as git stores it: mode, name, and the bytes of an id."""
    at = 0
    while at < len(tree):
        start, end = tree.index(b" ", at) + 1, tree.index(b"\0", at)
        yield tree[start:end].decode("utf-8", "surrogateescape")
        at = end + 1 + id_bytes


def declared_modules(sealed: Sealed, tree: str) -> set[str]:
    """The paths that a tree's `.gitmodules` names; none where it cannot be read."""
    blob = f"--blob={tree}:.gitmodules"
    words = ("config", blob, "-z", "--get-regexp", r"^submodule\..*\.path$")
    status, text = git(
        sealed.folder, *words, reads=True, accepted=(0, 1, 128), environment=sealed.reading
    )
    pairs = (entry.partition("\n") for entry in text.split("\0")) if status == 0 else ()
    return {path for _, _, path in pairs if path}


def link_targets(sealed: Sealed, found: Sequence[tuple[str, str, str]]) -> dict[str, str]:
    """Where the links among some entries lead, by their paths. Error `git_failed`."""
    links = {path: name for mode, name, path in found if mode == _LINK}
    blobs = sized(sealed.folder, dict.fromkeys(links.values()), sealed.reading)
    small = [blob for blob in blobs if blob.size <= MOST_TARGET_BYTES]
    read = zip(small, contents(sealed.folder, small, sealed.reading), strict=True)
    targets = {blob.name: target.decode("utf-8", "surrogateescape") for blob, target in read}
    return {path: targets.get(name, "") for path, name in links.items()}


def renames(sealed: Sealed, before: str, after: str) -> Iterator[tuple[str, str]]:
    """(old, new) of each file that has another name and much the same content; of thousands only
    those whose content is the same. Error `git_failed`."""
    words = ("diff-tree", "-r", "-z", "-M", "-l1000", "--diff-filter=R", "--name-status")
    _, text = git(sealed.folder, *words, before, after, reads=True, environment=sealed.reading)
    parts = iter(text.split("\0")[:-1])
    for _ in parts:
        yield next(parts), next(parts)


def empty_tree(sealed: Sealed) -> str:
    """The name of the tree that has nothing. Error `git_failed`."""
    words = ("hash-object", "-t", "tree", "--stdin")
    return git(sealed.folder, *words, reads=True, given=b"", environment=sealed.reading)[1].strip()
