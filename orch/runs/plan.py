"""Plans: a whole graph of tasks as frozen values, what is wrong with one, and its defaults."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..git.masking import masked
from . import graph, limits, policies
from .config import Config
from .model import Limits

MOST_SUGGESTED = 20
"""For so many unknown names the nearest is looked for, which takes a while among thousands."""
MOST_CYCLES = 10


class Link(NamedTuple):
    """What a task waits for: the key of another, and under which condition."""

    upstream: str
    condition: str = "success"


class TaskSpec(NamedTuple):
    """A task as it is wanted. `depends_on` are tasks by their keys (where one task is added,
    also by their ids), `checks` shell commands that must succeed in the worktree before the work
    is accepted. What is None is as the run's config says; `mailbox` is then the default one, and
    `harvest`, whether what is left uncommitted is committed, as the dispatch says. `result_schema`
    is the text of a JSON Schema, as `accepting.checked` gives it back. `blueprint` is the id of the
    one that its attempts go by, `drawn` its text, as `Blueprint.canonical` gives it. `policy` is
    what its changes have to satisfy beyond what the run asks for, as `policies` has it.
    `hands_in` is that of `Task`."""

    key: str
    title: str
    body: str = ""
    mailbox: str | None = None
    kind: str = "code"
    depends_on: tuple[Link, ...] = ()
    priority: int = 0
    max_attempts: int | None = None
    max_infra_attempts: int | None = None
    worktree: bool = True
    allow_empty: bool = False
    checks: tuple[str, ...] | None = None
    limits: Limits = Limits()
    result_schema: str | None = None
    harvest: bool | None = None
    blueprint: str | None = None
    drawn: str | None = None
    policy: Mapping[str, Any] | None = None
    hands_in: str | None = None

    def with_masked(self, secrets: Collection[str]) -> "TaskSpec":
        """The task with these values masked wherever they stand in its texts."""
        if not secrets:
            return self
        return self._replace(
            title=masked(self.title, secrets),
            body=masked(self.body, secrets),
            checks=self.checks and tuple(masked(check, secrets) for check in self.checks),
            result_schema=self.result_schema and masked(self.result_schema, secrets),
            drawn=self.drawn and masked(self.drawn, secrets),
        )


class Opening(NamedTuple):
    """The run that a plan opens. `no_repo`: it has no repository."""

    title: str
    base: str | None = None
    on_failure: str = "continue"
    max_parallel: int | None = None
    no_repo: bool = False
    config: Config = Config()


class Plan(NamedTuple):
    """Tasks, and the run that they are for if the plan names one."""

    tasks: tuple[TaskSpec, ...]
    run: Opening | None = None


class Fault(NamedTuple):
    """Something wrong in a plan: where in the document, what, what to write instead, as which
    error. `cycle` are the keys of one."""

    path: tuple[str | int, ...]
    message: str
    instead: str | None = None
    code: str = "usage"
    cycle: tuple[str, ...] = ()


def faults(
    plan: Plan, present: Collection[str], *, repository: bool, config: Config | None = None
) -> list[Fault]:
    """What speaks against adding a plan to a run that has tasks with the keys `present`, and this
    config."""
    found = list(_of_keys(plan.tasks, present))
    found += _of_links(plan.tasks, present)
    if not repository:
        message = "a run without a repository has no worktrees"
        found += [
            Fault(("tasks", number), message, "write `worktree: false`")
            for number, task in enumerate(plan.tasks)
            if task.worktree
        ]
    found += [
        Fault(("tasks", number, "checks"), limits.NO_PLACE_FOR_CHECKS, "leave `checks` out")
        for number, task in enumerate(plan.tasks)
        if task.checks and not task.worktree
    ]
    found += [
        Fault(("tasks", number, "harvest"), limits.NOTHING_TO_HARVEST, "leave `harvest` out")
        for number, task in enumerate(plan.tasks)
        if task.harvest and not task.worktree
    ]
    found += [
        Fault(("tasks", number, "blueprint"), limits.NO_PLACE_FOR_STAGES, "leave `blueprint` out")
        for number, task in enumerate(plan.tasks)
        if task.blueprint and not task.worktree
    ]
    found += _of_policies(plan.tasks, config or Config())
    found += [
        Fault(("tasks", number, "hands_in"), limits.NO_PLACE_FOR_TEXT, "leave `hands_in` out")
        for number, task in enumerate(plan.tasks)
        if task.hands_in and (not task.worktree or task.blueprint)
    ]
    return found + list(_of_cycles(plan.tasks))


def columns(task: TaskSpec, config: Config, mailbox: str) -> dict[str, Any]:
    """A planned task with the defaults of its run, by the names of `Task`. `result_schema`,
    `harvest`, `blueprint`, `policy` and `hands_in` are there where the task says them: a key stands
    for the same as before there was such a thing."""
    said = {
        "result_schema": task.result_schema,
        "harvest": task.harvest,
        "blueprint": task.blueprint,
        "policy": policies.column(task.policy),
        "hands_in": task.hands_in,
    }
    return {
        "key": task.key,
        "title": task.title,
        "body": task.body,
        "kind": task.kind,
        "mailbox": task.mailbox or mailbox,
        "priority": task.priority,
        "max_attempts": task.max_attempts or attempts_by_default(task.blueprint, config),
        "max_infra_attempts": task.max_infra_attempts or config.max_infra_attempts,
        "worktree": task.worktree,
        "allow_empty": task.allow_empty,
        "checks": config.checks_for(task.checks, worktree=task.worktree),
        "limits": config.limits_for(task.limits),
        **{name: value for name, value in said.items() if value is not None},
    }


def attempts_by_default(blueprint: str | None, config: Config) -> int:
    """How often work may fail: a blueprint mends inside of its attempt, which is one."""
    return config.max_attempts if blueprint is None else 1


def _of_policies(tasks: Sequence[TaskSpec], config: Config) -> Iterator[Fault]:
    for number, task in enumerate(tasks):
        path = ("tasks", number, "policy")
        if task.policy is not None and not task.worktree:
            yield Fault(path, limits.NOTHING_TO_JUDGE, "leave `policy` out")
        for each in loosened(task, config):
            at = path if each.layer.startswith("stage ") else (*path, each.rule)
            yield Fault(at, each.text, each.instead, "constraint_weakened")


def loosened(task: TaskSpec, config: Config) -> list[policies.Weakened]:
    """What a task, or the stages that it goes by, let in and its run does not."""
    if task.policy is None and task.drawn is None:
        return []
    staged = task.blueprint is not None
    layers = policies.layers_of(config.policy, (task.key, task.policy), staged=staged)
    return policies.loosened(layers, policies.of_stages(task.drawn))


def _of_keys(tasks: Sequence[TaskSpec], present: Collection[str]) -> Iterator[Fault]:
    first: dict[str, int] = {}
    for number, task in enumerate(tasks):
        path = ("tasks", number, "task")
        if task.key in first:
            before = first[task.key]
            message = f"the key `{task.key}` is that of tasks[{before}] already"
            yield Fault(path, message, "choose another key")
        elif task.key in present:
            message = f"the run has a task `{task.key}` already"
            yield Fault(path, message, "choose another key", "invalid_state")
        first.setdefault(task.key, number)


def _of_links(tasks: Sequence[TaskSpec], present: Collection[str]) -> Iterator[Fault]:
    import difflib

    known = {task.key for task in tasks} | set(present)
    suggested = 0
    for number, task in enumerate(tasks):
        seen: set[str] = set()
        for position, link in enumerate(task.depends_on):
            path = ("tasks", number, "depends_on", position)
            if link.upstream == task.key:
                message = f"task `{task.key}` cannot wait for itself"
                yield Fault(path, message, "leave it out", "cycle", (task.key, task.key))
            elif link.upstream in seen:
                yield Fault(path, f"`{link.upstream}` stands here twice", "keep one")
            elif link.upstream not in known:
                near = []
                if (suggested := suggested + 1) <= MOST_SUGGESTED:
                    near = difflib.get_close_matches(link.upstream, known, n=1)
                instead = f"did you mean `{near[0]}`?" if near else None
                yield Fault(path, f"there is no task `{link.upstream}`", instead, "not_found")
            seen.add(link.upstream)


def _of_cycles(tasks: Sequence[TaskSpec]) -> Iterator[Fault]:
    """Cycles that have no task in common, each at the link that closes it."""
    position = {task.key: number for number, task in enumerate(tasks)}
    edges = {
        t.key: [link.upstream for link in t.depends_on if link.upstream in position] for t in tasks
    }
    edges = {key: [u for u in upstream if u != key] for key, upstream in edges.items()}
    left = dict.fromkeys(position)
    for key in graph.ordered(position, edges):
        left.pop(key, None)
    for _ in range(MOST_CYCLES):
        cycle = graph.cycle(left, edges)
        if cycle is None:
            return
        number = position[cycle[0]]
        at = [link.upstream for link in tasks[number].depends_on].index(cycle[1])
        yield Fault(
            ("tasks", number, "depends_on", at),
            "that closes a cycle: " + arrows(cycle),
            "leave one of these dependencies out",
            "cycle",
            tuple(cycle),
        )
        for key in cycle:
            left.pop(key, None)


def arrows(keys: Sequence[str]) -> str:
    """`a -> b -> a`."""
    return " -> ".join(keys)


def planned(
    values: Mapping[str, Any], links: Sequence[Link], config: Config, mailbox: str
) -> TaskSpec:
    """What `columns` has made, as a task of a plan again: what is the run's default is None."""
    own: dict[str, Any] = {
        name: values.get(name) for name in TaskSpec._fields if name != "depends_on"
    }
    if own["max_attempts"] == attempts_by_default(own["blueprint"], config):
        own["max_attempts"] = None
    if own["max_infra_attempts"] == config.max_infra_attempts:
        own["max_infra_attempts"] = None
    if own["mailbox"] == mailbox:
        own["mailbox"] = None
    if tuple(own["checks"]) == config.checks_for(None, worktree=own["worktree"]):
        own["checks"] = None
    pairs = zip(own["limits"], config.limits, strict=True)
    own["limits"] = Limits(*(here if here != default else None for here, default in pairs))
    own["policy"] = policies.stored(own["policy"])
    return TaskSpec(**own, depends_on=tuple(links))
