"""`orch` by itself: every open run, what in it needs somebody, and what to do next."""

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from ..attempts import fold, moving
from ..attempts import rows as attempts
from ..runs import run_rows as runs
from ..runs.desk import Desk
from ..runs.model import Run
from ..runs.readiness import Picture, Standing
from ..views.needs import first_needed, what_it_needs
from ..views.stages import decisions_in
from .next_facts import facts_of
from .next_rules import next_line

if TYPE_CHECKING:
    from ..stages.decide import Decision


class Waiting(NamedTuple):
    """An open run as it stands. `needs`: the tasks that go no further without somebody; `next`: the
    call that most likely comes next; `stale`: what happened on the bus could not be folded in.
    `decisions` are those that are open, by the ids of their tasks."""

    run: Run
    outcome: str
    counts: dict[str, int]
    needs: tuple[Standing, ...]
    next: str
    stale: bool
    decisions: Mapping[str, "Decision"] = {}

    def why(self, standing: Standing) -> str | None:
        """What a task needs of somebody, in words."""
        return what_it_needs(standing, self.decisions.get(standing.task.id))

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run.as_json(),
            "outcome": self.outcome,
            "counts": self.counts,
            "needs": [
                {
                    "key": standing.task.key,
                    "title": standing.task.title,
                    "standing": standing.state,
                    "why": self.why(standing),
                }
                for standing in self.needs
            ],
            "next": self.next,
            "stale": self.stale,
        }


def overview(desk: Desk, default: str | None) -> tuple[Waiting, ...]:
    """Every run that is not closed, oldest first. `default` is the run that calls are given by the
    environment, if it names one."""
    with desk.database.snapshot() as snapshot:
        found = runs.not_closed(snapshot)
    return tuple(_waiting(desk, run, default) for run in found)


def _waiting(desk: Desk, run: Run, default: str | None) -> Waiting:
    stale = fold.fold_if_writable(desk, run)
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, run, desk.database.now().wall_ms)
        decisions = decisions_in(snapshot, attempts.live_of_run(snapshot, run.id))
    counts = dict(Counter(standing.state for standing in picture.standings))
    line, needs = next_line(facts_of(desk, run, default, None)), _needs(picture)
    return Waiting(picture.run, picture.outcome, counts, needs, line, stale, decisions)


def _needs(picture: Picture) -> tuple[Standing, ...]:
    needed = [s for s in picture.standings if what_it_needs(s) is not None]
    return tuple(sorted(needed, key=lambda s: first_needed(s.state)))
