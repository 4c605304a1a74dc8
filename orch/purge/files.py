"""Files that hold a secret: contents beside the database, worktrees, and what else lies around.

Contents are made anew under their new digest. What lies in a worktree, and what somebody has put
beside the database, is only named.
"""

import os
import stat
import tempfile
from collections.abc import Iterator
from typing import NamedTuple

from inbox_orch.inbox.services import pruning
from inbox_orch.shared.store import live
from inbox_orch.shared.store.artifacts import ArtifactStore
from inbox_orch.shared.store.layout import FOLDER_NAME
from inbox_orch.shared.store.temporary import temporary_place

from ..git.failures import named_failures, shown
from ..runs.desk import Desk
from .scrub import Renames, Scrub, pieces

_PIECE_BYTES = 1024 * 1024


class Content(NamedTuple):
    """A stored content that holds a value."""

    sha256: str
    path: str
    size: int


def contents(desk: Desk, scrub: Scrub) -> list[Content]:
    """The stored contents with a value in them, whether anything refers to them or not."""
    store = desk.bus.artifacts
    found = []
    with named_failures(desk.database.layout.artifacts):
        for sha256, path in store.contents():
            if _holds(path, scrub):
                found.append(Content(sha256, path, os.stat(path).st_size))
    return found


def forecast(scrub: Scrub, found: list[Content]) -> Renames:
    """What contents would be called without the values."""
    import hashlib

    ids, lengths = {}, {}
    for each in found:
        digest, size = hashlib.sha256(), 0
        for piece in pieces(scrub, _read(each.path)):
            digest.update(piece)
            size += len(piece)
        ids[each.sha256] = digest.hexdigest()
        lengths[each.sha256] = (each.size, size)
    return Renames(ids, lengths)


def stored_anew(desk: Desk, scrub: Scrub, found: list[Content]) -> Renames:
    """Store the contents without the values; nothing refers to them yet. Errors: `disk_full`,
    `read_only`, `io_error`."""
    ids, lengths = {}, {}
    for each in found:
        stored = _stored(desk.bus.artifacts, scrub, each)
        ids[each.sha256] = stored[0]
        lengths[each.sha256] = (each.size, stored[1])
    return Renames(ids, lengths)


def collected(desk: Desk, found: list[Content]) -> int:
    """Remove the contents, as far as nothing refers to them any more; how many."""
    number, _ = pruning.collect(desk.bus.desk, [each.sha256 for each in found])
    return number


def beside(desk: Desk, scrub: Scrub) -> list[str]:
    """Files in the folder of the database that hold a value and are no contents, by their paths in
    it: copies of the database, unfinished contents, whatever somebody has put there."""
    layout = desk.database.layout
    folder = os.path.dirname(layout.database)
    if os.path.basename(folder) != FOLDER_NAME:
        return []
    known = {path for _, path in desk.bus.artifacts.contents()}
    own = {layout.gate, layout.reserve}
    found = (path for path in _files(folder) if path not in known | own and not live.is_live(path))
    names = ((path, os.path.relpath(path, folder)) for path in found)
    return [told for path, name in names if (told := _told(path, name, scrub)) is not None]


def below(folder: str, scrub: Scrub, *, but: str = ".git") -> list[str]:
    """The files below a folder with a value in them, or in their names, by their paths in it; but
    for one folder in it."""
    found = ((path, os.path.relpath(path, folder)) for path in _files(folder, but))
    return [told for path, name in found if (told := _told(path, name, scrub)) is not None]


def _files(folder: str, but: str = ".git") -> Iterator[str]:
    for inner, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name != but or inner != folder)
        for name in sorted(names):
            path = os.path.join(inner, name)
            try:
                regular = stat.S_ISREG(os.lstat(path).st_mode)
            except OSError:
                continue  # it has gone meanwhile
            if regular:
                yield path


def _told(path: str, name: str, scrub: Scrub) -> str | None:
    """What is said of a file; None for one without a value, or that has gone meanwhile."""
    try:
        return shown(name) if scrub.holds(name) or _holds(path, scrub) else None
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"{shown(name)} (cannot be read: {error.strerror})"


def _holds(path: str, scrub: Scrub) -> bool:
    longest, tail = max(map(len, scrub.forms_in_bytes)), b""
    for piece in _read(path):
        text = tail + piece
        if scrub.holds_bytes(text):
            return True
        tail = text[-longest:]
    return False


def _read(path: str) -> Iterator[bytes]:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with open(os.open(path, flags), "rb", buffering=0) as file:
        while piece := file.read(_PIECE_BYTES):
            yield piece


def _stored(store: ArtifactStore, scrub: Scrub, content: Content) -> tuple[str, int]:
    folder = temporary_place()
    with named_failures(folder), tempfile.TemporaryDirectory(dir=folder) as place:
        path = os.path.join(place, "content")
        with open(path, "wb") as file:
            for piece in pieces(scrub, _read(content.path)):
                file.write(piece)
        stored = store.add_file(path)
    return stored.sha256, stored.size
