"""What a word stands for: a run, a task, an attempt or a thread. Only looks, and never guesses: of
several things that it may name none is taken."""

from collections.abc import Sequence
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.ids import MOST_CANDIDATES, beginning_of_id, printable, quoted
from inbox_orch.shared.shell.nearest import did_you_mean
from inbox_orch.shared.store.engine import Session

from ..attempts import rows as attempts
from ..cleanup import restore
from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Run
from . import name_rows

KINDS = ("run", "task", "attempt", "thread")
_WHOLE_ID = 26


class Thing(NamedTuple):
    """Something that a word stands for: its kind, its id, and how people name it."""

    kind: str
    id: str
    name: str


def named(desk: Desk, word: str, run_name: str | None) -> Thing:
    """The one thing with this name, key or id, else the only one whose name, key or id begins so.
    Keys of tasks are those of the run that is named, else of the only one open, else of the last.

    Errors: `not_found`; `usage`, which lists them, where there are several.
    """
    if "/" in word:
        _, listed = restore.attempt_named(desk, word, run_name, shows=True)
        return Thing("attempt", listed.attempt.id, listed.name)
    run, no_run = _run_of_keys(desk, run_name)
    with desk.database.snapshot() as snapshot:
        found = _exactly(snapshot, word, run) or _beginning(snapshot, word, run)
    whole = any(thing.id == word.upper() for thing in found)
    if not whole and (thread := _thread(desk, word)) is not None:
        found.append(thread)
    if len(found) == 1:
        return found[0]
    if found:
        raise _several(word, found)
    raise no_run or not_found(" or ".join(KINDS), printable(word), hint=_hint(desk, word, run))


def run_of_task(desk: Desk, task_id: str) -> Run:
    """The run that a task belongs to."""
    with desk.database.snapshot() as snapshot:
        run = runs.get(snapshot, tasks.by_id(snapshot, task_id).run_id)
    assert run is not None, "runs are never removed"
    return run


def _run_of_keys(desk: Desk, run_name: str | None) -> tuple[Run | None, InboxOrchError | None]:
    """The run in which keys are looked for, or why there is none. One that is named has to be."""
    try:
        return desk.run(run_name, shows=True), None
    except InboxOrchError as error:
        if run_name is not None:
            raise
        return None, error if error.code == "usage" else None


def _exactly(tx: Session, word: str, run: Run | None) -> list[Thing]:
    found = []
    if (of_name := runs.get(tx, word)) is not None:
        found.append(Thing("run", of_name.id, of_name.name))
    in_run = None if run is None else tasks.get(tx, run.id, word)
    if (task := in_run or tasks.anywhere(tx, word.upper())) is not None:
        found.append(Thing("task", task.id, task.key))
    if (attempt := attempts.get(tx, word.upper())) is not None:
        key = tasks.by_id(tx, attempt.task_id).key
        found.append(Thing("attempt", attempt.id, f"{key}/{attempt.number}"))
    return found


def _beginning(tx: Session, word: str, run: Run | None) -> list[Thing]:
    most, beginning = MOST_CANDIDATES + 1, beginning_of_id(word)
    found = [Thing("run", r.id, r.name) for r in runs.beginning(tx, word, beginning, most)]
    if run is not None:
        keys = [key for key, _, _ in name_rows.tasks(tx, run.id, word, most)]
        of_run = (tasks.get(tx, run.id, key) for key in keys)
        found += [Thing("task", task.id, task.key) for task in of_run if task is not None]
    if beginning is not None:
        found += [Thing("task", t.id, t.key) for t in tasks.beginning(tx, beginning, most)]
        begun = attempts.beginning(tx, beginning, most)
        found += [Thing("attempt", a.id, a.id) for a in begun]
    return list(dict.fromkeys(found))


def _thread(desk: Desk, word: str) -> Thing | None:
    """The thread of this id, or the only one that the caller may see and that begins so."""
    if beginning_of_id(word) is None and len(word) != _WHOLE_ID:
        return None
    try:
        thread = desk.bus.show(word, agent=desk.caller or desk.bus.agent).thread
    except InboxOrchError as error:
        if error.code == "not_found":
            return None
        raise
    return Thing("thread", thread.id, thread.id)


def _several(word: str, found: Sequence[Thing]) -> InboxOrchError:
    shown = ", ".join(f"{thing.kind} {thing.name}" for thing in found[:MOST_CANDIDATES])
    more = ", …" if len(found) > MOST_CANDIDATES else ""
    return usage(
        f"{quoted(word)} may be several things: {shown}{more}",
        hint="give more of it, or `orch run show`, `task show` or `attempt show`",
        things=[thing._asdict() for thing in found[:MOST_CANDIDATES]],
    )


def _hint(desk: Desk, word: str, run: Run | None) -> str:
    otherwise = "`orch run list --all`, `orch task list` and `inbox list` show what there is"
    with desk.database.snapshot() as snapshot:
        known = [each.name for each in runs.every(snapshot)]
        known += [] if run is None else tasks.ids_by_key(snapshot, run.id)
    return did_you_mean(word[:200], known, otherwise)
