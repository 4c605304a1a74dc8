"""Opening attempts: the choice in one transaction, then git, then the thread.

What is chosen is written down as an intent before git is touched, so that the next process after a
crash can finish it.
"""

import json
import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.digests import digest_of
from inbox_orch.shared.errors import InboxOrchError, not_found
from inbox_orch.shared.ids import check_key, check_name, new_id
from inbox_orch.shared.store import kept_files, requests
from inbox_orch.shared.store.artifacts import Stored
from inbox_orch.shared.store.engine import Transaction

from ..journal import finishing
from ..journal import rows as journal_rows
from ..runs import run_rows as runs
from ..runs import states
from ..runs.config import config_of
from ..runs.desk import Desk, keep_base
from ..runs.model import Attempt, Run, Task
from ..runs.readiness import Heads, Picture, Slots, taken_by
from . import choosing, fold, moving, provision, verify
from . import named as named_tasks
from . import rows as attempts
from .choosing import Asked, Chosen, HeldBack
from .rows import Details, Text, details_of_new

_MOST_CHOICES = 10


class Repeated(NamedTuple):
    """The attempts that an earlier call with the same key has made."""

    attempt_ids: list[str]


class HandedIn(NamedTuple):
    """What was handed in without a worker; `require_fit` raises where it fits no base."""

    text: Text
    require_fit: Callable[[Sequence[Chosen]], None]


class Dispatched(NamedTuple):
    """What a dispatch did, attempt by attempt, with everything that a worker needs; whom it has
    left waiting for a slot; and which attempts of a process that is gone it has finished."""

    items: tuple[dict[str, Any], ...]
    dry_run: bool
    replayed: bool | None
    conflicts: tuple[dict[str, Any], ...]
    held_back: HeldBack = HeldBack()
    taken_over: tuple[dict[str, Any], ...] = ()

    @property
    def degraded(self) -> bool:
        """Whether some attempt could not be provisioned."""
        return bool(self.failed)

    @property
    def failed(self) -> list[dict[str, Any]]:
        """Those."""
        every = (*self.items, *self.taken_over)
        return [item for item in every if item["state"] == "provision_failed"]

    def as_json(self) -> dict[str, Any]:
        shape: dict[str, Any] = {
            "items": list(self.items),
            "truncated": False,
            "next_cursor": None,
            "dry_run": self.dry_run,
            "base_conflicts": list(self.conflicts),
            "taken_over": list(self.taken_over),
            "held_back": {
                "tasks": self.held_back.tasks,
                "limits": list(self.held_back.limits),
            },
        }
        if self.replayed is not None:
            shape["replayed"] = self.replayed
        return shape


def dispatch(
    desk: Desk,
    run: Run,
    *,
    task_names: Sequence[str] = (),
    mailbox: str | None = None,
    base: str | None = None,
    allow_dirty: bool = False,
    dry_run: bool = False,
    key: str | None = None,
    within: str | None = None,
    harvest: bool | None = None,
    unsaid_harvest: bool | None = None,
    handed: "HandedIn | None" = None,
) -> Dispatched:
    """One attempt for each ready task, or for those named, in the order of urgency.

    `mailbox` overrides the tasks' own; `base` is the commit for all of them, as the folder
    `within` (the main working tree) understands it; it also overcomes a `base_conflict`. With
    `key` a repeat finishes what the first call chose, and chooses nothing new; a dry run
    neither repeats anything nor stores its key. `harvest` is whether what the workers leave
    uncommitted is committed for them, by default as each task says; `unsaid_harvest` whether that
    of tasks that say nothing is, by default as the run's config says. `handed` is what was
    handed in for the one task named, which then needs no worker.
    Errors: `usage`, `not_found`, `invalid_state` (a named task is not ready, the run is not
    open), `dep_not_in_base`, `base_conflict` (of a named task), `dirty_repository`,
    `key_conflict`, and those of git.
    """
    if mailbox is not None:
        check_name(mailbox, "mailbox")
    if key is not None:
        check_key(key)
    request = [run.id, sorted(task_names), mailbox, base, allow_dirty]
    text = None if handed is None else handed.text
    digest = "" if key is None else digest_of({"dispatch": request + _said(harvest, text)})
    otherwise = config_of(run).harvest if unsaid_harvest is None else unsaid_harvest
    names = tuple(dict.fromkeys(task_names))
    asked = Asked(names, mailbox, base, within, key, digest, harvest, otherwise, text)
    begin = _look(desk, run, asked, repeats=not dry_run)
    if begin.earlier is not None:
        return _finish_all(desk, run, begin.earlier)
    if run.state != "open":
        raise states.refuse("run", run.name, run.state, "dispatch")
    if base is not None:
        # Also when nothing is ready: a wrong base is not to pass for "nothing to do".
        desk.repository(run).commit_of(base, within)
    taken_over = _brought_up_to_date(desk, run, begin, asked, dry_run=dry_run)
    picture = None if asked.names else begin.picture
    if dry_run:
        return _foreseen(desk, run, asked, picture, allow_dirty=allow_dirty)
    for _ in range(_MOST_CHOICES):
        done = _once(desk, run, asked, picture, handed, allow_dirty=allow_dirty)
        if done is not None:
            return done._replace(taken_over=taken_over)
        picture = None
    raise InboxOrchError(
        "busy",
        f"run {run.name} changes faster than its attempts can be based on it",
        hint="try again; nothing was dispatched",
    )


def _foreseen(
    desk: Desk, run: Run, asked: Asked, picture: Picture | None, *, allow_dirty: bool
) -> Dispatched:
    """What a dispatch would do; nothing is stored."""
    chosen, conflicts = choosing.choose(desk, run, asked, store=False, unmoved=picture)
    choosing.refuse_dirty(desk, run, chosen, allow_dirty, asked.within)
    planned = tuple(_planned(c, run) for c in chosen)
    held_back = choosing.held_back(desk, run, asked, chosen)
    return Dispatched(planned, True, None, conflicts, held_back)


def _once(
    desk: Desk,
    run: Run,
    asked: Asked,
    picture: Picture | None,
    handed: "HandedIn | None",
    *,
    allow_dirty: bool,
) -> Dispatched | None:
    """Choose and hand out; None when what was chosen builds on has changed meanwhile."""
    chosen, conflicts = choosing.choose(desk, run, asked, store=True, unmoved=picture)
    if handed is not None:
        handed.require_fit(chosen)
    dirty = choosing.refuse_dirty(desk, run, chosen, allow_dirty, asked.within)
    allocated = _allocate(desk, run, chosen, dirty, asked)
    if allocated is None:
        return None
    done = _hand_out(desk, run, allocated, asked)
    held_back = choosing.held_back(desk, run, asked)
    return done._replace(conflicts=conflicts, held_back=held_back)


def _said(harvest: bool | None, text: Text | None) -> list[Any]:
    """What a key stands for besides: nothing more, where nothing more was said."""
    handed = [] if text is None else [text.sha256, text.replaces]
    return [*([] if harvest is None else [harvest]), *handed]


def _brought_up_to_date(
    desk: Desk, run: Run, begin: "_Begin", asked: Asked, *, dry_run: bool
) -> tuple[dict[str, Any], ...]:
    """What has happened to the attempts that live is carried over; returns those of a process that
    is gone, which are finished now."""
    whole = not (dry_run or asked.names)
    taken_over = _take_over_begun(desk, run, begin.live) if whole else ()
    if begin.picture is None:
        fold.fold(desk, run)
        verify.verify(desk, run)
    if not dry_run:
        keep_base(desk, run)
    return taken_over


# -- allocating --------------------------------------------------------------------------


def _allocate(
    desk: Desk,
    run: Run,
    chosen: Sequence[Chosen],
    dirty: tuple[str, ...],
    asked: Asked,
) -> list["_Made"] | Repeated | None:
    """Make the attempts in one transaction, with their intents; what another leader has
    dispatched meanwhile is left out, or refused if it was named.

    Returns what was made, or what an earlier call with this key has made; None when what they
    build on has changed, and a base has to be chosen anew.
    """
    actor = desk.actor(run)
    with desk.database.transaction() as tx:
        earlier = desk.replay(tx, "dispatch", actor, asked.key, asked.digest)
        if earlier is not None:
            return Repeated(_ids(earlier.data))
        present = runs.get(tx, run.id)
        assert present is not None
        if present.state != "open":
            raise states.refuse("run", run.name, present.state, "dispatch")
        picture = moving.picture_of(tx, present, tx.now.wall_ms)
        still = _still_to_be_made(tx, present, chosen, picture, asked)
        heads = Heads([s.task for s in picture.standings], picture.dependencies)
        if any(c.base is not None and c.base.heads != heads.basis(c.task) for c in still):
            return None
        made = [
            _Made(c.task, _allocated(desk, tx, run, c, dirty, _details(asked, c.task)))
            for c in still
        ]
        if asked.text is not None:
            _keep_text(tx, asked.text, made)
        if asked.key is not None:
            request = requests.Request("dispatch", actor, asked.key, asked.digest)
            response = json.dumps([each.attempt.id for each in made])
            requests.store(tx, request, response, tx.now.wall_ms)
        return made


def _keep_text(tx: Transaction, text: Text, made: Sequence["_Made"]) -> None:
    stored = Stored(text.name, text.sha256, text.size)
    for each in made:
        kept_files.keep(tx, stored, each.attempt.id, "handed_in", tx.now.wall_ms)


def _still_to_be_made(
    tx: Transaction, run: Run, chosen: Sequence[Chosen], picture: Picture, asked: Asked
) -> list[Chosen]:
    """Those that can start as the run stands now, and find a slot; the error when one that was
    named cannot."""
    slots = Slots(run, taken_by(attempts.live_of_run(tx, run.id)))
    there = [c for c in chosen if c.task.id in picture.by_id]
    if asked.names and len(there) < len(chosen):
        gone = next(c.task for c in chosen if c not in there)
        raise not_found("task", gone.key, hint="it has been removed just now")
    now = [_as_it_is_now(c, picture, asked) for c in there]
    base_given = asked.base is not None
    if asked.names:
        named = [c.task for c in now]
        named_tasks.require_ready(picture, named, base_given=base_given)
        named_tasks.require_slots(named, asked.mailbox, slots)
        return now
    can_start = [c for c in now if picture.of(c.task.id).may_start(base_given=base_given)]
    return [c for c in can_start if slots.take(c.mailbox)]


def allocate_one(
    desk: Desk, tx: Transaction, run: Run, chosen: Chosen, dirty: tuple[str, ...]
) -> str:
    """An attempt at a task that was read in this transaction, with its intent; its id."""
    return _allocated(desk, tx, run, chosen, dirty, None).id


def _details(asked: Asked, task: Task) -> str | None:
    """What is written down of an attempt from the beginning."""
    harvest = asked.harvests(task) or task.blueprint is not None
    text = asked.text is not None or task.hands_in == "text"
    if not (harvest or text):
        return None
    found = Details(harvest=harvest or None, hands_in_text=text or None, text=asked.text)
    return details_of_new(found)


def _allocated(
    desk: Desk,
    tx: Transaction,
    run: Run,
    chosen: Chosen,
    dirty: tuple[str, ...],
    details: str | None,
) -> Attempt:
    task = chosen.task
    number, attempt_id = task.attempts + 1, new_id()
    values: dict[str, Any] = {
        "id": attempt_id,
        "run_id": run.id,
        "task_id": task.id,
        "number": number,
        "state": "allocating",
        "mailbox": chosen.mailbox,
        "created_at": tx.now.wall_ms,
        "updated_at": tx.now.wall_ms,
    }
    if chosen.base is not None:
        assert run.worktree_root is not None
        values |= {
            "branch": run.branch_of(task.key, number),
            "worktree_path": os.path.join(run.worktree_root, run.folder_of(task.key, number)),
            "base_ref": chosen.base.ref,
            "base_commit": chosen.base.commit,
            "base_source": chosen.base.source,
            "dirty_paths": json.dumps(list(dirty)) if dirty else None,
            "details": details,
        }
    made = attempts.insert(tx, values)
    journal_rows.open_intent(
        tx,
        made,
        "dispatch",
        {"merged_base": chosen.base is not None and chosen.base.source == "merge"},
        owner=desk.database.owner(),
        now_ms=tx.now.wall_ms,
    )
    moving.record_attempt(desk, tx, run, made, "attempt_allocating", {"from": None})
    changes = {"attempts": number, "not_before": None}
    moving.move_task(desk, tx, run, task, moving.Move("active", "dispatch", changes), attempt=made)
    return made


# -- provisioning ------------------------------------------------------------------------


def _take_over_begun(desk: Desk, run: Run, live: Sequence[Attempt]) -> tuple[dict[str, Any], ...]:
    """Finish what a process that is gone had chosen: no other would hand it out, while
    it takes a slot and keeps its task from being ready."""
    begun = [attempt for attempt in live if attempt.state == "allocating"]
    if not begun:
        return ()
    finishing.finish_intents(desk, run)
    with desk.database.snapshot() as snapshot:
        present = [attempts.get(snapshot, a.id) for a in begun]
    finished = [a for a in present if a is not None and a.state != "allocating"]
    return tuple(provision.handed_out(desk, run, a) for a in finished)


class _Begin(NamedTuple):
    """A run at the beginning of a dispatch: what an earlier call with this key has chosen, which
    attempts live, and how it stands, if nothing can have happened that is not carried over yet."""

    earlier: list[str] | None
    live: list[Attempt]
    picture: Picture | None = None


def _look(desk: Desk, run: Run, asked: Asked, *, repeats: bool) -> _Begin:
    actor, key = desk.actor(run), asked.key if repeats else None
    with desk.database.snapshot() as snapshot:
        earlier = desk.find_replay(snapshot, "dispatch", actor, key, asked.digest)
        if earlier is not None:
            return _Begin(_ids(earlier.data), [])
        live = attempts.live_of_run(snapshot, run.id)
        present = runs.get(snapshot, run.id)
        if live or present is None or present.state == "cancelling":
            return _Begin(None, live)
        now_ms = desk.database.now().wall_ms
        return _Begin(None, live, moving.picture_of(snapshot, present, now_ms))


def _hand_out(desk: Desk, run: Run, made: "list[_Made] | Repeated", asked: Asked) -> Dispatched:
    """What was allocated just now, handed out."""
    if isinstance(made, Repeated):
        return _finish_all(desk, run, made.attempt_ids)
    items: list[dict[str, Any]] = []
    for number, (task, attempt) in enumerate(made):
        # Making the ones before may have taken minutes, after which this one is another's.
        if number == 0 or provision.may_carry_out(desk, run, attempt.id):
            attempt = provision.provision(desk, run, attempt)
            items.append(provision.shown_to_worker(desk, run, task, attempt))
        else:
            items += _finish_all(desk, run, [attempt.id]).items
    return Dispatched(tuple(items), False, None if asked.key is None else False, ())


def _finish_all(desk: Desk, run: Run, attempt_ids: Sequence[str]) -> Dispatched:
    """What an earlier call has chosen, handed out as far as that was not done yet."""
    items = []
    for attempt_id in attempt_ids:
        mine = provision.may_carry_out(desk, run, attempt_id)
        with desk.database.snapshot() as snapshot:
            attempt = attempts.get(snapshot, attempt_id)
        assert attempt is not None
        if attempt.state == "allocating" and mine:
            attempt = provision.provision(desk, run, attempt)
        items.append(provision.handed_out(desk, run, attempt))
    return Dispatched(tuple(items), False, True, ())


class _Made(NamedTuple):
    """An attempt that was allocated, and its task."""

    task: Task
    attempt: Attempt


def _as_it_is_now(chosen: Chosen, picture: Picture, asked: Asked) -> Chosen:
    """The mailbox of a task may have been changed since it was chosen."""
    task = picture.of(chosen.task.id).task
    return chosen._replace(task=task, mailbox=asked.mailbox or task.mailbox)


def _ids(stored: Any) -> list[str]:
    return [str(attempt_id) for attempt_id in stored]


def _planned(chosen: Chosen, run: Run) -> dict[str, Any]:
    """What a dry run says of an attempt that would be made."""
    number = chosen.task.attempts + 1
    base = chosen.base
    return {
        "task": chosen.task.id,
        "key": chosen.task.key,
        "number": number,
        "state": "planned",
        "mailbox": chosen.mailbox,
        "branch": None if base is None else run.branch_of(chosen.task.key, number),
        "base_ref": None if base is None else base.ref,
        "base_commit": None if base is None else base.commit,
        "base_source": None if base is None else base.source,
    }
