"""Splitting a task: its parts come into the graph in its place, and its attempt ends with that. All
in the caller's transaction, which is the one that takes the decision.

The task is skipped: nothing waits for it any more but its parts, which so build on what it built
on, and what waited for it waits for all of them.
"""

from collections.abc import Iterator, Mapping, Sequence

from inbox_orch.shared.store import events
from inbox_orch.shared.store.engine import Session, Transaction

from ..attempts import moving, stop
from ..attempts.stop import Stop
from ..runs import blueprint_rows, plan_import, policies
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Attempt, Dependency, Run, Task
from ..runs.plan import Fault, Link, Plan, TaskSpec
from ..runs.plan_import import Refused

CAUSE = "split"
_MOST_REASON = 1000


def add(desk: Desk, tx: Transaction, run: Run, task: Task, plan: Plan) -> tuple[str, ...]:
    """Add the parts of a task to its run; returns their keys. What a part does not say of its
    mailbox, its blueprint and its policy is as the task has it. Raises `Refused`. Error
    `invalid_state` (the run is closed)."""
    run = desk.require_open(tx, run)
    waiting = tasks.dependencies_below(tx, task.id)
    known = tasks.ids_by_key(tx, run.id)
    plan = _as_parts(tx, run, task, plan)
    faults = [*_faults(tx, plan, task, known), *plan_import.faults(run, plan, known)]
    if faults:
        raise Refused(faults)
    behind = plan._replace(tasks=tuple(_behind(each, task) for each in plan.tasks))
    plan_import.insert_plan(desk, tx, run, behind, CAUSE)
    keys = tuple(part.key for part in plan.tasks)
    ids = tasks.ids_by_key(tx, run.id)
    for edge in waiting:
        _wait_instead(desk, tx, run, edge, [ids[key] for key in keys])
    return keys


def end_in_parts(
    desk: Desk, tx: Transaction, run: Run, attempt: Attempt, by: str, keys: Sequence[str]
) -> None:
    """End the attempt of a task that was split, on which nobody works, and skip the task."""
    reason = f"split into {', '.join(keys)} by {by}"
    if len(reason) > _MOST_REASON:
        reason = f"split into {len(keys)} parts by {by}"
    ending = stop.begin_ending(desk, tx, run, attempt, Stop("cancelled", reason))
    ended = moving.move_attempt(desk, tx, run, ending, moving.Move("cancelled", reason))
    task = tasks.by_id(tx, attempt.task_id)
    columns = {"reason": reason, "not_before": None}
    move = moving.Move("skipped", CAUSE, columns)
    moving.move_task(desk, tx, run, task, move, attempt=ended)


# -- the parts -----------------------------------------------------------------------------


def _as_parts(tx: Session, run: Run, task: Task, plan: Plan) -> Plan:
    drawn = None
    if task.blueprint is not None:
        drawn = blueprint_rows.text_of(tx, run.id, task.blueprint)
    return plan._replace(tasks=tuple(_as_part(each, task, drawn) for each in plan.tasks))


def _as_part(part: TaskSpec, task: Task, drawn: str | None) -> TaskSpec:
    part = part._replace(mailbox=part.mailbox or task.mailbox)
    if not part.worktree:
        return part
    if part.blueprint is None and part.hands_in is None:
        part = part._replace(blueprint=task.blueprint, drawn=drawn)
    if part.policy is None:
        part = part._replace(policy=policies.stored(task.policy))
    return part


def _behind(part: TaskSpec, task: Task) -> TaskSpec:
    """The part as it waits for the task, by which it builds on what that built on."""
    waits = any(link.upstream == task.key for link in part.depends_on)
    return part if waits else part._replace(depends_on=(Link(task.key), *part.depends_on))


def _faults(tx: Session, plan: Plan, task: Task, known: Mapping[str, str]) -> Iterator[Fault]:
    """What speaks against these parts, beside what speaks against any plan."""
    if not plan.tasks:
        yield Fault(("tasks",), "a split needs parts", "write a task for each")
    for number, part in enumerate(plan.tasks):
        for position, link in enumerate(part.depends_on):
            path = ("tasks", number, "depends_on", position)
            if link.upstream == task.key and link.condition == "failed":
                yield Fault(path, f"`{task.key}` is split, and so never fails", "leave it out")
            elif _waits(tx, task, known.get(link.upstream)):
                message = f"`{link.upstream}` waits for `{task.key}`, and so for its parts"
                cycle = (part.key, link.upstream, part.key)
                yield Fault(path, message, "leave it out", "cycle", cycle)


def _waits(tx: Session, task: Task, other: str | None) -> bool:
    """Whether another task that there is waits for this one, directly or not."""
    return other not in (None, task.id) and tasks.waits_for(tx, str(other), task.id)


# -- what waited for the task --------------------------------------------------------------


def _wait_instead(
    desk: Desk, tx: Transaction, run: Run, edge: Dependency, parts: Sequence[str]
) -> None:
    tasks.delete_dependency(tx, edge)
    _record(desk, tx, run, "dependency_removed", edge)
    for part in parts:
        if tasks.dependency(tx, edge.task_id, part) is None:
            instead = edge._replace(upstream_id=part)
            tasks.insert_dependency(tx, instead)
            _record(desk, tx, run, "dependency_added", instead)


def _record(desk: Desk, tx: Transaction, run: Run, kind: str, edge: Dependency) -> None:
    facts = {"upstream": edge.upstream_id, "condition": edge.condition}
    about = events.About(run_id=run.id, task_id=edge.task_id)
    events.append(tx, kind, desk.actor(run), facts, about)
