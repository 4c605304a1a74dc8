"""Tasks that wait to be dispatched: changed in place, or taken out of their run.

Each call is one transaction. What has an attempt that lives is refused, and a task that ever had
one is not taken out: nothing that was handed out is changed or lost.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.digests import digest_of
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import check_name, counted
from inbox_orch.shared.store import events
from inbox_orch.shared.store.engine import Transaction

from ..runs import blueprint_rows, limits, policies, states
from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.config import config_of
from ..runs.desk import Answer, Desk
from ..runs.model import Limits, Run, Task
from ..runs.readiness import Picture, Standing
from . import fold, moving

_HINTS = {
    "active": "its worker has the text already; `orch run pause`, then `orch cancel {key}`, and "
    "`orch retry {key}` makes it pending again",
    "failed": "`orch retry {key}` makes it pending again (`orch run pause` first)",
    "cancelled": "`orch retry {key}` makes it pending again (`orch run pause` first)",
    "succeeded": "it is done; `orch task add` adds another one",
    "skipped": "what depends on it goes on without it; `orch task add` adds another one",
}


class Edit(NamedTuple):
    """What is to be different in a task; None stays as it is, as does a limit that is None.
    Of `policy` those rules that it has; one without any takes the task's away."""

    title: str | None = None
    body: str | None = None
    kind: str | None = None
    priority: int | None = None
    max_attempts: int | None = None
    max_infra_attempts: int | None = None
    checks: tuple[str, ...] | None = None
    limits: Limits = Limits()
    harvest: bool | None = None
    policy: Mapping[str, Any] | None = None

    def as_asked(self) -> list[Any]:
        """The change as a key stands for it: where it does not say `harvest` or `policy`, as before
        there was that."""
        values: list[Any] = json.loads(json.dumps(self))
        while len(values) > Edit._fields.index("harvest") and values[-1] is None:
            values.pop()
        return values

    def values(self, task: Task) -> dict[str, Any]:
        """What differs from the task, by the names of its fields. Error `usage`."""
        if self.checks and not task.worktree:
            raise usage(limits.NO_PLACE_FOR_CHECKS, hint="leave --check out")
        if self.harvest and not task.worktree:
            raise usage(limits.NOTHING_TO_HARVEST, hint="leave --harvest out")
        if self.policy and not task.worktree:
            raise usage(limits.NOTHING_TO_JUDGE, hint="leave the policy out")
        wanted = {name: value for name, value in self._asdict().items() if value is not None}
        if "policy" in wanted:
            wanted["policy"] = self.policy_for(task)
        given = {name: value for name, value in self.limits._asdict().items() if value is not None}
        wanted["limits"] = task.limits._replace(**given)
        return {name: value for name, value in wanted.items() if getattr(task, name) != value}

    def policy_for(self, task: Task) -> str | None:
        """The column of the policy that the task has then: with these rules instead of its own, or
        without any where none is given."""
        if not self.policy:
            return None
        return policies.column({**(policies.stored(task.policy) or {}), **self.policy})


def edit_task(desk: Desk, run: Run, name: str, wanted: Edit, *, key: str | None = None) -> Answer:
    """Change a pending task; the next attempt is as it is then.

    Errors: `usage`, `not_found`, `invalid_state` (it is not pending, the run is closed, or it is
    a council), `key_conflict`.
    """
    _check(wanted)
    actor = desk.actor(run)
    digest = digest_of({"run": run.id, "task": name, "edit": wanted.as_asked()})
    fold.fold(desk, run)
    with desk.database.transaction() as tx:
        earlier = desk.replay(tx, "task edit", actor, key, digest)
        if earlier is not None:
            return earlier
        task = _pending(desk, tx, run, name, "task edit")
        changed = wanted.values(task)
        if "policy" in changed:
            _check_policy(tx, run, task, changed["policy"])
        if changed:
            task = _store(desk, tx, run, task, changed)
        data = {"task": task.as_json(), "body": task.body, "changed": list(changed)}
        return desk.remember(tx, "task edit", actor, key, digest, data)


def give_blueprint(desk: Desk, run: Run, picture: Picture, drawn: tuple[str, str]) -> int:
    """Let the tasks of a run that work in a worktree, name no blueprint and have not begun go by
    one, given by its id and its text; returns how many that are. What a task says of its attempts
    stays. Errors: `constraint_weakened`, those of every write."""
    if not any(map(_could_have_one, picture.standings)):
        return 0
    outer = policies.layers_of(config_of(run).policy, staged=True)
    policies.require_tightening(outer, policies.of_stages(drawn[1]))
    with desk.database.transaction() as tx:
        blueprint_rows.keep(tx, run.id, *drawn, tx.now.wall_ms)
        could = [s.task.id for s in picture.standings if _could_have_one(s)]
        given = 0
        for task_id in could:
            task = tasks.anywhere(tx, task_id)
            if task is not None and task.state == "pending" and task.blueprint is None:
                _store(desk, tx, run, task, {"blueprint": drawn[0]})
                given += 1
        return given


def _could_have_one(standing: Standing) -> bool:
    task = standing.task
    plain = task.blueprint is None and task.worktree and task.kind == "code"
    return plain and task.state == "pending" and task.attempts == 0


def remove_task(desk: Desk, run: Run, name: str, *, key: str | None = None) -> Answer:
    """Take a pending task that never had an attempt, and that none waits for, out of its run.

    Errors: `not_found`, `invalid_state` (it is not pending, it has had an attempt, others wait for
    it; the run is closed, or it is a council), `key_conflict`.
    """
    actor, digest = desk.actor(run), digest_of({"run": run.id, "task": name})
    fold.fold(desk, run)
    with desk.database.transaction() as tx:
        earlier = desk.replay(tx, "task remove", actor, key, digest)
        if earlier is not None:
            return earlier
        task = _pending(desk, tx, run, name, "task remove")
        _check_removable(tx, run, task)
        upstreams = _take_out(desk, tx, run, task)
        data = {"task": task.as_json(), "body": task.body, "depends_on": upstreams}
        return desk.remember(tx, "task remove", actor, key, digest, data)


def _check(wanted: Edit) -> None:
    if wanted == Edit():
        raise usage("it is not said what is to be different", hint="give --title, --body, …")
    if wanted.title is not None:
        limits.check_title(wanted.title)
    if wanted.body is not None:
        limits.check_task_body(wanted.body)
    if wanted.kind is not None:
        check_name(wanted.kind, "kind")
    limits.check_commands(wanted.checks or ())


def _check_policy(tx: Transaction, run: Run, task: Task, policy: str | None) -> None:
    """Error `constraint_weakened`."""
    given = (task.key, policies.stored(policy))
    outer = policies.layers_of(config_of(run).policy, given, staged=task.blueprint is not None)
    drawn = task.blueprint and blueprint_rows.text_of(tx, run.id, task.blueprint)
    policies.require_tightening(outer, policies.of_stages(drawn))


def _pending(desk: Desk, tx: Transaction, run: Run, name: str, verb: str) -> Task:
    """The task as it is in this transaction, in which nobody can dispatch it."""
    desk.require_open(tx, run)
    task = desk.task(tx, run, name)
    if runs.kind(tx, run.id) == "council":
        raise InboxOrchError(
            "invalid_state",
            f"run {run.name} is a council: its tasks are its reviewers' seats",
            hint="`orch council start` asks anew",
            details={"run": run.name},
        )
    if task.state != "pending":
        hint = _HINTS["active" if task.state == "blocked" else task.state].format(key=task.key)
        raise states.refuse("task", task.key, task.state, verb, hint)
    return task


def _store(desk: Desk, tx: Transaction, run: Run, task: Task, changed: dict[str, Any]) -> Task:
    columns = dict(changed)
    if "checks" in columns:
        columns["checks"] = json.dumps(list(columns["checks"]))
    if "limits" in columns:
        columns["limits"] = json.dumps(columns["limits"].as_json())
    columns["updated_at"] = tx.now.wall_ms
    stored = tasks.update(tx, task.id, columns, expected_state="pending")
    assert stored, "the task changed under the write lock"
    after = tasks.by_id(tx, task.id)
    moving.record_task(desk, tx, run, after, "task_edited", {"changed": list(changed)})
    return after


def _check_removable(tx: Transaction, run: Run, task: Task) -> None:
    if task.attempts:
        raise InboxOrchError(
            "invalid_state",
            f"task {task.key} has had {counted(task.attempts, 'attempt')}: that stays with it",
            hint=f"`orch cancel {task.key}` or `orch skip {task.key}` does without it",
            details={"task": task.key, "attempts": task.attempts},
        )
    waiting = tasks.keys_below(tx, task.id)
    if waiting:
        raise InboxOrchError(
            "invalid_state",
            f"task {task.key} cannot be removed: {', '.join(waiting[:20])} waits for it",
            hint=f"`orch dep remove {waiting[0]} --on {task.key}` first, or remove that task first",
            details={"task": task.key, "dependents": waiting},
        )


def _take_out(desk: Desk, tx: Transaction, run: Run, task: Task) -> list[str]:
    """The rows of a task, each with its event; the keys of what it waited for."""
    upstreams = []
    about = events.About(run_id=run.id, task_id=task.id)
    for edge in tasks.dependencies_of(tx, task.id):
        tasks.delete_dependency(tx, edge)
        facts = {"upstream": edge.upstream_id, "condition": edge.condition}
        events.append(tx, "dependency_removed", desk.actor(run), facts, about)
        upstreams.append(tasks.by_id(tx, edge.upstream_id).key)
    tasks.delete(tx, task.id)
    said = {"from": task.state, "to": None, "title": task.title}
    moving.record_task(desk, tx, run, task, "task_removed", said)
    return upstreams
