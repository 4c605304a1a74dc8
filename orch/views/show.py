"""One task with all that belongs to it."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from ..attempts import fold, moving
from ..attempts import rows as attempts
from ..attempts.visits import Visit
from ..runs import readiness
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Attempt, Dependency, Run
from ..runs.readiness import Picture, Standing
from . import patches, stages, status
from .patches import Listed
from .status import Question
from .work import Work, as_json, works_of


class Edge(NamedTuple):
    """A dependency, seen from one of its ends: the task at the other one, and whether the
    condition is `met`, can `never` be, or is `open`."""

    other: Standing
    condition: str
    verdict: str

    def as_json(self) -> dict[str, Any]:
        return {
            "task": self.other.task.id,
            "key": self.other.task.key,
            "standing": self.other.state,
            "condition": self.condition,
            "verdict": self.verdict,
        }


class TaskShown(NamedTuple):
    """A task, what it waits for, what waits for it, its attempts, the work on each by its
    id, its open question. `stale`: what happened on the bus could not be folded in. `visits` are
    those of the attempts that go by a blueprint, by the ids of these; `patches` those of the
    attempts that do not say all of them."""

    standing: Standing
    depends_on: tuple[Edge, ...]
    dependents: tuple[Edge, ...]
    attempts: tuple[Attempt, ...]
    works: Mapping[str, Work]
    question: Question | None
    stale: bool
    visits: Mapping[str, tuple[Visit, ...]] = {}
    patches: Mapping[str, tuple[Listed, ...]] = {}

    def as_json(self) -> dict[str, Any]:
        return {
            "task": self.standing.as_json(),
            "body": self.standing.task.body,
            "depends_on": [edge.as_json() for edge in self.depends_on],
            "dependents": [edge.as_json() for edge in self.dependents],
            "attempts": [
                {
                    **attempt.as_json(),
                    "work": as_json(self.works.get(attempt.id)),
                    **self._visits(attempt),
                    **self._patches(attempt),
                }
                for attempt in self.attempts
            ],
            "question": None if self.question is None else self.question.as_json(whole=True),
            "stale": self.stale,
        }

    def _visits(self, attempt: Attempt) -> dict[str, Any]:
        found = self.visits.get(attempt.id)
        return {} if found is None else {"visits": stages.as_json(found)}

    def _patches(self, attempt: Attempt) -> dict[str, Any]:
        found = self.patches.get(attempt.id)
        return {} if found is None else {"patches": patches.as_json(found)}


def show_task(desk: Desk, run: Run, name: str) -> TaskShown:
    """One task of a run. Error `not_found`."""
    stale = fold.fold_if_writable(desk, run)
    questions = status.questions(desk, run)
    with desk.database.snapshot() as snapshot:
        task = desk.task(snapshot, run, name)
        picture = moving.picture(desk, snapshot, run, desk.database.now().wall_ms)
        edges = tasks.dependencies_of_run(snapshot, run.id)
        of_task = attempts.of_task(snapshot, task.id)
        visits = stages.visits_of(snapshot, of_task)
        handed_in = patches.shown_of(snapshot, run, task, of_task)
    return TaskShown(
        # The picture has no bodies: those of all tasks may be large.
        picture.of(task.id)._replace(task=task),
        tuple(_edge(picture, e, e.upstream_id) for e in edges if e.task_id == task.id),
        tuple(_edge(picture, e, e.task_id) for e in edges if e.upstream_id == task.id),
        tuple(of_task),
        works_of(desk, of_task),
        next((q for q in questions if q.task.id == task.id), None),
        stale,
        visits,
        handed_in,
    )


def _edge(picture: Picture, dependency: Dependency, other_id: str) -> Edge:
    upstream = picture.of(dependency.upstream_id)
    found = readiness.verdict(dependency.condition, upstream.state)
    return Edge(picture.of(other_id), dependency.condition, found)
