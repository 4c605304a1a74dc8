"""Whole plans: taken into a run in one transaction, and written out again."""

import functools
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.digests import digest_of
from inbox_orch.shared.ids import check_name, new_id
from inbox_orch.shared.store import events
from inbox_orch.shared.store.engine import Transaction

from . import plan as plans
from . import planning
from . import task_rows as tasks
from .config import Config, config_of
from .desk import Answer, Desk, keep_base
from .model import Dependency, Limits, Run
from .plan import Fault, Link, Opening, Plan, TaskSpec
from .planning import DEFAULT_LEADER, DEFAULT_MAILBOX, Facts


class Refused(Exception):
    """A plan that cannot be taken in, with everything that speaks against it."""

    def __init__(self, faults: Sequence[Fault]) -> None:
        super().__init__(f"{len(faults)} faults")
        self.faults = list(faults)


class Rows(NamedTuple):
    """What a plan comes to: rows of tasks and dependencies, and the events of both, in order."""

    tasks: list[dict[str, Any]]
    dependencies: list[Dependency]
    events: list[events.Entry]


def plan_import(desk: Desk, run: Run, plan: Plan, *, key: str | None = None) -> Answer:
    """Add every task of a plan to a run, with what they wait for: all or nothing.

    A link may also lead to a task that the run has already. What the plan says of a run is
    not looked at. Raises `Refused`. Errors: `invalid_state` (the run is closed),
    `key_conflict`.
    """
    actor, digest = desk.actor(run), _digest({"run": run.id}, plan, key)
    with desk.database.transaction() as tx:
        earlier = desk.replay(tx, "plan import", actor, key, digest)
        if earlier is not None:
            return earlier
        desk.require_open(tx, run)
        insert_plan(desk, tx, run, plan)
        data = _done(run, plan, opened=False)
        return desk.remember(tx, "plan import", actor, key, digest, data)


def plan_open(
    desk: Desk,
    plan: Plan,
    opening: Opening,
    *,
    repository: str | None,
    worktree_root: str | None = None,
    key: str | None = None,
) -> Answer:
    """Open a run and take the plan into it, in one transaction.

    Raises `Refused`. Errors: those of `run_init`.
    """
    leader = check_name(desk.caller or DEFAULT_LEADER, "agent")
    facts = Facts.of(opening, repository, worktree_root)
    digest = _digest({"run": facts.as_request()}, plan, key)
    with desk.database.transaction() as tx:
        earlier = desk.replay(tx, "plan import", leader, key, digest)
        if earlier is not None:
            return earlier
        run = planning.insert_run(tx, leader, facts)
        insert_plan(desk, tx, run, plan)
        data = _done(run, plan, opened=True)
        answer = desk.remember(tx, "plan import", leader, key, digest, data)
    keep_base(desk, run)
    return answer


def plan_check(desk: Desk, run: Run | None, plan: Plan, *, repository: bool) -> dict[str, Any]:
    """What importing would come to, with nothing written; `run` is None for a new one.

    Raises `Refused`. Errors: `invalid_state`.
    """
    known: Mapping[str, str] = {}
    if run is not None:
        with desk.database.snapshot() as snapshot:
            desk.require_open(snapshot, run)
            known = tasks.ids_by_key(snapshot, run.id)
    config = config_of(run) if run is not None else plan.run.config if plan.run else None
    _refuse(plan, known, repository, config)
    return {**_done(run, plan, opened=run is None), "dry_run": True}


def plan_opening_check(opening: Opening, repository: str | None, worktree_root: str | None) -> None:
    """Raise what `plan_open` would raise about the run, with nothing written."""
    Facts.of(opening, repository, worktree_root)


def plan_export(desk: Desk, run: Run) -> Plan:
    """A run as the plan that, imported again, gives an equal one: its config with the values
    of secrets left out, its tasks in the order of their making, none of them begun."""
    with desk.database.snapshot() as snapshot:
        of_run = tasks.of_run(snapshot, run.id)
        dependencies = tasks.dependencies_of_run(snapshot, run.id)
    keys = {task.id: task.key for task in of_run}
    links: dict[str, list[Link]] = {}
    # By the number of what they wait for, so that equal runs give equal plans.
    numbers = {task.id: number for number, task in enumerate(of_run)}
    for edge in sorted(dependencies, key=lambda d: numbers[d.upstream_id]):
        links.setdefault(edge.task_id, []).append(Link(keys[edge.upstream_id], edge.condition))
    config = config_of(run)
    secrets = config.secret_values({})
    planned = tuple(
        plans.planned(task._asdict(), links.get(task.id, ()), config, DEFAULT_MAILBOX).with_masked(
            secrets
        )
        for task in of_run
    )
    return Plan(planned, _opening(run, config))


CAUSE = "plan import"


def insert_plan(desk: Desk, tx: Transaction, run: Run, plan: Plan, cause: str = CAUSE) -> None:
    """Add every task of a plan to a run, with what they wait for; `cause` is what their events say.
    Raises `Refused`, with nothing written."""
    known = tasks.ids_by_key(tx, run.id)
    found = faults(run, plan, known)
    if found:
        raise Refused(found)
    for task in plan.tasks:
        planning.keep_blueprint(desk, tx, run, task)
    rows = _rows(run, plan, known, (tx.now.wall_ms, cause))
    tasks.insert_many(tx, rows.tasks)
    tasks.insert_dependencies(tx, rows.dependencies)
    events.append_many(tx, rows.events, desk.actor(run), run_id=run.id)


def faults(run: Run, plan: Plan, known: Mapping[str, str]) -> list[Fault]:
    """What speaks against adding a plan to a run, which has tasks with the keys of `known`."""
    repository = run.repository is not None
    return plans.faults(plan, known.keys(), repository=repository, config=config_of(run))


def _refuse(plan: Plan, known: Mapping[str, str], repository: bool, config: Config | None) -> None:
    found = plans.faults(plan, known.keys(), repository=repository, config=config)
    if found:
        raise Refused(found)


_UNSAID = {
    "result_schema": None,
    "harvest": None,
    "blueprint": None,
    "policy": None,
    "hands_in": None,
}


def _rows(run: Run, plan: Plan, known: Mapping[str, str], when: tuple[int, str]) -> Rows:
    """The rows of a plan without faults; `when` is the moment, and what brings it."""
    now_ms, cause = when
    config = config_of(run)
    ids = {**known, **{task.key: new_id() for task in plan.tasks}}
    rows = Rows([], [], [])
    common = {"run_id": run.id, "state": "pending", "created_at": now_ms, "updated_at": now_ms}
    for task in plan.tasks:
        values = plans.columns(task, config, DEFAULT_MAILBOX)
        values["checks"], values["limits"] = _as_text(values["checks"], values["limits"])
        task_id = ids[task.key]
        rows.tasks.append({**_UNSAID, **values, "id": task_id, **common})
        facts = {"from": None, "to": "pending", "key": task.key, "cause": cause}
        rows.events.append(events.Entry("task_pending", task_id, facts))
    for task_id, link in _links(plan, ids):
        rows.dependencies.append(Dependency(task_id, ids[link.upstream], link.condition))
        facts = {"upstream": ids[link.upstream], "condition": link.condition}
        rows.events.append(events.Entry("dependency_added", task_id, facts))
    return rows


@functools.lru_cache(maxsize=64)
def _as_text(checks: tuple[str, ...], limits: Limits) -> tuple[str, str]:
    """Checks and limits as JSON. Kept, because most tasks of a plan have equal ones."""
    return json.dumps(list(checks)), json.dumps(limits.as_json())


def _links(plan: Plan, ids: Mapping[str, str]) -> Iterator[tuple[str, Link]]:
    for task in plan.tasks:
        for link in task.depends_on:
            yield ids[task.key], link


def _opening(run: Run, config: Config) -> Opening:
    """What a run says of itself; a secret's value does not leave the database."""
    return Opening(
        run.title,
        run.base_ref,
        run.on_failure,
        run.max_parallel,
        run.repository is None,
        config.without_secrets(),
    )


def _digest(request: Mapping[str, Any], plan: Plan, key: str | None) -> str:
    """Of the request, only when there is a key; the order of links does not matter."""
    if key is None:
        return ""
    return digest_of({**request, "plan": [as_asked(task) for task in plan.tasks]})


def as_asked(task: TaskSpec) -> list[Any]:
    """A task of a plan as a key stands for it: the same request as ever where it says nothing of
    what could not be said before, which stands last."""
    values = list(task._replace(depends_on=tuple(sorted(task.depends_on))))
    while values[-1] is None:
        values.pop()
    return values


def _done(run: Run | None, plan: Plan, *, opened: bool) -> dict[str, Any]:
    return {
        "run": None if run is None else run.as_json(),
        "run_opened": opened,
        "task_count": len(plan.tasks),
        "dependency_count": sum(len(task.depends_on) for task in plan.tasks),
        "dry_run": False,
    }
