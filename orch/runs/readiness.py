"""What follows from the stored states: who is ready, who waits, who can never start, which accepted
work a task builds on, how the run stands. Computed afresh at every look: it cannot go stale."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.clock import rfc3339

from . import graph
from .config import config_of
from .model import Attempt, Dependency, Run, Task
from .retries import MOST_SECONDS
from .states import TASK_FINAL

MET, NEVER, OPEN = "met", "never", "open"

_VERDICTS = {
    "success": {"succeeded": MET, "skipped": MET, "failed": NEVER, "cancelled": NEVER},
    "finished": {"succeeded": MET, "skipped": MET, "failed": MET, "cancelled": MET},
    "failed": {"succeeded": NEVER, "skipped": NEVER, "failed": MET, "cancelled": NEVER},
}
STANDINGS = (
    "ready",
    "waiting",
    "backing_off",
    "base_conflict",
    "unreachable",
    "active",
    "blocked",
    "succeeded",
    "failed",
    "cancelled",
    "skipped",
)
"""How a task can stand."""
CONDITIONS = tuple(_VERDICTS)


class Standing(NamedTuple):
    """How one task stands.

    `state` is the stored state, or for a pending task `ready`, `waiting`, `backing_off`,
    `base_conflict` or `unreachable`. `because` names the keys of the tasks that it waits for, or
    that made it unreachable. `until` is the wall-clock end of a back-off. `conflict_paths` are
    those in which what it depends on does not merge.
    """

    task: Task
    state: str
    because: tuple[str, ...] = ()
    until: int | None = None
    conflict_paths: tuple[str, ...] = ()

    @property
    def settled(self) -> bool:
        """Whether nothing can happen to it any more without a decision."""
        return self.state in TASK_FINAL or self.state == "unreachable"

    def may_start(self, *, base_given: bool) -> bool:
        """Whether it can be dispatched now. A base that was given by hand overcomes a conflict of
        the computed one."""
        return self.state == "ready" or (base_given and self.state == "base_conflict")

    def as_json(self) -> dict[str, Any]:
        return {
            **self.task.as_json(),
            "standing": self.state,
            "because": list(self.because),
            "until": rfc3339(self.until),
            "conflict_paths": list(self.conflict_paths),
        }


class Picture(NamedTuple):
    """A run as it stands at one moment: every task (without its body), by its id too, the
    outcome, and what waits for what."""

    run: Run
    standings: tuple[Standing, ...]
    by_id: Mapping[str, Standing]
    outcome: str
    dependencies: Sequence[Dependency] = ()

    def of(self, task_id: str) -> Standing:
        """The standing of one task."""
        return self.by_id[task_id]


def verdict(condition: str, upstream_state: str) -> str:
    """`met`, `never` or `open` for one edge, by the upstream task's standing."""
    if upstream_state == "unreachable":
        return NEVER
    return _VERDICTS[condition].get(upstream_state, OPEN)


def picture(
    run: Run,
    tasks: Sequence[Task],
    dependencies: Sequence[Dependency],
    conflicts: Mapping[str, Sequence[str]],
    now_ms: int,
) -> Picture:
    """The standing of every task of a run, in the order of their making.

    `conflicts` maps a task's id to the paths for which its base could not be merged.
    """
    by_id = {task.id: task for task in tasks}
    edges: dict[str, list[Dependency]] = {}
    for dependency in dependencies:
        edges.setdefault(dependency.task_id, []).append(dependency)
    stopped_by = _stopped_by(run, tasks)
    standings: dict[str, Standing] = {}
    for task_id in graph.ordered(by_id, graph.edges_of(dependencies)) if edges else by_id:
        task = by_id[task_id]
        standings[task_id] = _standing(
            task, edges.get(task_id, ()), standings, stopped_by, conflicts, now_ms
        )
    ordered = tuple(standings[task.id] for task in tasks)
    return Picture(run, ordered, standings, _outcome(run, ordered), dependencies)


def dispatch_order(standings: Sequence[Standing], dependencies: Sequence[Dependency]) -> list[Task]:
    """The ready tasks: by priority, then the longest remaining path, then age."""
    ready = [s.task for s in standings if s.state == "ready"]
    if not dependencies:
        return sorted(ready, key=lambda t: (-t.priority, t.number))
    edges = graph.edges_of(dependencies)
    lengths = graph.remaining_lengths([s.task.id for s in standings], edges)
    return sorted(ready, key=lambda t: (-t.priority, -lengths[t.id], t.number))


def _stopped_by(run: Run, tasks: Sequence[Task]) -> tuple[str, ...]:
    """Under `fail-fast` and `abort` a failed task stops every pending one."""
    if run.on_failure == "continue":
        return ()
    return tuple(task.key for task in tasks if task.state == "failed")


def _standing(
    task: Task,
    edges: Sequence[Dependency],
    standings: Mapping[str, Standing],
    stopped_by: tuple[str, ...],
    conflicts: Mapping[str, Sequence[str]],
    now_ms: int,
) -> Standing:
    if task.state != "pending":
        return Standing(task, task.state)
    if stopped_by:
        return Standing(task, "unreachable", stopped_by)
    never: list[Standing] = []
    waiting: list[str] = []
    for edge in edges:
        upstream = standings[edge.upstream_id]
        found = verdict(edge.condition, upstream.state)
        if found == NEVER:
            never.append(upstream)
        elif found == OPEN:
            waiting.append(upstream.task.key)
    if never:
        return Standing(task, "unreachable", _blame(never))
    if waiting:
        return Standing(task, "waiting", tuple(waiting))
    # One that seems longer than any was set before the clock was put back: it is over.
    if task.not_before is not None and now_ms < task.not_before <= now_ms + MOST_SECONDS * 1000:
        return Standing(task, "backing_off", (), task.not_before)
    if task.id in conflicts:
        return Standing(task, "base_conflict", conflict_paths=tuple(conflicts[task.id]))
    return Standing(task, "ready")


def _blame(never: Sequence[Standing]) -> tuple[str, ...]:
    """The tasks that began it: through unreachable ones back to those that ended."""
    if len(never) == 1 and never[0].state == "unreachable":
        return never[0].because  # the same tuple down a long chain
    blamed: dict[str, None] = {}
    for upstream in never:
        for key in upstream.because if upstream.state == "unreachable" else (upstream.task.key,):
            blamed[key] = None
    return tuple(blamed)


def _outcome(run: Run, standings: Sequence[Standing]) -> str:
    if run.state == "cancelling" or run.cancelled_at is not None:
        live = any(s.state in ("active", "blocked") for s in standings)
        return "running" if live else "cancelled"
    if run.state == "closed":
        # What has not been done by now stays undone: nothing is dispatched any more.
        return _settled_outcome([s.state for s in standings])
    if not standings:
        return "running"
    if not all(s.settled for s in standings):
        moving = {"active", "blocked", "ready", "backing_off"}
        if run.state == "paused" or any(s.state in moving for s in standings):
            return "running"
        return "stuck"
    return _settled_outcome([s.state for s in standings])


def _settled_outcome(states: Sequence[str]) -> str:
    if all(state in ("succeeded", "skipped") for state in states):
        return "succeeded"
    return "partial" if "succeeded" in states else "failed"


# -- which accepted work a task builds on -----------------------------------------------------


class Heads:
    """The accepted heads that tasks of a run build on, as its tasks and edges stand."""

    def __init__(self, tasks: Sequence[Task], dependencies: Sequence[Dependency]) -> None:
        self._tasks = {task.id: task for task in tasks}
        self._edges = graph.edges_of(dependencies) if dependencies else {}

    def of(self, task: Task) -> tuple[str, ...]:
        """Those of every code task that `task` depends on, directly or not, over any edge and
        through tasks without a worktree; in topological order."""
        if task.id not in self._edges:
            return ()
        upstream = [self._tasks[task_id] for task_id in graph.ancestors(self._edges, task.id)]
        by_age = [t.id for t in sorted(upstream, key=lambda t: t.number)]
        order = graph.ordered(by_age, self._edges)
        heads = (self._tasks[task_id].accepted_head for task_id in order)
        return tuple(dict.fromkeys(head for head in heads if head is not None))

    def basis(self, task: Task) -> tuple[str, ...]:
        """All that the base of its next attempt is computed from, as the task stands now: when
        that changes, the base has to be chosen anew and a stored conflict is void."""
        return basis_of(self._tasks[task.id], self.of(task))


def basis_of(task: Task, heads: tuple[str, ...]) -> tuple[str, ...]:
    """What the base of a task's next attempt is computed from: where it is told to start, if it is,
    and the `heads` that it builds on."""
    if task.next_base is None:
        return heads
    return tuple(dict.fromkeys((task.next_base, *heads)))


# -- how many attempts may live at once, in a run and in each mailbox of it ------------------


def taken_by(live: Iterable[Attempt]) -> list[str]:
    """The mailboxes in which attempts that live take a slot: one that waits for somebody's decision
    has given its slot back."""
    return [attempt.mailbox for attempt in live if not attempt.deciding]


class Slots:
    """The slots that are free beside attempts that live, by the mailboxes of those."""

    def __init__(self, run: Run, live: Iterable[str]) -> None:
        self._most = run.max_parallel
        self._most_in = config_of(run).mailboxes
        self._taken: dict[str, int] = {}
        for mailbox in live:
            self._taken[mailbox] = self._taken.get(mailbox, 0) + 1

    def copy(self) -> "Slots":
        """Slots of their own, equal to these, to try something out."""
        twin = Slots.__new__(Slots)
        twin._most, twin._most_in, twin._taken = self._most, self._most_in, dict(self._taken)
        return twin

    def bounded(self) -> bool:
        """Whether there is any limit at all."""
        return self._most is not None or bool(self._most_in)

    def full(self) -> bool:
        """Whether the run takes no attempt more, in whichever mailbox."""
        return self._most is not None and sum(self._taken.values()) >= self._most

    def take(self, mailbox: str) -> bool:
        """Take a slot for one attempt more in a mailbox; False when there is none."""
        if not self.free(mailbox):
            return False
        self._taken[mailbox] = self._taken.get(mailbox, 0) + 1
        return True

    def free(self, mailbox: str) -> bool:
        """Whether one attempt more may live in a mailbox."""
        most = self._most_in.get(mailbox)
        return not self.full() and (most is None or self._taken.get(mailbox, 0) < most)

    def limit_of(self, mailbox: str) -> str:
        """Which limit keeps an attempt out of a mailbox, in words."""
        if self.full():
            return f"at most {self._most} at once in this run"
        return f"at most {self._most_in[mailbox]} at once in mailbox {mailbox}"


def may_move(picture: Picture, live: Iterable[str], *, dispatching: bool = True) -> bool:
    """Whether a run can go on without a decision: a worker is at work, the run is being cancelled,
    or an attempt could be dispatched, now or after a back-off (unless `dispatching` is False).
    `live` are the mailboxes of the live attempts: one that is blocked keeps its slot, and may
    keep all the others out."""
    if picture.run.state == "cancelling" or any(s.state == "active" for s in picture.standings):
        return True
    slots = Slots(picture.run, live)
    return (
        dispatching
        and picture.run.state == "open"
        and any(
            standing.state in ("ready", "backing_off") and slots.free(standing.task.mailbox)
            for standing in picture.standings
        )
    )
