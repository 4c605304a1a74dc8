"""An attempt that goes by a blueprint, as it stands: its task, its visits, what follows."""

from typing import NamedTuple

from inbox_orch.shared.store.engine import Session

from ..attempts import rows as attempts
from ..attempts import visit_rows as visits
from ..attempts.visits import Visit
from ..gates.results import GateResult
from ..patches import approvals
from ..patches.model import Waiting
from ..runs import blueprint_rows
from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.model import Attempt, Run, Task
from .machine import CHECKS, Past, Seen, Step, next_step
from .model import PLAIN, SURROUNDINGS, Blueprint, Stage, from_canonical


class Course(NamedTuple):
    """Read in one look; what is done about it is guarded by the number of its last visit.
    `waiting` are the patches of it that somebody has to approve of."""

    run: Run
    task: Task
    attempt: Attempt
    blueprint: Blueprint
    visits: tuple[Visit, ...]
    waiting: tuple[Waiting, ...] = ()

    @property
    def plain(self) -> bool:
        """Whether its task has no blueprint, so that only an approval is waited for."""
        return self.task.blueprint is None

    @property
    def live(self) -> Visit | None:
        """The visit that goes on."""
        return self.visits[-1] if self.visits and self.visits[-1].live else None

    @property
    def last_tree(self) -> str | None:
        """What lay in the worktree when it was last looked at."""
        return next((v.tree_after for v in reversed(self.visits) if v.tree_after), None)

    @property
    def last_snapshot(self) -> str | None:
        """The commit that keeps that."""
        return next((v.snapshot for v in reversed(self.visits) if v.snapshot), None)

    @property
    def last_head(self) -> str | None:
        """The commit that HEAD was then."""
        return next((v.head for v in reversed(self.visits) if v.head), None)

    def stage_of(self, visit: Visit) -> Stage | None:
        """The stage of a visit; None for those that stand in no blueprint."""
        return self.blueprint.by_id.get(visit.stage)

    def taken_up(self, visit: Visit) -> Visit | None:
        """The visit of an agent whose refused work this one has taken up; None for every other."""
        stage = self.stage_of(visit)
        if visit.kind != "action" or stage is None or stage.type != "agent":
            return None
        number = visit.found.get("visit")
        return None if number is None else self.visits[number - 1]

    def nth(self, stage: str) -> int:
        """Which entry of a stage the next one is, from 1."""
        return sum(v.stage == stage for v in self.visits) + 1

    def seen(self) -> Seen:
        """What the machine decides by."""
        past = tuple(_past(v) for v in self.visits if not v.live)
        unchecked = bool(self.task.checks) and not self.plain and not self._checked()
        return Seen(self.blueprint, past, unchecked, bool(self.waiting))

    def step(self) -> Step:
        """What comes next."""
        return next_step(self.seen())

    def _checked(self) -> bool:
        """Whether the checks of the task have been run on the last tree."""
        tree = self.last_tree
        return any(
            visit.tree_after == tree and CHECKS in visit.found.get("ran", ())
            for visit in self.visits
            if visit.kind == "gates"
        )


def read(tx: Session, run: Run, attempt_id: str) -> Course:
    """The attempt as it stands."""
    attempt = attempts.get(tx, attempt_id)
    assert attempt is not None
    run = runs.get(tx, run.id) or run  # roles may have been given mailboxes since
    task = tasks.by_id(tx, attempt.task_id)
    blueprint = PLAIN
    if task.blueprint is not None:
        blueprint = from_canonical(blueprint_rows.text_of(tx, run.id, task.blueprint))
    every = tuple(visits.of_attempt(tx, attempt_id))
    waiting = approvals.waiting(tx, attempt_id) if run.patches else ()
    return Course(run, task, attempt, blueprint, every, waiting)


def results_of(visit: Visit) -> list[GateResult]:
    """What the gates of a visit have come to."""
    return [GateResult.from_json(each) for each in visit.found.get("gates", ())]


def _past(visit: Visit) -> Past:
    found = visit.found
    failing = next((r for r in results_of(visit) if r.stops), None)
    return Past(
        visit.stage,
        visit.kind,
        visit.state,
        visit.verdict,
        visit.reason,
        visit.tree_after,
        None if failing is None else (failing.gate, failing.failures),
        found.get("cause"),
        found.get("about"),
        found.get("resume"),
        visit.ended_at or 0,
        found.get("stopped", {}).get("stage"),
        tuple(found.get("left", ())),
    )


def is_of_a_stage(visit: Visit) -> bool:
    """Whether a visit is the entry of a stage that its blueprint has."""
    return visit.stage not in (SURROUNDINGS, CHECKS) and visit.kind != "decision"
