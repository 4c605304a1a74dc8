"""Waiting for a council, and looking at it."""

from collections.abc import Callable
from typing import Any, NamedTuple

from inbox_orch.inbox.domain.limits import check_wait_seconds
from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import counted, plain_number
from inbox_orch.shared.store import events, waits

from ..attempts import timing
from ..runs import run_rows as runs
from ..runs.desk import Desk
from ..runs.limits import DEFAULT_WAIT_SECONDS
from ..runs.model import Run
from . import rows as councils
from . import take_in, views
from .views import CouncilView, missing_reason


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


def show_council(desk: Desk, run: Run) -> Sat:
    """A council with its seats, after taking in what has come."""
    stale = take_in.refresh(desk, run)
    return _sat(desk, run, stale)


def list_councils(desk: Desk) -> list[CouncilView]:
    """Every council, oldest first, as it is stored."""
    with desk.database.snapshot() as snapshot:
        found = [runs.get(snapshot, run_id) for run_id in councils.run_ids(snapshot)]
        return [views.view_in(desk, snapshot, run) for run in found if run is not None]


def wait_for_council(
    desk: Desk,
    run: Run,
    *,
    wait_seconds: float = DEFAULT_WAIT_SECONDS,
    on_look: Callable[[CouncilView], None] | None = None,
    pulse: Callable[[], None] | None = None,
) -> Sat:
    """Block until the round is closed: every seat is final, or its deadline has come.

    `failure` in the result is `degraded` or `no_quorum`. `on_look` is called with how it stands
    after each look, `pulse` whenever the wait wakes up. Error `timeout`, with how it stands.
    """
    check_wait_seconds(wait_seconds)

    def look() -> waits.Look:
        take_in.refresh(desk, run)
        sat = _sat(desk, run, stale=False)
        if on_look is not None:
            on_look(sat.view)
        if sat.view.open_round is None:
            return waits.Look(sat)
        return _due_in(desk, sat.view)

    topics = (events.run_topic(run.id), run.leader)
    found = waits.wait(desk.database, topics, look, wait_seconds=wait_seconds, pulse=pulse)
    if found is None:
        raise _not_yet(desk, run, wait_seconds)
    assert isinstance(found, Sat)
    return found._replace(failure=_failure(found))


def _sat(desk: Desk, run: Run, stale: bool) -> Sat:
    with desk.database.snapshot() as snapshot:
        view = views.view_in(desk, snapshot, run)
        revisions = tuple(councils.revisions(snapshot, run.id))
        reports = tuple(councils.reports(snapshot, run.id))
    return Sat(view, revisions, reports, stale)


def _due_in(desk: Desk, view: CouncilView) -> waits.Look:
    """When something falls due by itself: what falls due in any run, a deadline, the time of
    a seat."""
    present = view.open_round
    assert present is not None
    due = timing.due(desk, view.run)
    now_ms = desk.database.now().wall_ms
    seats = view.seats_of(present.number)
    clocks = [present.deadline_at, *(seat.overdue_at for seat in seats)]
    wall = [t for t in (due.due_wall_ms, *clocks) if t is not None and t > now_ms]
    return due._replace(due_wall_ms=min(wall, default=None))


def _not_yet(desk: Desk, run: Run, wait_seconds: float) -> InboxOrchError:
    sat = _sat(desk, run, stale=False)
    number = sat.view.open_round.number if sat.view.open_round else 1
    missing = [
        f"{seat.seat.reviewer} ({seat.stands.state})"
        for seat in sat.view.seats_of(number)
        if not seat.stands.final
    ]
    open_seats = counted(len(missing), "seat is", "seats are") + " open"
    return InboxOrchError(
        "timeout",
        f"council {run.name}: {open_seats} after {plain_number(wait_seconds)} s: "
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
