"""Waiting for a council, and looking at it."""

from typing import Any, NamedTuple

from inbox_orch.inbox.domain.limits import check_wait_seconds
from inbox_orch.shared import events, waits
from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError

from ..domain.limits import DEFAULT_WAIT_SECONDS
from ..domain.model import Run
from ..store import councils, runs
from .council_desk import CouncilView, missing_reason
from .council_opening import CouncilOpening


class Sat(NamedTuple):
    """How a council stands. `failure` is the error to end a wait with."""

    view: CouncilView
    revisions: tuple[tuple[int, str, int], ...]
    reports: tuple[Any, ...]
    stale: bool
    failure: InboxOrchError | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "council": self.view.as_json(),
            "seats": [{"round": seat.seat.round, **seat.as_json()} for seat in self.view.seats],
            "revisions": [
                {"revision": number, "cause": cause, "at": rfc3339(at)}
                for number, cause, at in self.revisions
            ],
            "reports": [
                {
                    "name": kept.name,
                    "sha256": kept.sha256,
                    "bytes": kept.bytes,
                    "revision": kept.revision,
                    "thread": kept.thread_id,
                    "created_at": rfc3339(kept.created_at),
                }
                for kept in self.reports
            ],
            "stale": self.stale,
        }


class Councils(CouncilOpening):
    """`council wait`, `show`, `list`: with what it stands on, all of `orch council`."""

    def show_council(self, run: Run) -> Sat:
        """A council with its seats, after taking in what has come."""
        stale = self.refresh(run)
        return self._sat(run, stale)

    def councils(self) -> list[CouncilView]:
        """Every council, oldest first, as it is stored."""
        with self.database.snapshot() as snapshot:
            found = [runs.get(snapshot, run_id) for run_id in councils.run_ids(snapshot)]
            return [self.view_in(snapshot, run) for run in found if run is not None]

    def wait_for_council(self, run: Run, *, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> Sat:
        """Block until the round is closed: every seat is final, or its deadline has come.

        `failure` in the result is `degraded` or `no_quorum`. Error `timeout`, with how it stands.
        """
        check_wait_seconds(wait_seconds)

        def look() -> waits.Look:
            self.refresh(run)
            sat = self._sat(run, stale=False)
            if sat.view.open_round is None:
                return waits.Look(sat)
            return self._due_in(sat.view)

        topics = (events.run_topic(run.id), run.leader)
        found = waits.wait(self.database, topics, look, wait_seconds=wait_seconds)
        if found is None:
            raise self._not_yet(run, wait_seconds)
        assert isinstance(found, Sat)
        return found._replace(failure=_failure(found))

    def _sat(self, run: Run, stale: bool) -> Sat:
        with self.database.snapshot() as snapshot:
            view = self.view_in(snapshot, run)
            revisions = tuple(councils.revisions(snapshot, run.id))
            reports = tuple(councils.reports(snapshot, run.id))
        return Sat(view, revisions, reports, stale)

    def _due_in(self, view: CouncilView) -> waits.Look:
        """When something falls due by itself: what falls due in any run, a deadline, the time of
        a seat."""
        present = view.open_round
        assert present is not None
        due = self._due(view.run)
        now_ms = self.database.clock.now().wall_ms
        seats = view.seats_of(present.number)
        clocks = [present.deadline_at, *(seat.overdue_at for seat in seats)]
        wall = [t for t in (due.due_wall_ms, *clocks) if t is not None and t > now_ms]
        return due._replace(due_wall_ms=min(wall, default=None))

    def _not_yet(self, run: Run, wait_seconds: float) -> InboxOrchError:
        sat = self._sat(run, stale=False)
        number = sat.view.open_round.number if sat.view.open_round else 1
        missing = [
            f"{seat.seat.reviewer} ({seat.stands.state})"
            for seat in sat.view.seats_of(number)
            if not seat.stands.final
        ]
        return InboxOrchError(
            "timeout",
            f"council {run.name}: {len(missing)} seats are open after {wait_seconds:g} s: "
            + ", ".join(missing),
            hint="call again to go on waiting; nothing is missed in between",
            details={"council": run.name},
            data=sat.as_json(),
        )


def _failure(sat: Sat) -> InboxOrchError | None:
    view = sat.view
    if view.status == "complete":
        return None
    missing = [
        f"{seat.seat.reviewer} ({seat.stands.state})"
        for seat in view.seats_of(1)
        if missing_reason(seat) is not None
    ]
    return InboxOrchError(
        view.status,
        f"council {view.run.name}: {view.valid} of {len(view.seats_of(1))} valid; missing: "
        + ", ".join(missing),
        hint="`orch council report` has all there is",
        details={"council": view.run.name},
        data=sat.as_json(),
    )
