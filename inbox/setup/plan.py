"""What a set-up comes to, worked out before anything is changed: each file with the pieces that
belong into it, how they stand, and the text that is to be there.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Mapping
from types import ModuleType
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import printable

from . import blocks, members, whole
from .edits import Edited, UnfitError, taken_back
from .facts import USER, Agent, Part
from .files import Target, look
from .record import Kept, Record, piece_of
from .states import CHANGED, IN_PLACE, OLDER, Found, digest, state_of

_FORMS: Mapping[str, ModuleType] = {
    "file": whole,
    "block": blocks,
    "table": blocks,
    "member": members,
    "item": members,
}


class Place(NamedTuple):
    """Where it is set up: for a `project` or a `user`; `root` is the top of the one, or the home
    folder of the other, behind all links."""

    scope: str
    root: str
    home: str


class File(NamedTuple):
    """A file with the pieces that belong into it, and how each of them stands. `key` is what it
    is called in the record."""

    key: str
    target: Target
    parts: tuple[Part, ...]
    states: tuple[str, ...]
    kept: Kept | None


class Change(NamedTuple):
    """What a file is to become: `text` is None for no file; `kept` is what is remembered of it."""

    file: File
    text: str | None
    kept: Kept | None


def files_of(agent: Agent, place: Place, record: Record) -> tuple[File, ...]:
    """The files of an agent as they are, in the order of its parts. Errors: those of `look`, and
    `usage` for a file that is not what the agent reads."""
    found: dict[str, tuple[Target, list[Part]]] = {}
    for part in agent.parts:
        if place.scope in part.paths:
            path = _path(agent, part, place)
            within = None if place.scope == USER else place.root
            target = look(path, within=within)
            found.setdefault(target.real, (target, []))[1].append(part)
    return tuple(
        _file(target, tuple(parts), record.files.get(real))
        for real, (target, parts) in found.items()
    )


def files_kept(agent: str, place: Place, record: Record) -> tuple[File, ...]:
    """The files that were written for an agent, as they are. Errors: those of `look`."""
    within = None if place.scope == USER else place.root
    return tuple(
        File(path, look(path, within=within), (), (), kept)
        for path, kept in record.files.items()
        if agent in kept.agents
    )


def installed(file: File, agent: str) -> Change | None:
    """The file with all pieces in it; None when there is nothing to do. Error `file_exists` for a
    piece that somebody has changed."""
    if CHANGED in file.states:
        changed = [part for part, state in _pairs(file) if state == CHANGED]
        raise _changed(file, changed)
    kept = file.kept
    if set(file.states) == {IN_PLACE}:
        if kept is None or agent in kept.agents:
            return None
        shared = kept._replace(agents=(*kept.agents, agent))
        return Change(file, file.target.text, shared)
    base = _without_ours(file)
    edited, pieces = Edited(base or ""), {}
    for part in file.parts:
        with _about(file.target):
            form = _FORMS[part.form]
            if form.found(edited.text, part) is None:
                edited, made = form.add(edited, part)
                pieces[part.id] = piece_of(part, form.wanted(part), made)
    agents = dict.fromkeys([*(kept.agents if kept else ()), agent])
    before = None if base is None else digest(base)
    made_file = base is None or (kept is not None and kept.made)
    after = digest(edited.text)
    now = Kept(tuple(agents), before, after, made_file, edited.spans, pieces)
    return Change(file, edited.text, now)


def taken_out(file: File, agent: str) -> Change:
    """The file without the pieces that are remembered, unless other agents need them. Error
    `file_exists` for a piece that somebody has changed."""
    kept = file.kept
    assert kept is not None
    others = tuple(each for each in kept.agents if each != agent)
    if others:
        return Change(file, file.target.text, kept._replace(agents=others))
    return Change(file, _without_ours(file), None)


def _file(target: Target, parts: tuple[Part, ...], kept: Kept | None) -> File:
    states = []
    for part in parts:
        piece = kept.pieces.get(part.id) if kept is not None else None
        with _about(target):
            wanted = _FORMS[part.form].wanted(part)
        remembered = None if piece is None else piece.digest
        states.append(state_of(_found(target, part), wanted, remembered))
    return File(target.real, target, parts, tuple(states), kept)


def _found(target: Target, part: Part) -> Found | None:
    if target.text is None:
        return None
    with _about(target):
        found: Found | None = _FORMS[part.form].found(target.text, part)
        return found


def _without_ours(file: File) -> str | None:
    """The text without the pieces that are remembered, or say themselves that nobody has touched
    them; None where there was no file before them. As it was to the byte, if nobody else has
    written to it since. Error `file_exists`."""
    text, kept = file.target.text, file.kept
    if text is None:
        return None
    if kept is not None and digest(text) == kept.after:
        back = taken_back(text, kept.spans)
        if kept.made and not back:
            return None
        if digest(back) == kept.before:
            return back
    for part, made in reversed(_ours(file)):
        with _about(file.target):
            text = _FORMS[part.form].remove(text, part, made)
    parts = [piece.as_part() for piece in kept.pieces.values()] if kept is not None else []
    with _about(file.target):
        blank = all(_FORMS[part.form].is_blank(text, part) for part in parts)
    return None if kept is not None and kept.made and blank else text


def _ours(file: File) -> list[tuple[Part, int]]:
    """The pieces that may be taken out of the file, and what was made for each."""
    pieces = file.kept.pieces if file.kept is not None else {}
    ours = []
    for piece in pieces.values():
        found = _found(file.target, piece.as_part())
        if found is not None and not found.untouched and found.digest != piece.digest:
            raise _changed(file, [piece.as_part()])
        if found is not None:
            ours.append((piece.as_part(), piece.made))
    older = [part for part, state in _pairs(file) if state == OLDER and part.id not in pieces]
    return ours + [(part, 0) for part in older]


def _path(agent: Agent, part: Part, place: Place) -> str:
    paths = [_moved(agent, place, path) for path in part.paths[place.scope]]
    return next((path for path in paths if os.path.lexists(path)), paths[0])


def _moved(agent: Agent, place: Place, path: str) -> str:
    """The path of a file, in the folder that a variable names instead of the usual one."""
    for folder, variable in agent.moved.items():
        elsewhere = os.environ.get(variable)
        if place.scope == USER and elsewhere and path.startswith(f"{folder}/"):
            return os.path.join(os.path.abspath(elsewhere), path[len(folder) + 1 :])
    return os.path.join(place.root, path)


@contextlib.contextmanager
def _about(target: Target) -> Iterator[None]:
    """Errors of the forms, with the name of the file that they are about."""
    try:
        yield
    except UnfitError as error:
        raise usage(
            f"{printable(target.path, 300)} {error}",
            hint="nothing was changed; mend the file, then repeat the command",
        ) from error


def _changed(file: File, changed: Iterable[Part]) -> InboxOrchError:
    parts = sorted({part.part for part in changed})
    return InboxOrchError(
        "file_exists",
        f"{printable(file.target.path, 300)} has {' and '.join(parts)} of inbox that another has "
        "written or changed",
        hint="nothing was changed; take it out of the file by hand, then repeat the command",
        details={"path": file.target.path, "parts": parts},
    )


def _pairs(file: File) -> Iterable[tuple[Part, str]]:
    return zip(file.parts, file.states, strict=True)
