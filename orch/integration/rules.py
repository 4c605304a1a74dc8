"""Bringing accepted work together: what there is to bring, and what came of each piece."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ..runs import graph
from ..runs.model import Attempt, Dependency, Run, Task

MERGED, CONFLICT, HELD_BACK = "merged", "conflict", "held_back"
_MOST_REASON = 300
NOT_RESOLVED, SUPERSEDED = "not_resolved", "superseded"


class Piece(NamedTuple):
    """The accepted work of one task."""

    task: Task
    attempt: Attempt
    head: str

    @property
    def name(self) -> str:
        """The task's key and the attempt's number."""
        return f"{self.task.key}/{self.attempt.number}"


class Result(NamedTuple):
    """What came of one piece.

    `state` is `merged` (by the merge `commit`), `conflict` (in `paths`), or `held_back`: it builds
    on work that conflicts, that of the tasks `because`, and comes when that does. `offered` is the
    id of the attempt that was opened for a conflict to be resolved.
    """

    piece: Piece
    state: str
    commit: str | None = None
    paths: tuple[str, ...] = ()
    because: tuple[str, ...] = ()
    offered: str | None = None

    def as_json(self) -> dict[str, Any]:
        task, attempt = self.piece.task, self.piece.attempt
        return {
            "task": task.id,
            "key": task.key,
            "attempt": attempt.id,
            "number": attempt.number,
            "branch": attempt.branch,
            "head": self.piece.head,
            "state": self.state,
            "commit": self.commit,
            "paths": list(self.paths),
            "because": list(self.because),
            "offered": self.offered,
        }


def pieces(
    tasks: Sequence[Task], dependencies: Sequence[Dependency], attempts: Iterable[Attempt]
) -> list[Piece]:
    """The accepted work of the code tasks that succeeded, each after what it depends on."""
    accepted = {attempt.id: attempt for attempt in attempts}
    by_id = {task.id: task for task in tasks}
    order = graph.ordered(by_id, graph.edges_of(dependencies))
    found = []
    for task in (by_id[task_id] for task_id in order):
        attempt = accepted.get(str(task.accepted_attempt))
        if task.state == "succeeded" and task.accepted_head is not None and attempt is not None:
            found.append(Piece(task, attempt, task.accepted_head))
    return found


def in_conflict(
    tasks: Iterable[Task], attempts: Iterable[Attempt], live: Iterable[Attempt]
) -> list[Result]:
    """What conflicted earlier, in the order of the attempts; `live` are those of the run, of which
    one may be working on it."""
    by_id = {task.id: task for task in tasks}
    at_it = {attempt.task_id: attempt.id for attempt in live}
    return [
        Result(
            Piece(by_id[attempt.task_id], attempt, str(attempt.head_commit)),
            CONFLICT,
            paths=found.paths,
            offered=at_it.get(attempt.task_id),
        )
        for attempt in attempts
        if (found := attempt.found_conflict) is not None
    ]


class Missed(NamedTuple):
    """Two attempts of which the leader has to be told: `reason` is `not_resolved` (`attempt` was to
    resolve the conflict of `earlier`, and does not have its commit), or `superseded` (`attempt`
    builds on `earlier`, whose task has been done anew since). `key` and `earlier_key` are the
    keys of their tasks."""

    reason: str
    key: str
    attempt: Attempt
    earlier_key: str
    earlier: Attempt

    @property
    def sentence(self) -> str:
        """What it is and what to do."""
        this = f"{self.key}/{self.attempt.number}"
        earlier = f"{self.earlier_key}/{self.earlier.number}"
        again = f"`orch retry {self.key} --force` has it done anew"
        if self.reason == SUPERSEDED:
            return f"{this} is built on {earlier}, which was superseded; {again}"
        return (
            f"{earlier} is left out: {this} was to resolve its conflict, without its work; {again}"
        )


def missed(
    pieces: Sequence[Piece], ever: Sequence[Attempt], keys: Mapping[str, str]
) -> list[Missed]:
    """What may be missed in the pieces that are brought together, before git has been asked;
    `ever` are the attempts that were accepted once, `keys` those of the tasks."""
    found = []
    current = {piece.attempt.id for piece in pieces}
    for piece in pieces:
        for earlier in ever:
            same = earlier.task_id == piece.task.id
            if earlier.id in current or (same and earlier.number > piece.attempt.number):
                continue
            if not same:
                reason = SUPERSEDED
            elif earlier.conflict is not None and _was_to_resolve(piece.attempt, earlier):
                reason = NOT_RESOLVED
            else:
                continue
            key, other = piece.task.key, keys[earlier.task_id]
            found.append(Missed(reason, key, piece.attempt, other, earlier))
    return found


def _was_to_resolve(attempt: Attempt, earlier: Attempt) -> bool:
    """Whether it was opened for the conflict, and not because the leader wanted the task anew."""
    if attempt.base_source == "merge":  # with what it depends on merged in
        return attempt.number == earlier.number + 1
    return attempt.base_source == "integration"


def branch_of(run: Run) -> str:
    """The branch on which a run's work comes together."""
    return f"orch/{run.name}/integration"


def merge_message(run: Run, piece: Piece) -> str:
    """The message of the merge that brings a piece in."""
    task, attempt = piece.task, piece.attempt
    message = f"Integrate {task.key}: {task.title}\n\nRun {run.name}, attempt {attempt.number}."
    unverified = _unverified(attempt)
    return message if unverified is None else f"{message}\nNot verified: {unverified}"


def _unverified(attempt: Attempt) -> str | None:
    """Why accepted work was not judged as it should have been, on one line."""
    if not attempt.staged or attempt.details is None:
        return None
    said = json.loads(attempt.details).get("unverified")
    return " ".join(str(said).split())[:_MOST_REASON] if said else None
