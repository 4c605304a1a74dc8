"""Runs to be drawn: the graph, the critical path, attempts over time."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.clock import rfc3339

from ..attempts import fold, moving, visit_rows
from ..attempts import rows as attempts
from ..attempts.visits import Visit
from ..runs.critical import CriticalPath, critical_path
from ..runs.desk import Desk
from ..runs.model import Attempt, Run
from ..runs.readiness import Picture


class Graph(NamedTuple):
    """A run with its tasks and what they wait for. `stale`: what happened on the bus could not be
    folded in."""

    run: Run
    picture: Picture
    stale: bool

    @property
    def heading(self) -> str:
        return f"{self.run.title} ({self.run.name}): {self.picture.outcome}"

    def as_json(self) -> dict[str, Any]:
        keys = {s.task.id: s.task.key for s in self.picture.standings}
        return {
            "run": self.run.as_json(),
            "outcome": self.picture.outcome,
            "items": [
                {
                    "task": s.task.id,
                    "key": s.task.key,
                    "title": s.task.title,
                    "standing": s.state,
                }
                for s in self.picture.standings
            ],
            "truncated": False,
            "next_cursor": None,
            "dependencies": [
                {
                    "task": edge.task_id,
                    "key": keys[edge.task_id],
                    "upstream": edge.upstream_id,
                    "upstream_key": keys[edge.upstream_id],
                    "condition": edge.condition,
                }
                for edge in self.picture.dependencies
            ],
            "stale": self.stale,
        }


class Critical(NamedTuple):
    """The critical path of a run."""

    run: Run
    path: CriticalPath
    stale: bool

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run.as_json(),
            "measure": self.path.measure,
            "seconds": self.path.seconds,
            "items": [step.as_json() for step in self.path.steps],
            "truncated": False,
            "next_cursor": None,
            "stale": self.stale,
        }


class Timeline(NamedTuple):
    """Attempts in the order of their beginning, with the keys of their tasks; `left_out` older
    ones are not among them. `visits` are those of the attempts that go by a blueprint."""

    run: Run
    outcome: str
    attempts: tuple[Attempt, ...]
    keys: dict[str, str]
    now_ms: int
    left_out: int
    stale: bool
    visits: Mapping[str, Sequence[Visit]] = {}

    @property
    def heading(self) -> str:
        return f"{self.run.title} ({self.run.name}): {self.outcome}"

    def label(self, attempt: Attempt) -> str:
        """`lexer/2`."""
        return f"{self.keys[attempt.task_id]}/{attempt.number}"

    def end_ms(self, of: Attempt | Visit) -> int:
        """The end of an attempt or a visit, now for a live one; never before its beginning,
        whatever the clock did."""
        end = self.now_ms if of.ended_at is None else of.ended_at
        return max(end, of.created_at)

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run.as_json(),
            "outcome": self.outcome,
            "items": [
                {
                    "attempt": a.id,
                    "task": a.task_id,
                    "key": self.keys[a.task_id],
                    "number": a.number,
                    "state": a.state,
                    "begin": rfc3339(a.created_at),
                    "end": rfc3339(a.ended_at),
                    "seconds": (self.end_ms(a) - a.created_at) / 1000,
                    **self._visits(a),
                }
                for a in self.attempts
            ],
            "truncated": self.left_out > 0,
            "next_cursor": None,
            "stale": self.stale,
        }

    def _visits(self, attempt: Attempt) -> dict[str, Any]:
        if attempt.id not in self.visits:
            return {}
        visits = [
            {
                "number": v.number,
                "stage": v.stage,
                "nth": v.nth,
                "kind": v.kind,
                "state": v.state,
                "begin": rfc3339(v.created_at),
                "end": rfc3339(v.ended_at),
                "seconds": (self.end_ms(v) - v.created_at) / 1000,
            }
            for v in self.visits[attempt.id]
        ]
        return {"visits": visits}


def graph(desk: Desk, run: Run) -> Graph:
    """Every task as it stands, and every dependency, after folding in what the bus says."""
    stale = fold.fold_if_writable(desk, run)
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, run, desk.database.now().wall_ms)
    return Graph(picture.run, picture, stale)


def critical(desk: Desk, run: Run) -> Critical:
    """The chain that sets the end, by the time of attempts as far as it is known."""
    stale = fold.fold_if_writable(desk, run)
    now_ms = desk.database.now().wall_ms
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, run, now_ms)
        all_attempts = attempts.of_run(snapshot, run.id)
    seconds: dict[str, float] = {}
    for attempt in all_attempts:
        end = now_ms if attempt.ended_at is None else attempt.ended_at
        lasted = max(0, end - attempt.created_at) / 1000
        seconds[attempt.task_id] = seconds.get(attempt.task_id, 0.0) + lasted
    path = critical_path(picture.standings, picture.dependencies, seconds)
    return Critical(picture.run, path, stale)


def timeline(desk: Desk, run: Run, *, most: int) -> Timeline:
    """The newest `most` attempts of a run."""
    stale = fold.fold_if_writable(desk, run)
    now_ms = desk.database.now().wall_ms
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, run, now_ms)
        every = attempts.of_run(snapshot, run.id)
        shown = every[-most:]
        visits = visit_rows.briefly_of(snapshot, [a.id for a in shown if a.staged])
    keys = {a.task_id: picture.of(a.task_id).task.key for a in shown}
    left_out = len(every) - len(shown)
    run, outcome = picture.run, picture.outcome
    return Timeline(run, outcome, tuple(shown), keys, now_ms, left_out, stale, visits)
