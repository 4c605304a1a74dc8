"""What reviewers sent, taken in: read, counted or not, sent back once, and the end of a round.

What is read is read outside of any transaction. Each outcome is one transaction, guarded by the
state that it was found for; so is the end of a round, with everything that follows from it.
"""

import json
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from inbox_orch.shared.store import events
from inbox_orch.shared.store.engine import Session, Transaction

from ..attempts import dispatch, fold, moving, provision
from ..attempts import rows as attempts
from ..attempts.choosing import Base, Chosen
from ..journal import finishing
from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from . import rows as councils
from . import views
from .handed_in import Found, Outcome, failure_words, handed_in, left_behind
from .stored import COUNTED, Round, StoredReply, StoredSeat
from .views import REPLIES, VOTES, CouncilView, SeatView, expected_of, on_the_way

if TYPE_CHECKING:
    from . import replies as reading

_WHY = 300
_MOST_LOOKS = 20


class _Place(NamedTuple):
    """Where an attempt belongs."""

    run: Run
    seat: StoredSeat
    attempt: Attempt


def refresh(desk: Desk, run: Run) -> bool:
    """Bring a council up to date: finish what was begun, fold, take in replies, send what is
    to be mended, close the round when it is over. Returns whether nothing can be written
    here, so that what is shown may be stale."""
    if not desk.database.may_note:
        return True
    finishing.finish_intents(desk, run)
    _dispatch_what_was_never_sent(desk, run)
    fold.fold(desk, run)
    take_in_replies(desk, run)
    return False


def take_in_replies(desk: Desk, run: Run) -> int:
    """Take in what has come, and end a round that is over; returns how many outcomes there
    were.

    What was handed in after the deadline is late, also when it was not looked at since: the
    round is closed before it is taken in.
    """
    settled = 0
    for _ in range(_MOST_LOOKS):
        with desk.database.snapshot() as snapshot:
            waiting = councils.unsettled(snapshot, run.id)
            late = [pair for pair in waiting if _missed_the_deadline(desk, snapshot, *pair)]
        settled += sum(_settle_one(desk, run, *pair) for pair in waiting if pair not in late)
        if not _close_if_over(desk, run):
            return settled + sum(_settle_one(desk, run, *pair) for pair in late)
        fold.fold(desk, run)
    return settled


def _missed_the_deadline(desk: Desk, tx: Session, attempt_id: str, task_id: str) -> bool:
    attempt = attempts.get(tx, attempt_id)
    seat = councils.seat_of_task(tx, task_id)
    assert attempt is not None and seat is not None
    deadline_at = councils.rounds(tx, seat.run_id)[seat.round - 1].deadline_at
    if deadline_at is None or attempt.thread_id is None:
        return False
    finished_at = desk.bus.threads([attempt.thread_id])[attempt.thread_id].finished_at
    return finished_at is not None and finished_at > deadline_at


def _dispatch_what_was_never_sent(desk: Desk, run: Run) -> None:
    """The process that opened the round may have died before it sent anything; or it sends now,
    and then this finds nothing that is ready any more."""
    view = views.view(desk, run)
    open_rounds = {each.number for each in view.rounds if each.open}
    unsent = any(s.attempt is None and s.seat.round in open_rounds for s in view.seats)
    if unsent and view.run.state == "open":
        dispatch.dispatch(desk, view.run)


# -- one outcome -------------------------------------------------------------------------


def _settle_one(desk: Desk, run: Run, attempt_id: str, task_id: str) -> bool:
    with desk.database.snapshot() as snapshot:
        attempt = attempts.get(snapshot, attempt_id)
        seat = councils.seat_of_task(snapshot, task_id)
    assert attempt is not None and seat is not None
    outcome = _outcome(desk, run, _Place(run, seat, attempt))
    with desk.database.transaction() as tx:
        present = attempts.get(tx, attempt_id)
        assert present is not None
        if present.state != attempt.state or councils.reply(tx, attempt_id):
            return False  # another leader was quicker
        to_mend = _take_in(desk, tx, _Place(run, seat, present), outcome)
    if to_mend is not None:
        _send_to_mend(desk, run, to_mend)
    return True


def _take_in(desk: Desk, tx: Transaction, place: _Place, outcome: Outcome) -> str | None:
    """Record what an attempt has come to; returns the next attempt, if there is one."""
    run, seat, attempt = place
    present = runs.get(tx, run.id)
    assert present is not None
    round_now = councils.rounds(tx, run.id)[seat.round - 1]
    mend = _may_be_mended(tx, present, seat, round_now, outcome)
    revision = None
    if not round_now.open and outcome.state in COUNTED:
        revision = revise(desk, tx, run, f"late reply of {seat.reviewer}")
    _record(desk, tx, place, outcome, late=not round_now.open, revision=revision)
    if attempt.state in ("submitted", "verifying"):
        return _move_on(desk, tx, run, attempt, outcome, mend=mend)
    return None


def _may_be_mended(
    tx: Transaction, run: Run, seat: StoredSeat, round_now: Round, outcome: Outcome
) -> bool:
    """Once, while the round is open."""
    if outcome.state != "invalid" or not round_now.open or run.state != "open":
        return False
    if round_now.deadline_at is not None and round_now.deadline_at <= tx.now.wall_ms:
        return False
    earlier = councils.replies(tx, run.id, texts=False)
    return not any(r.task_id == seat.task_id and r.state == "invalid" for r in earlier)


def _record(
    desk: Desk,
    tx: Transaction,
    place: _Place,
    outcome: Outcome,
    *,
    late: bool,
    revision: int | None,
) -> None:
    run, seat, attempt = place
    reply = StoredReply(
        attempt_id=attempt.id,
        run_id=run.id,
        task_id=seat.task_id,
        state=outcome.state,
        source=None if outcome.found is None else outcome.found.source,
        raw=outcome.kept,
        raw_bytes=outcome.size,
        raw_sha256=outcome.sha256,
        reason=outcome.reason,
        errors=json.dumps(list(outcome.errors)),
        late=late,
        revision=revision,
        created_at=tx.now.wall_ms,
    )
    councils.insert(tx, reply)
    facts = {
        "round": seat.round,
        "reviewer": seat.reviewer,
        "state": outcome.state,
        "source": reply.source,
        "sha256": reply.raw_sha256,
        "bytes": reply.raw_bytes,
        "late": late,
    }
    # With its thread, so that a sealed one hides it from other reviewers.
    about = events.About(
        run_id=run.id,
        task_id=seat.task_id,
        attempt_id=attempt.id,
        thread_id=attempt.thread_id,
    )
    events.append(tx, "reply_recorded", desk.actor(run), facts, about)


def revise(desk: Desk, tx: Transaction, run: Run, cause: str) -> int:
    """One more revision of the tally, with its event; its number."""
    number = councils.add_revision(tx, run.id, cause, tx.now.wall_ms)
    facts = {"revision": number, "cause": cause}
    events.append(tx, "tally_revised", desk.actor(run), facts, events.About(run_id=run.id))
    return number


def _move_on(
    desk: Desk, tx: Transaction, run: Run, attempt: Attempt, outcome: Outcome, *, mend: bool
) -> str | None:
    """The attempt and its task after a reply was read."""
    if attempt.state == "submitted":
        attempt = moving.move_attempt(
            desk, tx, run, attempt, moving.Move("verifying", "a reply is there")
        )
    task = tasks.by_id(tx, attempt.task_id)
    reason = None if outcome.reason is None else outcome.reason[:1000]
    if outcome.state in (*COUNTED, "abstained"):
        moving.move_attempt(desk, tx, run, attempt, moving.Move("succeeded", outcome.state))
        changes = {"accepted_attempt": attempt.id, "reason": reason}
        moving.move_task(
            desk, tx, run, task, moving.Move("succeeded", outcome.state, changes), attempt=attempt
        )
        return None
    moving.move_attempt(
        desk, tx, run, attempt, moving.Move("rejected", outcome.state, {"reason": reason})
    )
    target = "pending" if mend else "failed"
    task = moving.move_task(
        desk,
        tx,
        run,
        task,
        moving.Move(
            target,
            f"reply {outcome.state}",
            {"reason": reason, "work_failures": task.work_failures + 1},
        ),
        attempt=attempt,
    )
    return _allocate_again(desk, tx, run, task) if mend else None


def _allocate_again(desk: Desk, tx: Transaction, run: Run, task: Task) -> str:
    """Attempt 2, in the transaction in which the first was rejected."""
    base = Base(run.base_commit, run.base_ref, "run") if task.worktree else None
    return dispatch.allocate_one(desk, tx, run, Chosen(task, task.mailbox, base), ())


def _send_to_mend(desk: Desk, run: Run, attempt_id: str) -> None:
    with desk.database.snapshot() as snapshot:
        attempt = attempts.get(snapshot, attempt_id)
    assert attempt is not None
    provision.provision(desk, run, attempt)


# -- reading -----------------------------------------------------------------------------


def _outcome(desk: Desk, run: Run, place: _Place) -> Outcome:
    attempt = place.attempt
    if attempt.thread_id is None:
        return Outcome("failed", None, f"it could not be asked: {attempt.reason}"[:500])
    thread = desk.bus.threads([attempt.thread_id])[attempt.thread_id]
    read = _reader(desk, run, place.seat)
    if thread.state == "done":
        found = handed_in(desk.bus, thread)
        return read(found)
    words = failure_words(desk.bus, thread)
    if words.casefold().startswith("declined"):
        return Outcome("declined", None, words)
    for found in left_behind(desk.bus, thread):
        outcome = read(found)
        if outcome.state == "valid" and _is_whole(outcome, place.seat, desk, run):
            return Outcome("valid_after_kill", found, None)
    return Outcome("failed", None, words)


def _reader(desk: Desk, run: Run, seat: StoredSeat) -> Callable[[Found], Outcome]:
    """Reads what may be a reply in the seat's round."""
    if seat.round == VOTES:
        return lambda found: _ballot_outcome(desk, run, seat, found)
    return lambda found: _reply_outcome(desk, run, seat, found)


def _reply_outcome(desk: Desk, run: Run, seat: StoredSeat, found: Found) -> Outcome:
    read = read_reply(desk, run, seat.reviewer, found.raw)
    if read.state == "valid":
        return Outcome("valid", found)
    return Outcome(read.state, found, "; ".join(read.errors)[:_WHY] or None, read.errors)


def _ballot_outcome(desk: Desk, run: Run, seat: StoredSeat, found: Found) -> Outcome:
    if not found.raw.strip():
        return Outcome("empty", found, "there is nothing in it")
    read = read_votes(desk, run, seat, found.raw)
    if read.votes is not None:
        return Outcome("valid", found)
    return Outcome("invalid", found, "; ".join(read.errors)[:_WHY], read.errors)


def read_reply(desk: Desk, run: Run, reviewer: str, raw: bytes) -> "reading.Read":
    """What a stored reply of the first round says."""
    from . import replies as reading

    with desk.database.snapshot() as snapshot:
        council = councils.get(snapshot, run.id)
    assert council is not None
    return reading.read(raw, reviewer=reviewer, expected=expected_of(council, REPLIES))


def read_votes(desk: Desk, run: Run, seat: StoredSeat, raw: bytes) -> "reading.BallotRead":
    """What a stored ballot says."""
    from . import replies as reading

    with desk.database.snapshot() as snapshot:
        council = councils.get(snapshot, run.id)
    assert council is not None
    return reading.read_ballot(
        raw,
        reviewer=seat.reviewer,
        expected=expected_of(council, VOTES),
        labels=json.loads(seat.labels or "{}"),
        own_items=own_items(desk, run, seat.reviewer),
    )


def own_items(desk: Desk, run: Run, reviewer: str) -> tuple[str, ...]:
    """The ids of what a reviewer has raised in the first round."""
    with desk.database.snapshot() as snapshot:
        seats = views.view_in(desk, snapshot, run, texts=True).seats_of(REPLIES)
    for view in seats:
        reply = view.stands.reply
        if view.seat.reviewer == reviewer and reply is not None and reply.raw is not None:
            read = read_reply(desk, run, reviewer, reply.raw)
            return () if read.reply is None else tuple(item.id for item in read.reply.items)
    return ()


# -- the end of a round ------------------------------------------------------------------


def _close_if_over(desk: Desk, run: Run) -> bool:
    """End the round if it is over; whether it could not be ended yet, because something came
    in time that has not been taken in."""
    if _closing(views.view(desk, run), desk.database.now().wall_ms) is None:
        return False
    with desk.database.transaction() as tx:
        view = views.view_in(desk, tx, run)
        closed_by = _closing(view, tx.now.wall_ms)
        if closed_by is None or view.open_round is None:
            return False  # another leader was quicker
        if any(_came_in_time(seat, view.open_round) for seat in view.seats):
            return True
        _close(desk, tx, view, view.open_round, closed_by)
        return False


def _close(desk: Desk, tx: Transaction, view: CouncilView, ending: Round, closed_by: str) -> None:
    """The round ends, its threads are unsealed, and there is something to be counted."""
    run, number = view.run, ending.number
    councils.close_round(tx, run.id, number, closed_by, tx.now.wall_ms)
    for seat in view.seats_of(number):
        if seat.stands.reply is None:
            councils.note_closing(tx, seat.seat, on_the_way(seat))
    facts = {
        "round": number,
        "by": closed_by,
        "seats": {s.seat.reviewer: s.stands.state for s in view.seats_of(number)},
    }
    events.append(tx, "round_closed", desk.actor(run), facts, events.About(run_id=run.id))
    revise(desk, tx, run, f"round {number} closed")
    for thread_id in councils.threads_of_round(tx, run.id, number):
        desk.bus.unseal(thread_id, agent=run.leader)


def _closing(view: CouncilView, now_ms: int) -> str | None:
    """Why the open round is over now; None when it is not, or there is none."""
    present = view.open_round
    if present is None:
        return None
    if all(seat.stands.final for seat in view.seats_of(present.number)):
        return "final"
    over = present.deadline_at is not None and present.deadline_at <= now_ms
    return "deadline" if over else None


def _came_in_time(view: SeatView, present: Round) -> bool:
    """Whether a seat's thread ended before the deadline and has not been taken in yet."""
    if view.seat.round != present.number or view.stands.final or view.thread is None:
        return False
    ended_at = view.thread.finished_at
    in_time = present.deadline_at is None or (ended_at or 0) <= present.deadline_at
    return ended_at is not None and in_time


def _is_whole(outcome: Outcome, seat: StoredSeat, desk: Desk, run: Run) -> bool:
    """Whether what a stopped command left behind is surely a reply: an error message in prose
    would be read as one, too."""
    if seat.round == VOTES or outcome.found is None:
        return outcome.found is not None
    read = read_reply(desk, run, seat.reviewer, outcome.found.raw)
    return read.reply is not None and not any(item.text_only for item in read.reply.items)


def fresh_word(*texts: str) -> str:
    """A word that none of the texts has."""
    while True:
        word = os.urandom(8).hex()
        if not any(word in text for text in texts):
            return word
