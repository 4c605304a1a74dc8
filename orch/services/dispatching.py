"""Opening attempts: the choice in one transaction, then git, then the thread.

What is chosen is written down as an intent before git is touched, so that whoever comes after a
crash can finish it.
"""

import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared import requests
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import check_key, check_name, new_id
from inbox_orch.shared.transactions import Transaction

from ..domain import names, readiness, states
from ..domain.model import Attempt, Run, Task
from ..domain.readiness import Picture, Standing
from ..domain.slots import Slots
from ..git.standing import require_apart
from ..store import attempts, runs, tasks
from .bases import Base, Heads, base_for
from .provisioning import Provisioning

_MOST_CHOICES = 10


class Chosen(NamedTuple):
    """A task that is to be dispatched, and its base (None without a worktree)."""

    task: Task
    mailbox: str
    base: Base | None


class HeldBack(NamedTuple):
    """How many tasks are ready and found no slot, and which limits keep them out, in words."""

    tasks: int = 0
    limits: tuple[str, ...] = ()


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


class Dispatching(Provisioning):
    """`dispatch`."""

    def dispatch(
        self,
        run: Run,
        *,
        task_names: Sequence[str] = (),
        mailbox: str | None = None,
        base: str | None = None,
        allow_dirty: bool = False,
        dry_run: bool = False,
        key: str | None = None,
        within: str | None = None,
    ) -> Dispatched:
        """One attempt for each ready task, or for those named, in the order of urgency.

        `mailbox` overrides the tasks' own; `base` is the commit for all of them, as the folder
        `within` (the main working tree) understands it; it also overcomes a `base_conflict`. With
        `key` a repeat finishes what the first call chose, and chooses nothing new; a dry run
        neither repeats anything nor stores its key.
        Errors: `usage`, `not_found`, `invalid_state` (a named task is not ready, the run is not
        open), `dep_not_in_base`, `base_conflict` (of a named task), `dirty_repository`,
        `key_conflict`, and those of git.
        """
        if mailbox is not None:
            check_name(mailbox, "mailbox")
        if key is not None:
            check_key(key)
        request = [run.id, sorted(task_names), mailbox, base, allow_dirty]
        digest = requests.digest_of({"dispatch": request})
        asked = _Asked(tuple(dict.fromkeys(task_names)), mailbox, base, within, key, digest)
        earlier = None if dry_run else self._chosen_earlier(run, asked)
        if earlier is not None:
            return self._finish_all(run, earlier, replayed=True)
        if run.state != "open":
            raise states.refuse("run", run.name, run.state, "dispatch")
        if base is not None:
            # Also when nothing is ready: a wrong base is not to pass for "nothing to do".
            self.repository(run).commit_of(base, within)
        taken_over = () if dry_run or task_names else self._take_over_begun(run)
        self.fold(run)
        self.verify(run)
        for _ in range(_MOST_CHOICES):
            chosen, conflicts = self._choose(run, asked, store=not dry_run)
            dirty = self._refuse_dirty(run, chosen, allow_dirty, within)
            if dry_run:
                planned = tuple(_planned(c, run) for c in chosen)
                held_back = self._held_back(run, asked, chosen)
                return Dispatched(planned, True, None, conflicts, held_back)
            allocated = self._allocate(run, chosen, dirty, asked)
            if allocated is not None:
                made, replayed = allocated
                done = self._finish_all(run, made, replayed=replayed, conflicts=conflicts)
                held_back = self._held_back(run, asked)
                return done._replace(held_back=held_back, taken_over=taken_over)
        raise InboxOrchError(
            "busy",
            f"run {run.name} changes faster than its attempts can be based on it",
            hint="try again; nothing was dispatched",
        )

    # -- choosing ----------------------------------------------------------------------------

    def _choose(
        self, run: Run, asked: "_Asked", *, store: bool
    ) -> tuple[list[Chosen], tuple[dict[str, Any], ...]]:
        with self.database.snapshot() as connection:
            picture = self.picture(connection, run, self.database.clock.now().wall_ms)
            dependencies = tasks.dependencies_of_run(connection, run.id)
            # By id, since a task can be named twice: by its key and by its id.
            named = list(
                {t.id: t for t in (self.task(connection, run, n) for n in asked.names)}.values()
            )
            slots = Slots(run, [a.mailbox for a in attempts.live_of_run(connection, run.id)])
        heads = Heads([s.task for s in picture.standings], dependencies)
        if named:
            _require_ready(picture, named, asked)
            _require_slots(run, named, asked, slots)
            candidates = named
        else:
            candidates = readiness.dispatch_order(picture.standings, dependencies)
        chosen: list[Chosen] = []
        # Those found earlier are not ready; whoever dispatches wants to know why nothing comes.
        conflicts = [
            {"task": s.task.id, "key": s.task.key, "paths": list(s.conflict_paths)}
            for s in picture.standings
            if s.state == "base_conflict" and not named
        ]
        for task in candidates:
            mailbox = asked.mailbox or task.mailbox
            if slots.full():
                break
            if not slots.free(mailbox):
                continue  # one of another mailbox may find room
            found = self._base(run, task, heads.of(task), asked)
            if found is not None and found.commit is None:
                if store:
                    self._store_conflict(run, task, found)
                conflicts.append(_conflict(task, found, named=bool(named)))
            else:
                slots.take(mailbox)
                chosen.append(Chosen(task, mailbox, found))
        return chosen, tuple(conflicts)

    def _held_back(self, run: Run, asked: "_Asked", planned: Sequence[Chosen] = ()) -> HeldBack:
        """What is ready now, beside what is planned, and finds no slot: "nothing was dispatched"
        must not pass for "nothing is ready"."""
        with self.database.snapshot() as connection:
            slots = Slots(run, [a.mailbox for a in attempts.live_of_run(connection, run.id)])
            if asked.names or not slots.bounded():
                return HeldBack()
            picture = self.picture(connection, run, self.database.clock.now().wall_ms)
        for choice in planned:
            slots.take(choice.mailbox)
        taken = {choice.task.id for choice in planned}
        waiting = [
            asked.mailbox or standing.task.mailbox
            for standing in picture.standings
            if standing.state == "ready" and standing.task.id not in taken
        ]
        out = [mailbox for mailbox in waiting if not slots.free(mailbox)]
        return HeldBack(len(out), tuple(sorted({slots.limit_of(mailbox) for mailbox in out})))

    def _base(self, run: Run, task: Task, heads: tuple[str, ...], asked: "_Asked") -> Base | None:
        if not task.worktree:
            return None
        return base_for(self.repository(run), run, task, heads, asked.base, asked.within)

    def _store_conflict(self, run: Run, task: Task, base: Base) -> None:
        """Remember it, so that the task is not ready until one of the heads has changed."""
        with self.database.transaction() as tx:
            present = tasks.by_id(tx.connection, task.id)
            if present.state != "pending":
                return  # another leader was quicker
            tasks.store_base_conflict(
                tx.connection, task.id, base.heads, base.conflicts, tx.now.wall_ms
            )
            facts = {"heads": list(base.heads), "paths": list(base.conflicts)}
            self.record_task(tx, run, present, "base_conflict_found", facts)

    def _refuse_dirty(
        self, run: Run, chosen: Sequence[Chosen], allow_dirty: bool, within: str | None
    ) -> tuple[str, ...]:
        """What is not committed in the working tree that the call was made in (else the main
        one); error `dirty_repository` when an attempt would start from its HEAD and miss it, and
        `git_failed` when no worktree that git makes now could be used."""
        bases = [c.base for c in chosen if c.base is not None]
        if not bases:
            return ()
        repository = self.repository(run)
        require_apart(repository.common_directory)
        tree = repository.working_tree_at(within)
        dirty = () if tree is None else repository.dirty_paths(tree)
        if dirty and not allow_dirty and any(b.source == "HEAD" for b in bases):
            shown = ", ".join(dirty[:5]) + (f" and {len(dirty) - 5} more" if dirty[5:] else "")
            raise InboxOrchError(
                "dirty_repository",
                f"{tree} has changes that no worker would see: {shown}",
                hint="commit them; or --allow-dirty, or an explicit --base, goes without them",
                details={"paths": list(dirty)},
            )
        return dirty

    # -- allocating --------------------------------------------------------------------------

    def _allocate(
        self,
        run: Run,
        chosen: Sequence[Chosen],
        dirty: tuple[str, ...],
        asked: "_Asked",
    ) -> tuple[list[str], bool | None] | None:
        """Make the attempts in one transaction, with their intents; what another leader has
        dispatched meanwhile is left out, or refused if it was named.

        Returns their ids, and whether they are those of an earlier call with this key; None when
        what they build on has changed, and a base has to be chosen anew.
        """
        actor = self.actor(run)
        with self.database.transaction() as tx:
            earlier = self.replay(tx, "dispatch", actor, asked.key, asked.digest)
            if earlier is not None:
                return _ids(earlier.data), True
            present = runs.get(tx.connection, run.id)
            assert present is not None
            if present.state != "open":
                raise states.refuse("run", run.name, present.state, "dispatch")
            picture = self.picture(tx.connection, present, tx.now.wall_ms)
            slots = Slots(present, [a.mailbox for a in attempts.live_of_run(tx.connection, run.id)])
            still = [_as_it_is_now(c, picture, asked) for c in chosen]
            if asked.names:
                named = [c.task for c in still]
                _require_ready(picture, named, asked)
                _require_slots(present, named, asked, slots)
            else:
                still = [c for c in still if _may_start(picture.of(c.task.id), asked)]
                still = [c for c in still if slots.take(c.mailbox)]
            dependencies = tasks.dependencies_of_run(tx.connection, run.id)
            heads = Heads([s.task for s in picture.standings], dependencies)
            if any(c.base is not None and c.base.heads != heads.basis(c.task) for c in still):
                return None
            made = [self._allocate_one(tx, run, c, dirty) for c in still]
            if asked.key is not None:
                requests.store(
                    tx.connection,
                    command="dispatch",
                    agent=actor,
                    key=asked.key,
                    digest=asked.digest,
                    response=json.dumps(made),
                    thread_id=None,
                    now_ms=tx.now.wall_ms,
                )
            return made, None if asked.key is None else False

    def _allocate_one(
        self, tx: Transaction, run: Run, chosen: Chosen, dirty: tuple[str, ...]
    ) -> str:
        task = tasks.by_id(tx.connection, chosen.task.id)
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
            folder = names.folder_name(task.key, number)
            values |= {
                "branch": names.branch_name(run.name, task.key, number),
                "worktree_path": os.path.join(run.worktree_root, run.name, folder),
                "base_ref": chosen.base.ref,
                "base_commit": chosen.base.commit,
                "base_source": chosen.base.source,
                "dirty_paths": json.dumps(list(dirty)) if dirty else None,
            }
        attempts.insert(tx.connection, values)
        attempts.open_intent(
            tx.connection,
            run_id=run.id,
            attempt_id=attempt_id,
            kind="dispatch",
            data={"merged_base": chosen.base is not None and chosen.base.source == "merge"},
            owner=self.this_process(),
            now_ms=tx.now.wall_ms,
        )
        made = attempts.get(tx.connection, attempt_id)
        assert made is not None
        self.record_attempt(tx, run, made, "attempt_allocating", {"from": None})
        changes = {"attempts": number, "not_before": None}
        self.move_task(
            tx, run, task, "active", cause="dispatch", changes=changes, attempt_id=attempt_id
        )
        return attempt_id

    # -- provisioning ------------------------------------------------------------------------

    def _take_over_begun(self, run: Run) -> tuple[dict[str, Any], ...]:
        """Finish what a process that is gone had chosen: nobody else would hand it out, while
        it takes a slot and keeps its task from being ready."""
        begun = self._begun(run)
        if not begun:
            return ()
        self.finish_intents(run)
        left = {attempt.id for attempt in self._begun(run)}
        with self.database.snapshot() as connection:
            present = [attempts.get(connection, a.id) for a in begun if a.id not in left]
        return tuple(self.handed_out(run, a) for a in present if a is not None)

    def _begun(self, run: Run) -> list[Attempt]:
        with self.database.snapshot() as connection:
            live = attempts.live_of_run(connection, run.id)
        return [attempt for attempt in live if attempt.state == "allocating"]

    def _chosen_earlier(self, run: Run, asked: "_Asked") -> list[str] | None:
        with self.database.snapshot() as connection:
            earlier = self.find_replay(
                connection, "dispatch", self.actor(run), asked.key, asked.digest
            )
        return None if earlier is None else _ids(earlier.data)

    def _finish_all(
        self,
        run: Run,
        attempt_ids: Sequence[str],
        *,
        replayed: bool | None,
        conflicts: tuple[dict[str, Any], ...] = (),
    ) -> Dispatched:
        items = []
        for attempt_id in attempt_ids:
            mine = self.may_carry_out(run, attempt_id)
            with self.database.snapshot() as connection:
                attempt = attempts.get(connection, attempt_id)
            assert attempt is not None
            if attempt.state == "allocating" and mine:
                attempt = self.provision(run, attempt)
            items.append(self.handed_out(run, attempt))
        return Dispatched(tuple(items), False, replayed, conflicts)


class _Asked(NamedTuple):
    """What the call says: the tasks that it names, and of all its attempts; the key of the call
    and what it stands for."""

    names: tuple[str, ...]
    mailbox: str | None
    base: str | None
    within: str | None
    key: str | None
    digest: str


def _as_it_is_now(chosen: Chosen, picture: Picture, asked: _Asked) -> Chosen:
    """The mailbox of a task may have been changed since it was chosen."""
    task = picture.of(chosen.task.id).task
    return chosen._replace(task=task, mailbox=asked.mailbox or task.mailbox)


def _ids(stored: Any) -> list[str]:
    return [str(attempt_id) for attempt_id in stored]


def _may_start(standing: Standing, asked: _Asked) -> bool:
    """A base that was given by hand overcomes a conflict of the computed one."""
    given = asked.base is not None
    return standing.state == "ready" or (given and standing.state == "base_conflict")


def _conflict(task: Task, base: Base, *, named: bool) -> dict[str, Any]:
    shape = {"task": task.id, "key": task.key, "paths": list(base.conflicts)}
    if named:
        raise InboxOrchError(
            "base_conflict",
            f"what task {task.key} depends on does not merge: {', '.join(base.conflicts)}",
            hint=f"merge it by hand: orch dispatch {task.key} --base COMMIT",
            details=shape,
        )
    return shape


def _require_ready(picture: Picture, named: Sequence[Task], asked: _Asked) -> None:
    """Each task that was named must be able to start."""
    for task in named:
        standing = picture.of(task.id)
        if not _may_start(standing, asked):
            raise _not_ready(standing)


def _require_slots(run: Run, named: Sequence[Task], asked: _Asked, slots: Slots) -> None:
    """There must be room for all of them at once; takes none of it."""
    trial = slots.copy()
    for number, task in enumerate(named):
        mailbox = asked.mailbox or task.mailbox
        if not trial.take(mailbox):
            raise InboxOrchError(
                "invalid_state",
                f"task {task.key} finds no slot: {trial.limit_of(mailbox)}",
                hint="wait for one to end: `orch wait`; `orch run show` prints the limits",
                details={"free": number, "wanted": len(named), "mailbox": mailbox},
            )


def _not_ready(standing: Standing) -> InboxOrchError:
    reasons = standing.because or standing.conflict_paths
    because = f" ({', '.join(reasons)})" if reasons else ""
    return InboxOrchError(
        "base_conflict" if standing.state == "base_conflict" else "invalid_state",
        f"task {standing.task.key} is {standing.state}{because}, not ready",
        hint=_HINTS.get(standing.state, "`orch status` shows why").format(key=standing.task.key),
        details={"task": standing.task.key, "standing": standing.state},
    )


_HINTS = {
    "base_conflict": "merge what it depends on by hand, then: orch dispatch {key} --base COMMIT",
    "backing_off": "`orch status` shows how long; `orch cancel {key}`, then `orch retry {key}`, and"
    " it is ready at once",
    "failed": "`orch retry {key}` has it tried again",
    "cancelled": "`orch retry {key}` has it tried again",
    "succeeded": "`orch retry {key} --force` has it done all over again",
}


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
        "branch": None if base is None else names.branch_name(run.name, chosen.task.key, number),
        "base_ref": None if base is None else base.ref,
        "base_commit": None if base is None else base.commit,
        "base_source": None if base is None else base.source,
    }
