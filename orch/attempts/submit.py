"""`patch submit`: what somebody has written without having been sent the task, as an attempt at it
that needs no worker. From then on it is an attempt as any other.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from ..git.commands import output_of
from ..git.unfit import NotApplied
from ..patches import given as handing
from ..patches import hand_in, ledger
from ..patches import rows as patch_rows
from ..patches.given import Given, Refused
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from . import dispatch, fold, verify
from . import rows as attempts
from .bring_in import NAMES
from .choosing import Chosen
from .rows import Text

_HINTS = {
    "patch_format": "hand in what `git diff` prints, or edits as JSON, and nothing else",
    "patch_does_not_apply": "make it anew on the commit that the attempt starts from",
    "edit_not_found": "`old` is what the file has, byte for byte",
    "edit_ambiguous": "take in as many lines as make `old` the only one",
}


class Submitted(NamedTuple):
    """What became of it so far: the task and the attempt, the state of its patch (None where
    nothing is recorded of the run), and whether an earlier call with the same key had done it."""

    task: Task
    attempt: Attempt
    patch: str | None
    state: str | None
    replayed: bool | None

    def as_json(self) -> dict[str, Any]:
        shown = {} if self.replayed is None else {"replayed": self.replayed}
        facts = {"patch": self.patch, "patch_state": self.state}
        return {"task": self.task.as_json(), "attempt": self.attempt.as_json(), **facts, **shown}


def refusal(refused: NotApplied | Refused) -> InboxOrchError:
    """The error of a text that fits nothing."""
    code = refused.code if isinstance(refused, NotApplied) else "patch_format"
    return InboxOrchError(code, str(refused), hint=_HINTS[code])


def read(content: bytes) -> Given:
    """What a file has. Error `patch_format`."""
    try:
        return handing.of_file(content)
    except Refused as refused:
        raise refusal(refused) from refused


def submit(
    desk: Desk,
    run: Run,
    task_name: str,
    content: bytes,
    *,
    replaces: str | None = None,
    key: str | None = None,
    within: str | None = None,
) -> Submitted:
    """Hand in a diff, or edits as JSON, for a task, as an attempt of its own.

    A text that fits nothing is refused before anything is made. Checks are run by the next leader.
    Errors: `patch_format`, `patch_does_not_apply`, `edit_not_found`, `edit_ambiguous`, `not_found`
    (the task, the patch), `invalid_state` (the task cannot be begun, or goes by a blueprint),
    `live_attempt`, `key_conflict`, those of `dispatch`, and of git.
    """
    given = read(content)
    with desk.database.snapshot() as snapshot:
        task = desk.task(snapshot, run, task_name)
        instead = None if replaces is None else ledger.named(snapshot, run, replaces)
    if instead is not None:
        _require_of_task(desk, task, instead.attempt_id, str(replaces))
    _require_plain(task)
    stored = desk.bus.artifacts.add_bytes(NAMES[given.way], given.raw)
    author = desk.actor(run)
    text = Text(*stored, given.way, author, None if instead is None else instead.id)
    handed = dispatch.HandedIn(text, lambda chosen: _require_fit(desk, run, given, chosen))
    try:
        # What is not committed in the main working tree is, more often than not, what is handed in.
        done = dispatch.dispatch(
            desk,
            run,
            task_names=[task.key],
            mailbox=author,
            allow_dirty=True,
            key=key,
            within=within,
            handed=handed,
        )
    except InboxOrchError as error:
        if error.code == "invalid_state":
            _refuse_live(desk, task)
        raise
    attempt_id = done.items[0]["id"]
    fold.fold(desk, run)
    verify.verify(desk, run)
    return _as_it_is(desk, task, attempt_id, done.replayed)


def _require_of_task(desk: Desk, task: Task, attempt_id: str, name: str) -> None:
    with desk.database.snapshot() as snapshot:
        other = attempts.get(snapshot, attempt_id)
    if other is None or other.task_id != task.id:
        raise InboxOrchError(
            "invalid_state",
            f"patch {name} is not one of task {task.key}",
            hint=f"`orch patch list {task.key}` shows those that are",
            details={"task": task.key, "patch": name},
        )


def _require_plain(task: Task) -> None:
    if not task.worktree or task.blueprint is not None:
        why = "has no worktree" if not task.worktree else "goes by a blueprint"
        raise InboxOrchError(
            "invalid_state",
            f"task {task.key} {why}: nothing can be handed in for it from outside",
            hint="`orch task add` adds one that it can be handed in for",
            details={"task": task.id, "key": task.key},
        )


def _refuse_live(desk: Desk, task: Task) -> None:
    """Error `live_attempt` where somebody is at work on the task."""
    with desk.database.snapshot() as snapshot:
        live = attempts.live_of_task(snapshot, task.id)
    if live is not None:
        raise InboxOrchError(
            "live_attempt",
            f"attempt {live.number} of task {task.key} is {live.state}",
            hint=f"`orch cancel {task.key}` ends it first",
            details={"task": task.id, "key": task.key, "attempt": live.id},
        )


def _require_fit(desk: Desk, run: Run, given: Given, chosen: Sequence[Chosen]) -> None:
    for each in chosen:
        if each.base is None:
            continue
        repository = desk.repository(run)
        tree = output_of(repository.path, "rev-parse", f"{each.base.commit}^{{tree}}")
        try:
            hand_in.made(repository, tree, given)
        except NotApplied as refused:
            raise refusal(refused) from refused


def _as_it_is(desk: Desk, task: Task, attempt_id: str, replayed: bool | None) -> Submitted:
    with desk.database.snapshot() as snapshot:
        attempt = attempts.get(snapshot, attempt_id)
        assert attempt is not None
        present = tasks.by_id(snapshot, task.id)
        of_it = patch_rows.of_attempt(snapshot, attempt_id)
        patch = of_it[-1] if of_it else None
        state = None if patch is None else ledger.state(snapshot, patch, attempt)
    name = None if patch is None else f"{present.key}/{attempt.number}/{patch.number}"
    return Submitted(present, attempt, name, state, replayed)
