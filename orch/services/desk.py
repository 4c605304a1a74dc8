"""What every service of the scheduler stands on: the bus, who calls, the run, recording."""

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from inbox_orch.inbox import Bus
from inbox_orch.shared import events, processes, requests
from inbox_orch.shared.database import Database
from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.ids import check_key, check_name, printable
from inbox_orch.shared.nearest import did_you_mean, nearest
from inbox_orch.shared.store.engine import Session, Transaction

from ..domain import readiness, states
from ..domain.config import config_of
from ..domain.limits import FOREIGN_SECONDS
from ..domain.model import Attempt, Run, Task
from ..domain.readiness import Picture
from ..git.commands import keep_secret
from ..git.repository import Repository
from ..store import attempts, councils, runs, tasks
from ..store.attempts import Intent, Owner
from .bases import Heads
from .surroundings import secrets_of


class Answer(NamedTuple):
    """What a command with a key did, as JSON; `replayed` is None when there was no key."""

    data: dict[str, Any]
    replayed: bool | None = None

    def as_json(self) -> dict[str, Any]:
        shown = {} if self.replayed is None else {"replayed": self.replayed}
        return {**self.data, **shown}


class Desk:
    """The base of the service groups; not used by itself.

    `caller` is the agent named by the call; without one a call acts as the run's leader.
    """

    def __init__(self, bus: Bus, caller: str | None = None) -> None:
        self.bus = bus
        self.caller = None if caller is None else check_name(caller, "agent")

    @property
    def database(self) -> Database:
        """The database that the bus and the scheduler share."""
        return self.bus.database

    def actor(self, run: Run) -> str:
        """Who is named in the events of this call."""
        return self.caller or run.leader

    # -- finding -----------------------------------------------------------------------------

    def run(self, name: str | None) -> Run:
        """The run of this name or id, else the only one that is not closed.

        Errors: `not_found`; `usage`, which lists them, when there are several.
        """
        with self.database.snapshot() as snapshot:
            if name is not None:
                run = runs.get(snapshot, name)
                if run is None:
                    raise not_found("run", printable(name), hint=_runs_hint(snapshot, name))
                return run
            candidates = _mostly_runs(snapshot, runs.not_closed(snapshot))
        if not candidates:
            raise InboxOrchError(
                "not_found", "there is no open run", hint="`orch run init --title T` opens one"
            )
        if len(candidates) > 1:
            raise usage(
                "there are several open runs: " + ", ".join(r.name for r in candidates),
                hint="give --run NAME or set ORCH_RUN",
                runs=[r.name for r in candidates],
            )
        return candidates[0]

    def task(self, tx: Session, run: Run, name: str) -> Task:
        """The task with this key or id; error `not_found` with the nearest key."""
        task = tasks.get(tx, run.id, name)
        if task is None:
            keys = tasks.ids_by_key(tx, run.id)
            hint = did_you_mean(name[:200], keys, f"`orch status --run {run.name}` lists them")
            raise not_found("task", printable(name), hint=hint)
        return task

    def require_open(self, tx: Session, run: Run) -> Run:
        """The run as it is now; error `invalid_state` when its tasks can be changed no more."""
        present = runs.get(tx, run.id)
        assert present is not None, "runs are never removed"
        if present.state not in ("open", "paused"):
            closed = present.state == "closed"
            raise InboxOrchError(
                "invalid_state",
                f"run {run.name} is {present.state}: nothing of it can be changed",
                hint="`orch run reopen` opens it again"
                if closed
                else "`orch run show` tells how it ended",
                details={"run": run.name, "state": present.state},
            )
        return present

    def repository(self, run: Run) -> Repository:
        """The run's repository; error `usage` when it has none, `git_failed` when it is gone or
        is not the one any more."""
        if run.repository is None:
            raise usage(
                f"run {run.name} has no repository",
                hint="its tasks can only be added with --no-worktree",
            )
        keep_secret(secrets_of(config_of(run)))
        repository = Repository(run.repository)
        if not os.path.isdir(run.repository) or repository.identity() != run.repository_identity:
            raise InboxOrchError(
                "git_failed",
                f"{run.repository} is not the repository of run {run.name} any more",
                hint="put it back where it was",
                details={"repository": run.repository},
            )
        return repository

    def picture(self, tx: Session, run: Run, now_ms: int) -> Picture:
        """The run as it stands, also if it was paused, cancelled or closed since `run` was read."""
        run = runs.get(tx, run.id) or run
        conflicts = {}
        of_run = tasks.of_run(tx, run.id, bodies=False)
        dependencies = tasks.dependencies_of_run(tx, run.id)
        found = tasks.base_conflicts(tx, run.id)
        heads = Heads(of_run, dependencies) if found else None
        for task in of_run if heads is not None else ():
            # Void as soon as the heads are not those any more for which it was found.
            if heads is not None and task.id in found and task.state == "pending":
                conflicting, paths = found[task.id]
                if set(conflicting) == set(heads.basis(task)):
                    conflicts[task.id] = paths
        return readiness.picture(run, of_run, dependencies, conflicts, now_ms)

    # -- recording ---------------------------------------------------------------------------

    def record_attempt(
        self, tx: Transaction, run: Run, attempt: Attempt, kind: str, data: Mapping[str, Any]
    ) -> None:
        """Append an event about an attempt. Every one carries its state after the change."""
        facts = {
            "to": attempt.state,
            "number": attempt.number,
            "reason": attempt.reason,
            "head": attempt.head_commit,
        }
        events.append(
            tx,
            kind,
            self.actor(run),
            {**facts, **data},
            run_id=run.id,
            task_id=attempt.task_id,
            attempt_id=attempt.id,
            thread_id=self.thread_behind(tx, attempt),
        )

    def thread_behind(self, tx: Transaction, attempt: Attempt) -> str | None:
        """The thread on which events about an attempt stand, so that who may not see a sealed one
        does not see them either.

        An attempt at a council's seat that has no thread yet stands on that of the one before:
        other reviewers must not see that somebody mends a reply.
        """
        if attempt.thread_id is not None or attempt.number == 1:
            return attempt.thread_id
        if councils.seat_of_task(tx, attempt.task_id) is None:
            return None
        earlier = [a.thread_id for a in attempts.of_task(tx, attempt.task_id)]
        return next((thread for thread in reversed(earlier) if thread is not None), None)

    def record_task(
        self,
        tx: Transaction,
        run: Run,
        task: Task,
        kind: str,
        data: Mapping[str, Any],
        attempt_id: str | None = None,
    ) -> None:
        """Append an event about a task. Every one carries its state after the change."""
        facts = {"to": task.state, "key": task.key, "reason": task.reason, "tries": task.attempts}
        attempt = None if attempt_id is None else attempts.get(tx, attempt_id)
        events.append(
            tx,
            kind,
            self.actor(run),
            {**facts, **data},
            run_id=run.id,
            task_id=task.id,
            attempt_id=attempt_id,
            thread_id=None if attempt is None else self.thread_behind(tx, attempt),
        )

    def move_attempt(
        self,
        tx: Transaction,
        run: Run,
        attempt: Attempt,
        target: str,
        *,
        cause: str,
        changes: Mapping[str, Any] | None = None,
    ) -> Attempt:
        """One transition of an attempt, guarded, with its event; returns it as it is then."""
        states.require("attempt", attempt.state, target)
        columns: dict[str, Any] = {**(changes or {}), "state": target}
        columns["updated_at"] = tx.now.wall_ms
        if target in states.ATTEMPT_ENDED:
            columns["ended_at"] = tx.now.wall_ms
        changed = attempts.update(tx, attempt.id, columns, expected_state=attempt.state)
        assert changed, "the attempt changed under the write lock"
        after = attempts.get(tx, attempt.id)
        assert after is not None
        facts = {"from": attempt.state, "cause": cause}
        self.record_attempt(tx, run, after, f"attempt_{target}", facts)
        return after

    def move_task(
        self,
        tx: Transaction,
        run: Run,
        task: Task,
        target: str,
        *,
        cause: str,
        changes: Mapping[str, Any] | None = None,
        attempt_id: str | None = None,
    ) -> Task:
        """One transition of a task, guarded, with its event; returns it as it is then."""
        states.require("task", task.state, target)
        columns = {**(changes or {}), "state": target, "updated_at": tx.now.wall_ms}
        changed = tasks.update(tx, task.id, columns, expected_state=task.state)
        assert changed, "the task changed under the write lock"
        after = tasks.by_id(tx, task.id)
        facts = {"from": task.state, "cause": cause}
        self.record_task(tx, run, after, f"task_{target}", facts, attempt_id)
        return after

    def move_run(
        self,
        tx: Transaction,
        run: Run,
        target: str,
        *,
        cause: str,
        changes: Mapping[str, Any] | None = None,
    ) -> Run:
        """One transition of a run, guarded, with its event; returns it as it is then."""
        states.require("run", run.state, target)
        columns = {**(changes or {}), "state": target}
        changed = runs.update(tx, run.id, columns, expected_state=run.state)
        assert changed, "the run changed under the write lock"
        facts = {"from": run.state, "to": target, "cause": cause}
        events.append(tx, f"run_{target}", self.actor(run), facts, run_id=run.id)
        after = runs.get(tx, run.id)
        assert after is not None
        return after

    # -- keys --------------------------------------------------------------------------------

    def replay(
        self, tx: Transaction, command: str, agent: str, key: str | None, digest: str
    ) -> Answer | None:
        """The first result of an earlier call with this key; error `key_conflict`."""
        return self.find_replay(tx, command, agent, key, digest)

    def find_replay(
        self,
        tx: Session,
        command: str,
        agent: str,
        key: str | None,
        digest: str,
    ) -> Answer | None:
        """The same, only to look; whoever goes on must look again in the transaction."""
        found = requests.first_result(tx, command, agent, key, digest)
        return None if found is None else Answer(json.loads(found), True)

    def remember(
        self,
        tx: Transaction,
        command: str,
        agent: str,
        key: str | None,
        digest: str,
        data: dict[str, Any],
    ) -> Answer:
        """Store the first result under its key, if there is one."""
        if key is None:
            return Answer(data)
        requests.store(
            tx,
            command=command,
            agent=agent,
            key=check_key(key),
            digest=digest,
            response=json.dumps(data, ensure_ascii=False),
            thread_id=None,
            now_ms=tx.now.wall_ms,
        )
        return Answer(data, False)

    def this_process(self) -> Owner:
        """Who carries out an intent: this process, so that its death can be told."""
        number = os.getpid()
        boot_id = self.database.clock.now().boot_id
        started = processes.start_time(number) or 0
        return Owner(boot_id, number, started, processes.namespace())

    def is_abandoned(self, intent: Intent, foreign_seconds: float = FOREIGN_SECONDS) -> bool:
        """Whether the process that was carrying out an intent is doing so no more.

        A process in another container cannot be seen from here: it counts as alive for a time.
        To be wrong is a waste and no harm, since what was begun is done under a lock and
        confirmed only by its owner.
        """
        now, owner = self.database.clock.now(), intent.owner
        if owner.boot_id != now.boot_id:
            return True
        if owner.namespace != processes.namespace():
            return now.wall_ms - intent.opened_at > foreign_seconds * 1000
        return processes.start_time(owner.process) != owner.started


def _mostly_runs(tx: Session, found: list[Run]) -> list[Run]:
    """A council is a run, too; beside any other it is meant only when it is named."""
    known = set(councils.run_ids(tx))
    return [run for run in found if run.id not in known] or found


def _runs_hint(tx: Session, name: str) -> str:
    near = nearest(name[:200], [run.name for run in runs.every(tx)])
    if near:
        return f"did you mean {near}?"
    names = [run.name for run in runs.not_closed(tx)]
    return f"open runs: {', '.join(names)}" if names else "`orch run init` opens one"
