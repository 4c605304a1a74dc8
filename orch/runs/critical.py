"""The critical path: the chain of dependent tasks that takes the longest, and so sets the end."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from . import graph
from .model import Dependency
from .readiness import Standing

NO_TIME = ("skipped", "cancelled", "unreachable")
"""Tasks that take no more time, and none if they were not worked on."""


class Step(NamedTuple):
    """A task on the path. `seconds` is None where tasks are only counted; `estimated`: it has not
    worked on it yet, and it is taken to last as long as the middle one of the others."""

    standing: Standing
    seconds: float | None
    estimated: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "task": self.standing.task.id,
            "key": self.standing.task.key,
            "title": self.standing.task.title,
            "standing": self.standing.state,
            "seconds": self.seconds,
            "estimated": self.estimated,
        }


class CriticalPath(NamedTuple):
    """The steps from first to last. `measure`: `durations` (of the attempts), `estimated`
    (durations where there are any) or `count` (of tasks: none has been worked on yet)."""

    steps: tuple[Step, ...]
    measure: str

    @property
    def seconds(self) -> float | None:
        """Of all steps together."""
        if self.measure == "count":
            return None
        return sum(step.seconds or 0.0 for step in self.steps)


def critical_path(
    standings: Sequence[Standing],
    dependencies: Sequence[Dependency],
    durations: Mapping[str, float],
) -> CriticalPath:
    """`durations`: seconds of all attempts at a task together, by its id; a live one up to now."""
    from statistics import median

    by_id = {s.task.id: s for s in standings}
    middle = median(durations.values()) if durations else None
    weights = {i: _weight(s, durations.get(i), middle) for i, s in by_id.items()}
    ids = _heaviest(list(by_id), graph.edges_of(dependencies), weights)
    steps = tuple(_step(by_id[i], durations, middle) for i in ids)
    if middle is None:
        return CriticalPath(steps, "count")
    return CriticalPath(steps, "estimated" if any(s.estimated for s in steps) else "durations")


def _weight(standing: Standing, duration: float | None, middle: float | None) -> float:
    if duration is not None:
        return duration
    if standing.state in NO_TIME:
        return 0.0
    return 1.0 if middle is None else middle


def _step(standing: Standing, durations: Mapping[str, float], middle: float | None) -> Step:
    duration = durations.get(standing.task.id)
    if middle is None:
        return Step(standing, None, False)
    guessed = duration is None and standing.state not in NO_TIME
    return Step(standing, middle if guessed else duration or 0.0, guessed)


def _heaviest(nodes: Sequence[str], edges: graph.Edges, weights: Mapping[str, float]) -> list[str]:
    """The nodes of the heaviest way; of two equal ones that with more nodes, then the older."""
    best: dict[str, tuple[float, int]] = {}
    before: dict[str, str] = {}
    for node in graph.ordered(nodes, edges):
        most = (0.0, 0)
        for upstream in edges.get(node, ()):
            if best[upstream] > most:
                most, before[node] = best[upstream], upstream
        best[node] = (most[0] + weights[node], most[1] + 1)
    if not best:
        return []
    here: str | None = max(nodes, key=lambda n: best[n])
    way: list[str] = []
    while here is not None:
        way.append(here)
        here = before.get(here)
    return way[::-1]
