"""Stages of the type council: the same change goes to three seats, and a majority decides.

A seat is a thread in the mailbox of the stage's role, sent with the two others in one transaction;
the visit has them in its result. Whatever leader looks counts what has come, and comes to the same.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from inbox_orch.inbox.domain.model import Thread
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import counted, new_id
from inbox_orch.shared.store.engine import Transaction

from ..attempts import rows as attempts
from ..attempts.visits import Visit, seats_of
from ..runs.desk import Desk
from ..runs.model import Attempt
from . import enter
from . import settle as settling
from .course import Course
from .machine import Step
from .model import Stage
from .roles import mailbox_of
from .settle import Ending, Outcome

SEATS = 3
MAJORITY = 2


def as_review(stage: Stage) -> Stage:
    """What each seat is asked, as a stage of a reviewer."""
    return stage._replace(reviews=True, writes=False)


def offer(
    desk: Desk, tx: Transaction, course: Course, step: Step, change: enter.Change
) -> Attempt | None:
    """Send the three threads; None when the mailbox has no room for them now. Meanwhile the attempt
    stays with the leaders, as it does while a gate runs."""
    stage = as_review(course.blueprint.by_id[str(step.stage)])
    mailbox = mailbox_of(course.run, course.task, stage, course.visits)
    if not enter.has_room(tx, course, mailbox):
        return None
    attempt = course.attempt._replace(mailbox=mailbox)
    threads = [new_id() for _ in range(SEATS)]
    for thread_id in threads:
        entered = (stage, step, change)
        enter.send(desk, tx, course._replace(attempt=attempt), entered, thread_id)
    values = {
        "mailbox": mailbox,
        "tree_before": course.last_tree,
        "result": json.dumps({"seats": threads}),
    }
    number = enter.insert(tx, course, stage.id, "council", values)
    columns = {"mailbox": mailbox, "stage": stage.id, "updated_at": tx.now.wall_ms}
    attempts.update(tx, attempt.id, columns, expected_state=attempt.state)
    enter.record(desk, tx, course, number, {"stage": stage.id, "mailbox": mailbox})
    return attempt


def until_ms(course: Course) -> int | None:
    """When the time of a live council is over, in wall-clock milliseconds; None without any."""
    visit = course.live
    stage = None if visit is None or visit.kind != "council" else course.stage_of(visit)
    if visit is None or stage is None or stage.timeout_seconds is None:
        return None
    return visit.created_at + int(stage.timeout_seconds * 1000)


def settle(desk: Desk, course: Course) -> bool:
    """End the visit when a majority says the same, or none can come any more; False as long as that
    is open, and as for `settle.settle`. Errors: those of git and of every write."""
    visit = course.live
    assert visit is not None
    desk.bus.reap([str(visit.mailbox)])
    threads = list(desk.bus.threads(seats_of(visit)).values())
    until = until_ms(course)
    late = until is not None and until <= desk.database.now().wall_ms
    voices = _voices(desk, course, threads)
    still = [thread for thread in threads if thread.finished_at is None]
    outcome = _outcome(visit, voices, open_seats=0 if late else len(still))
    if outcome is None:
        return False
    for thread in still:
        _call_off(desk, course, thread)
    stage = course.stage_of(visit)
    assert stage is not None
    by = ", ".join(str(voice["by"]) for voice in voices) or None
    ending = Ending(outcome, {"worker": by})
    return settling.conclude(desk, course, as_review(stage), lambda held: ending)


def _call_off(desk: Desk, course: Course, thread: Thread) -> None:
    try:
        desk.bus.cancel(thread.id, body="it is decided without it", agent=course.run.leader)
    except InboxOrchError as error:
        if error.code != "invalid_state":  # it has just ended by itself
            raise


def _voices(desk: Desk, course: Course, threads: Sequence[Thread]) -> list[dict[str, Any]]:
    """The verdicts that count: one for each reviewer, and none of whoever wrote what is judged."""
    authors, found = settling.authors_of(course), dict[str, dict[str, Any]]()
    for thread in threads:
        said = desk.bus.last_message(thread.id, "result") if thread.state == "done" else None
        verdict = settling.verdict_of(said)
        if said is None or not verdict or said.sender in authors or said.sender in found:
            continue
        found[said.sender] = {"by": said.sender, **verdict}
    return list(found.values())


def _outcome(
    visit: Visit, voices: Sequence[Mapping[str, Any]], *, open_seats: int
) -> Outcome | None:
    """What the seats have come to; None as long as a majority may still come."""
    votes = Counter(str(voice["verdict"]) for voice in voices)
    verdict, most = votes.most_common(1)[0] if votes else ("", 0)
    result = {"seats": seats_of(visit), "voices": [dict(voice) for voice in voices]}
    if most >= MAJORITY:
        reason = "; ".join(_summary(v) for v in voices if v["verdict"] == verdict)[:1000]
        findings = [f for v in voices for f in v.get("findings") or () if isinstance(f, dict)]
        facts = {**result, "verdict": verdict, "summary": reason, "findings": findings}
        state = "succeeded" if verdict == "approve" else "failed"
        return Outcome(state, verdict, reason, facts, put_back=True)
    if open_seats:
        return None
    said = ", ".join(f"{name} {number}" for name, number in sorted(votes.items())) or "nobody"
    heard = counted(len(voices), "reviewer")
    return Outcome("error", reason=f"no majority of {SEATS} seats: {said} ({heard})", result=result)


def _summary(voice: Mapping[str, Any]) -> str:
    return f"{voice['by']}: {voice.get('summary', '')}"
