"""A council as it stands: its run, rounds and seats, computed afresh at every look."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from inbox_orch.inbox.domain.model import Thread
from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import not_found, usage
from inbox_orch.shared.ids import beginning_of_id, printable
from inbox_orch.shared.shell.nearest import did_you_mean
from inbox_orch.shared.store.engine import Session

from ..attempts import rows as attempts
from ..runs import run_rows as runs
from ..runs.desk import Desk
from ..runs.finding import none_open, the_only
from ..runs.model import Attempt, Run
from . import rows as councils
from .model import Decision
from .stored import (
    COUNTED,
    SEAT_GRACE_SECONDS,
    Around,
    Round,
    Stands,
    StoredCouncil,
    StoredReply,
    StoredSeat,
    seat_stands,
)

if TYPE_CHECKING:
    from .replies import Expected

REPLIES, VOTES = 1, 2
"""The rounds."""
_MOST_BEGUN = 1000


class SeatView(NamedTuple):
    """One seat of one round: how it stands, its newest attempt and that one's thread. `too_late`
    is what came after the deadline and does not count, if nothing has come that does."""

    seat: StoredSeat
    stands: Stands
    attempt: Attempt | None
    thread: Thread | None
    overdue_at: int | None
    too_late: StoredReply | None = None

    def as_json(self) -> dict[str, Any]:
        reply = self.stands.reply
        return {
            "reviewer": self.seat.reviewer,
            "state": self.stands.state,
            "lens": self.seat.lens,
            "task": self.seat.task_id,
            "attempts": 0 if self.attempt is None else self.attempt.number,
            "thread": None if self.thread is None else self.thread.id,
            "holder": None if self.thread is None else self.thread.holder,
            "missing_reason": missing_reason(self),
            "too_late": None if self.too_late is None else self.too_late.reason,
            "reply_bytes": None if reply is None else reply.raw_bytes,
            "reply_sha256": None if reply is None or reply.source is None else reply.raw_sha256,
        }


class CouncilView(NamedTuple):
    """A council as it stands at one moment. `seats` are those of every round."""

    run: Run
    council: StoredCouncil
    rounds: tuple[Round, ...]
    seats: tuple[SeatView, ...]
    revision: int

    @property
    def open_round(self) -> Round | None:
        """The round in which replies still come in time."""
        return next((each for each in self.rounds if each.open), None)

    def seats_of(self, number: int) -> tuple[SeatView, ...]:
        """The seats of one round, in their order."""
        return tuple(view for view in self.seats if view.seat.round == number)

    @property
    def valid(self) -> int:
        """How many seats of the first round have a reply that counts."""
        return sum(
            view.stands.state in ("valid", "valid_after_kill", "late")
            for view in self.seats_of(REPLIES)
        )

    @property
    def status(self) -> str:
        """`open`, `complete`, `degraded` or `no_quorum`, by the first round."""
        if self.rounds[0].open:
            return "open"
        if self.valid < self.council.quorum:
            return "no_quorum"
        return "complete" if self.valid == len(self.seats_of(REPLIES)) else "degraded"

    def as_json(self) -> dict[str, Any]:
        """The council, without its seats."""
        first = self.rounds[0]
        return {
            "id": self.run.id,
            "name": self.run.name,
            "title": self.run.title,
            "status": self.status,
            "brief_sha256": self.council.brief_sha256,
            "decisions": [decision_json(decision) for decision in decisions_of(self.council)],
            "quorum": self.council.quorum,
            "seat_timeout_seconds": self.council.seat_seconds,
            "valid": self.valid,
            "declared": len(self.seats_of(REPLIES)),
            "revision": self.revision,
            "run_state": self.run.state,
            "rounds": [_round(each) for each in self.rounds],
            "created_at": rfc3339(self.council.created_at),
            "closed_at": rfc3339(first.closed_at),
        }


def council(desk: Desk, name: str | None, *, shows: bool = False) -> Run:
    """The run of the council with this name or id, else the only one that is not closed; with
    `shows`, where none is open, the one that was closed last.

    Errors: `not_found`; `usage`, which lists them, when there are several.
    """
    with desk.database.snapshot() as snapshot:
        known = councils.run_ids(snapshot)
        if name is not None:
            run = runs.get(snapshot, name)
            if run is None:
                begun = runs.beginning(snapshot, name, beginning_of_id(name), _MOST_BEGUN)
                run = the_only("council", name, [run for run in begun if run.id in known])
            if run is None or run.id not in known:
                raise not_found(
                    "council", printable(name), hint=_near_council(snapshot, known, name)
                )
            return run
        candidates = [run for run in runs.not_closed(snapshot) if run.id in known]
        last = None if candidates else runs.last_closed(snapshot, "council")
    if last is not None and shows:
        return last
    if not candidates:
        raise none_open("council", last, "`orch council start --brief-file F` opens one")
    if len(candidates) > 1:
        raise usage(
            "there are several open councils: " + ", ".join(r.name for r in candidates),
            hint="give --council NAME or set ORCH_COUNCIL",
            councils=[r.name for r in candidates],
        )
    return candidates[0]


def view(desk: Desk, run: Run, revision: int | None = None) -> CouncilView:
    """The council as it stands, or as it stood at an earlier revision of its tally."""
    with desk.database.snapshot() as snapshot:
        return view_in(desk, snapshot, run, revision)


def view_in(
    desk: Desk,
    tx: Session,
    run: Run,
    revision: int | None = None,
    *,
    texts: bool = False,
) -> CouncilView:
    """The council as it stands, or stood at an earlier revision, in a transaction or snapshot of
    the caller's; with the texts of the replies if they are wanted."""
    council = councils.get(tx, run.id)
    assert council is not None
    present = runs.get(tx, run.id)
    assert present is not None
    newest = councils.revision(tx, run.id)
    asked = newest if revision is None else revision
    rounds = tuple(councils.rounds(tx, run.id))
    latest = attempts.latest_by_task(tx, run.id)
    threads = desk.bus.threads([a.thread_id for a in latest.values() if a.thread_id])
    seen = desk.bus.delivered(list(threads))
    by_task: dict[str, list[StoredReply]] = {}
    for reply in councils.replies(tx, run.id, texts=texts):
        by_task.setdefault(reply.task_id, []).append(reply)
    looked = _Looked(council, rounds, by_task, latest, threads, seen, asked)
    now_ms = desk.database.now().wall_ms
    seats = [looked.seat(seat, now_ms) for seat in councils.seats(tx, run.id)]
    return CouncilView(present, council, rounds, tuple(seats), asked)


class _Looked(NamedTuple):
    """The rows of one council, for the computing of its seats."""

    council: StoredCouncil
    rounds: Sequence[Round]
    replies: Mapping[str, Sequence[StoredReply]]
    latest: Mapping[str, Attempt]
    threads: Mapping[str, Thread]
    delivered: set[str]
    revision: int

    def seat(self, seat: StoredSeat, now_ms: int) -> SeatView:
        attempt = self.latest.get(seat.task_id)
        thread = None if attempt is None else self.threads.get(str(attempt.thread_id))
        overdue_at = self._overdue_at(thread)
        around = Around(
            open_round=self.rounds[seat.round - 1].open,
            revision=self.revision,
            delivered=thread is not None and thread.id in self.delivered,
            overdue=overdue_at is not None and overdue_at <= now_ms,
        )
        replies = self.replies.get(seat.task_id, ())
        stands = seat_stands(seat, replies, attempt, around)
        late = [reply for reply in replies if reply.late and reply.state not in COUNTED]
        too_late = late[-1] if late and stands.reply is None else None
        return SeatView(seat, stands, attempt, thread, overdue_at, too_late)

    def _overdue_at(self, thread: Thread | None) -> int | None:
        """When the time of the request's holder is over: by then its worker has stopped the
        command and handed in what there is."""
        if self.council.seat_seconds is None or thread is None or thread.lease is None:
            return None
        allowed = self.council.seat_seconds + SEAT_GRACE_SECONDS
        return thread.lease.acquired_at + int(allowed * 1000)


def missing_reason(view: SeatView) -> str | None:
    """Why a seat has no reply that counts, in one line; None when it has one.

    Once the round is closed it says the same at every look.
    """
    state, reply = view.stands.state, view.stands.reply
    if state in ("valid", "valid_after_kill", "late"):
        return None
    if reply is not None:
        return reply.reason
    if state == "timed_out":
        closing = view.seat.closing
        return "its time limit is over" if closing is None else f"at the deadline: {closing}"
    return on_the_way(view)


def answered_by(desk: Desk, seat: SeatView) -> str | None:
    """The agent that held the lease with which a seat's reply was handed in; None when that is
    not known any more."""
    if seat.stands.reply is None:
        return None
    with desk.database.snapshot() as snapshot:
        attempt = attempts.get(snapshot, seat.stands.reply.attempt_id)
    if attempt is None or attempt.thread_id is None:
        return None
    lease = desk.bus.last_lease(attempt.thread_id)
    return None if lease is None else lease.holder


def voted_by(desk: Desk, view: CouncilView, seat: SeatView) -> str | None:
    """The agent that answered for a seat in the second round, once that is over."""
    if len(view.rounds) < VOTES or view.rounds[VOTES - 1].open:
        return None
    voting = [v for v in view.seats_of(VOTES) if v.seat.reviewer == seat.seat.reviewer]
    return answered_by(desk, voting[0]) if voting and not missing_reason(voting[0]) else None


def on_the_way(view: SeatView) -> str:
    """How far a seat has come that has not replied."""
    again = " to mend its reply" if view.attempt is not None and view.attempt.number > 1 else ""
    state = view.stands.state
    if view.thread is not None and view.thread.finished_at is not None:
        return f"was asked{again}: answered after the deadline"
    if view.thread is not None and view.thread.holder is not None:
        return f"{view.thread.holder} was asked{again}, has claimed it and not finished"
    if state == "delivered":
        return f"was asked{again}: read, and not claimed"
    return f"was asked{again}: it has not been claimed"


def decisions_of(council: StoredCouncil) -> tuple[Decision, ...]:
    """What the brief asks to be decided."""
    return tuple(
        Decision(each["id"], each["question"], tuple(each["choices"]))
        for each in json.loads(council.decisions)
    )


def decision_json(decision: Decision) -> dict[str, Any]:
    """A declared decision in JSON, as it is stored, too."""
    return {**decision._asdict(), "choices": list(decision.choices)}


def expected_of(council: StoredCouncil, number: int) -> "Expected":
    """What a reply in a round must belong to."""
    from .prompts import anchors_of
    from .replies import Expected

    return Expected(
        council.run_id,
        number,
        council.brief_sha256,
        decisions_of(council),
        anchors_of(council.brief),
    )


def _round(each: Round) -> dict[str, Any]:
    return {
        "number": each.number,
        "opened_at": rfc3339(each.opened_at),
        "deadline": rfc3339(each.deadline_at),
        "closed_at": rfc3339(each.closed_at),
        "closed_by": each.closed_by,
    }


def _near_council(tx: Session, known: Collection[str], name: str) -> str:
    names = [run.name for run in runs.every(tx) if run.id in known]
    return did_you_mean(name[:200], names, "`orch council list` shows them")
