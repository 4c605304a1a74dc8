"""Setting an agent up, taking that back, and looking how it stands.

All files are read and judged before the first is written. Then the record is written, then one file
after the other, each in one step. What fails in between is taken back; what is ended in between is
told by the record, and either way of going on mends it.
"""

import contextlib
import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import printable

from .facts import PROJECT, USER, Agent
from .files import (
    failure,
    folders_missing,
    leftover,
    put,
    refuse_read_only,
    refuse_written_since,
    take_away,
)
from .plan import Change, File, Place, files_kept, files_of, installed, taken_out
from .record import Record, forget, load, record_path, remove_folders, save, sweep
from .states import IN_PLACE

_STAYS = "what is in place stays: another agent needs it, or it was not written from here"


class Item(NamedTuple):
    """What a file has of a part of the set-up, and whether that was written just now."""

    path: str
    part: str
    state: str
    written: bool


class Result(NamedTuple):
    """How a set-up stands now; `notes` are about what was just done, in words."""

    agent: Agent
    place: Place
    items: tuple[Item, ...]
    notes: tuple[str, ...] = ()

    @property
    def complete(self) -> bool:
        """Whether everything is in place."""
        return all(item.state == IN_PLACE for item in self.items)

    def as_json(self) -> dict[str, Any]:
        return {
            "agent": self.agent.name,
            "scope": self.place.scope,
            "root": printable(self.place.root, 4096),
            "items": [each._asdict() for each in self.items],
            "notes": list(self.notes),
            "left_out": list(self.agent.left_out),
            "truncated": False,
            "next_cursor": None,
        }


def place_of(scope: str) -> Place:
    """Where it is set up: the top of the repository around the working directory, else that; or the
    home folder. Error `usage`."""
    home = os.environ.get("HOME", "")
    if not os.path.isabs(home) or not os.path.isdir(home):
        raise usage("HOME names no folder", hint="set HOME to your home folder")
    home = os.path.realpath(home)
    if scope == USER:
        return Place(scope, home, home)
    try:
        root = _top(os.path.realpath(os.getcwd()))
    except FileNotFoundError as error:
        raise usage("the working directory is gone", hint="go to the project") from error
    if root == home:
        raise usage(
            "this is your home folder, and no project", hint="give --user, or go to a project"
        )
    return Place(PROJECT, root, home)


def check(agent: Agent, place: Place) -> Result:
    """How it stands; nothing is changed. Errors: those of reading the files."""
    record = load(_record(place))
    result = _result(agent, place, files_of(agent, place, record), {})
    return result._replace(notes=agent.notes)


def install(agent: Agent, place: Place) -> Result:
    """Set the agent up. Errors: those of the files (nothing is changed then), `busy`."""
    with _alone(place):
        record = load(_record(place))
        files = files_of(agent, place, record)
        changes = [each for each in (installed(file, agent.name) for file in files) if each]
        folders = [f for each in changes for f in folders_missing(_folder(each))]
        kept = {**record.files, **{c.file.key: c.kept for c in changes if c.kept}}
        planned = record._replace(
            files=kept, folders=tuple(dict.fromkeys([*record.folders, *folders]))
        )
        _carry_out(place, changes, record, planned)
    return _after(agent, place, changes)._replace(notes=agent.notes)


def undo(agent: Agent, place: Place) -> Result:
    """Take back what was set up from here; what others wrote stays. Errors: those of `install`."""
    with _alone(place):
        record = load(_record(place))
        changes = [taken_out(file, agent.name) for file in files_kept(agent.name, place, record)]
        _carry_out(place, changes, record, record)
        _let_go(place, changes, record)
    result = _after(agent, place, changes)
    stays = any(item.state == IN_PLACE for item in result.items)
    return result._replace(notes=(_STAYS,) if stays else ())


def _carry_out(place: Place, changes: Sequence[Change], before: Record, planned: Record) -> None:
    """Write the record, then the files; all of it is taken back when one of them fails."""
    for change in changes:
        if change.text != change.file.target.text:
            refuse_read_only(change.file.target)
    written: list[Change] = []
    try:
        if planned != before:
            save(_record(place), planned)
        for change in changes:
            refuse_written_since(change.file.target)
            written.append(change)
            _write(change.file, change.text)
    except (OSError, InboxOrchError) as error:
        whole = _take_back(place, written, before, planned)
        named = failure(error) if isinstance(error, OSError) else error
        if not whole:
            named.hint = "not all could be taken back: repeat the command, or give --undo"
        raise named from error


def _take_back(place: Place, written: Sequence[Change], before: Record, planned: Record) -> bool:
    """Make the files what they were; whether all are. One that cannot be is told by the record,
    which stays then."""
    whole = True
    for change in reversed(written):
        try:
            _write(change.file, change.file.target.text)
        except OSError:
            whole = False
    if whole and planned != before:
        remove_folders(tuple(f for f in planned.folders if f not in before.folders))
        with contextlib.suppress(OSError):
            _remember(place, before)
    return whole


def _let_go(place: Place, changes: Sequence[Change], record: Record) -> None:
    """Forget what has been taken back, and remove folders that were made for it."""
    gone = {change.file.key for change in changes if change.kept is None}
    handed = {change.file.key: change.kept for change in changes if change.kept}
    files = {path: each for path, each in record.files.items() if path not in gone}
    remove_folders(record.folders)
    folders = tuple(each for each in record.folders if os.path.isdir(each))
    try:
        _remember(place, record._replace(files={**files, **handed}, folders=folders))
    except OSError as error:
        raise failure(error) from error


def _remember(place: Place, record: Record) -> None:
    path = _record(place)
    if record.files:
        save(path, record)
    elif os.path.exists(path):
        forget(path, load(path))


def _write(file: File, text: str | None) -> None:
    """Make a file have this text, unless it has."""
    target = file.target
    if text is None:
        take_away(target.real)
        return
    with contextlib.suppress(FileNotFoundError), open(target.real, "rb") as now:
        if now.read() == text.encode():
            return
    for folder in folders_missing(os.path.dirname(target.real)):
        os.mkdir(folder)
    put(target.real, text.encode(), target.mode)


def _after(agent: Agent, place: Place, changes: Iterable[Change]) -> Result:
    """How it stands after changes."""
    record = load(_record(place))
    files = files_of(agent, place, record)
    before = {change.file.target.real: change.file for change in changes}
    return _result(agent, place, files, before)


def _result(agent: Agent, place: Place, files: Iterable[File], before: dict[str, File]) -> Result:
    items: dict[tuple[str, str], Item] = {}
    for file in files:
        earlier = before.get(file.target.real)
        changed = earlier is not None and earlier.target.text != file.target.text
        path = printable(file.target.path, 4096)
        for part, state in zip(file.parts, file.states, strict=True):
            item = Item(path, part.part, state, changed)
            known = items.get((path, part.part))
            # One line for all hooks of a file: it says what is wrong with any of them.
            if known is None or known.state == IN_PLACE:
                items[path, part.part] = item
    return Result(agent, place, tuple(items.values()))


@contextlib.contextmanager
def _alone(place: Place) -> Iterator[None]:
    """Nobody else sets up here meanwhile; what was left of one that was ended is removed."""
    try:
        descriptor = os.open(place.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise failure(error) from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InboxOrchError(
                "busy",
                f"another `inbox setup` is at work in {printable(place.root, 300)}",
                hint="nothing was changed; repeat the command when it is through",
            ) from error
        path = _record(place)
        sweep(path)
        for real in load(path).files:
            with contextlib.suppress(OSError):
                os.unlink(leftover(real))
        yield
    finally:
        os.close(descriptor)


def _record(place: Place) -> str:
    return record_path(place.scope, place.root, place.home)


def _folder(change: Change) -> str:
    return os.path.dirname(change.file.target.real)


def _top(folder: str) -> str:
    """The top of the repository that the folder is in; the folder itself outside of one."""
    at = folder
    while not os.path.lexists(os.path.join(at, ".git")):
        if at == os.path.dirname(at):
            return folder
        at = os.path.dirname(at)
    return at
