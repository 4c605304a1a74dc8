"""The record of a set-up: which files it made or put text into, and where, so that all of it can be
taken back. One for each project, and one for the home folder, among the user's own state.

It is written before the first file is, and removed after the last one has been taken back: whatever
ends the program in between, what there is can be told from it. It holds digests and places, and no
text of anybody's.
"""

import contextlib
import hashlib
import json
import os
import shutil
from collections.abc import Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.folders import sync_folder

from .facts import Part
from .files import folders_missing, leftover, put

_FORM = 1


class Piece(NamedTuple):
    """A piece that was written: its digest, how many containers were made for it, and what it
    takes to find it again, whatever `agents.toml` says by then."""

    digest: str
    made: int
    part: str
    form: str
    at: tuple[str, ...]
    mark: str
    comments: bool
    fresh: Mapping[str, Any]

    def as_part(self) -> Part:
        """The piece as one that can be looked for and taken out."""
        return Part(
            self.part, self.form, {}, None, None, self.at, self.mark, self.comments, self.fresh
        )


def piece_of(part: Part, digest: str, made: int) -> Piece:
    """A piece as it is remembered."""
    return Piece(digest, made, part.part, part.form, part.at, part.mark, part.comments, part.fresh)


class Kept(NamedTuple):
    """What was done to a file. `before` and `after` are digests of the whole text; `before` is None
    where there was no file, which is then `made`."""

    agents: tuple[str, ...]
    before: str | None
    after: str
    made: bool
    spans: tuple[tuple[int, int], ...]
    pieces: Mapping[str, Piece]


class Record(NamedTuple):
    """`files` by their real paths; `folders` that were made for them, the outer ones first; `own`
    are those that were made for the record itself."""

    files: Mapping[str, Kept]
    folders: tuple[str, ...] = ()
    own: tuple[str, ...] = ()


def record_path(scope: str, root: str, home: str) -> str:
    """Where the record of a project, or of the home folder, is kept."""
    state = os.environ.get("XDG_STATE_HOME")
    if not state or not os.path.isabs(state):
        state = os.path.join(home, ".local", "state")
    name = hashlib.sha256(os.fsencode(f"{scope}\0{root}")).hexdigest()[:20]
    return os.path.join(os.path.realpath(state), "inbox", "setup", f"{name}.json")


def load(path: str) -> Record:
    """The record, an empty one where there is none. Errors: `corrupt`, `read_only`, `io_error`."""
    try:
        with open(path, encoding="utf-8") as file:
            data = json.load(file)
        if data["form"] != _FORM:
            raise ValueError("another form")
        files = {name: _kept(each) for name, each in data["files"].items()}
        return Record(files, tuple(data["folders"]), tuple(data["own"]))
    except FileNotFoundError:
        return Record({})
    except OSError as error:
        code = "read_only" if isinstance(error, PermissionError) else "io_error"
        raise InboxOrchError(
            code,
            f"cannot read {path}, the record of the set-up: {error.strerror}",
            hint="nothing was changed; make it readable, then repeat the command",
            details={"path": path},
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InboxOrchError(
            "corrupt",
            f"{path}, the record of the set-up, cannot be understood",
            hint="remove it; what was set up has to be removed by hand then",
            details={"path": path},
        ) from error


def save(path: str, record: Record) -> Record:
    """Write the record, and return it as it is now. Folders that are missing appear together with
    it. Raises OSError."""
    folder = os.path.dirname(path)
    own = folders_missing(folder)
    record = record._replace(own=(*record.own, *own))
    data = _as_json(record)
    if not own:
        put(path, data, 0o600)
        return record
    outermost, aside = own[0], leftover(own[0])
    inner = aside + folder[len(outermost) :]
    try:
        os.makedirs(inner, 0o700, exist_ok=True)
        put(os.path.join(inner, os.path.basename(path)), data, 0o600)
        os.rename(aside, outermost)
    except BaseException:
        shutil.rmtree(aside, ignore_errors=True)
        raise
    # A folder that may only be passed through cannot be synced.
    with contextlib.suppress(PermissionError):
        sync_folder(os.path.dirname(outermost))
    return record


def forget(path: str, record: Record) -> None:
    """Remove the record, and the folders that were made for it, if nothing else is in them; all at
    once, if nothing else is in any of them. Raises OSError."""
    _bequeath(path, record)
    if record.own and _only(record.own, path):
        aside = leftover(record.own[0])
        os.rename(record.own[0], aside)
        shutil.rmtree(aside)
        return
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
    remove_folders(record.own)


def _bequeath(path: str, record: Record) -> None:
    """Let the record of another place know of the folders that were made for this one, so that
    the last one to go removes them."""
    folder = os.path.dirname(path)
    others = (each for each in sorted(os.listdir(folder)) if os.path.join(folder, each) != path)
    heir = next((os.path.join(folder, each) for each in others if each.endswith(".json")), None)
    if record.own and heir is not None:
        own = dict.fromkeys([*record.own, *load(heir).own])
        save(heir, load(heir)._replace(own=tuple(own)))


def remove_folders(folders: tuple[str, ...]) -> None:
    """Remove those that are empty, the inner ones first."""
    for folder in sorted(folders, key=len, reverse=True):
        with contextlib.suppress(OSError):
            os.rmdir(folder)


def sweep(path: str) -> None:
    """Remove what a program that was ended has left of the folders of a record."""
    folder = os.path.dirname(path)
    while folder != os.path.dirname(folder):
        aside = leftover(folder)
        if os.path.isdir(aside) and not os.path.islink(aside):
            shutil.rmtree(aside, ignore_errors=True)
        folder = os.path.dirname(folder)
    with contextlib.suppress(OSError):
        os.unlink(leftover(path))


def _only(folders: tuple[str, ...], path: str) -> bool:
    """Whether each folder holds the next one alone, and the last one the record."""
    chain = [*folders[1:], path]
    return folders[-1] == os.path.dirname(path) and all(
        os.path.isdir(folder) and os.listdir(folder) == [os.path.basename(inner)]
        for folder, inner in zip(folders, chain, strict=True)
    )


def _kept(data: Any) -> Kept:
    return Kept(
        tuple(data["agents"]),
        data["before"],
        data["after"],
        data["made"],
        tuple((int(where), int(length)) for where, length in data["spans"]),
        {name: _piece(each) for name, each in data["pieces"].items()},
    )


def _piece(data: Any) -> Piece:
    return Piece(**{**data, "at": tuple(data["at"])})


def _as_json(record: Record) -> bytes:
    files = {
        name: {
            **each._asdict(),
            "pieces": {piece: told._asdict() for piece, told in each.pieces.items()},
        }
        for name, each in record.files.items()
    }
    data = {
        "form": _FORM,
        "files": files,
        "folders": record.folders,
        "own": record.own,
    }
    return json.dumps(data, indent=1).encode() + b"\n"
