"""The seats of a council as a kind of work: what a reviewer is sent, and what comes back."""

import json

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.store.engine import Session, Transaction

from ..attempts import moving, work
from ..attempts import rows as attempts
from ..attempts.kinds import FirstMessage
from ..git.worktrees import Hold, make_read_only
from ..runs.desk import Desk
from ..runs.limits import MAX_DELIVERIES
from ..runs.model import Attempt, Run, Task
from . import rows as councils
from . import take_in as council_settling
from .stored import StoredSeat
from .take_in import fresh_word
from .views import REPLIES


def prepare(desk: Desk, run: Run, task: Task, attempt: Attempt, hold: Hold) -> Attempt:
    """A reviewer reads in its worktree; what it would change there goes nowhere."""
    made = work.prepare(desk, run, task, attempt, hold)
    with desk.database.snapshot() as snapshot:
        seat = councils.seat_of_task(snapshot, task.id)
    if seat is not None and attempt.worktree_path is not None:
        make_read_only(attempt.worktree_path)
    return made


def offer(
    desk: Desk, tx: Transaction, run: Run, task: Task, attempt: Attempt, text: FirstMessage
) -> Attempt:
    """A reviewer's thread: sealed until the round closes, and nothing in it says how many
    others there are or what they wrote."""
    seat = councils.seat_of_task(tx, task.id)
    if seat is None:
        return work.offer(desk, tx, run, task, attempt, text)
    council = councils.get(tx, run.id)
    assert council is not None
    round_now = councils.rounds(tx, run.id)[seat.round - 1]
    facts = {
        "council": run.id,
        "round": seat.round,
        "brief_sha256": council.brief_sha256,
        "attempt": attempt.number,
        "worktree": attempt.worktree_path,
        "base_commit": attempt.base_commit,
        "timeout_seconds": council.seat_seconds,
        "deadline": rfc3339(round_now.deadline_at),
        "database": desk.database.address,
        "database_id": desk.database.id,
    }
    payload = {name: value for name, value in facts.items() if value is not None}
    what = "Review" if seat.round == REPLIES else "Vote"
    sent = desk.bus.send(
        to=attempt.mailbox,
        subject=f"{what}: {run.title}",
        body=_to_mend(desk, tx, seat) + task.body,
        payload=json.dumps(payload),
        max_deliveries=MAX_DELIVERIES,
        sealed=round_now.open,
        agent=run.leader,
    )
    return moving.hand_out(desk, tx, run, attempt, sent.thread.id)


def _to_mend(desk: Desk, tx: Transaction, seat: StoredSeat) -> str:
    """What comes before the request when the last reply could not be read."""
    from . import prompts

    earlier = [
        reply
        for reply in councils.replies(tx, seat.run_id)
        if reply.task_id == seat.task_id and reply.state == "invalid"
    ]
    if not earlier:
        return ""
    raw = (earlier[-1].raw or b"").decode("utf-8", "replace").replace("\0", "\ufffd")
    return prompts.repair_prompt(raw, json.loads(earlier[-1].errors), fresh_word(raw)) + "\n"


def take_in(desk: Desk, run: Run) -> int:
    """Take in what reviewers have sent, and end a round that is over."""
    return council_settling.take_in_replies(desk, run)


def thread_behind(tx: Session, attempt: Attempt) -> str | None:
    """The thread on which events about an attempt stand.

    An attempt at a seat that has no thread yet stands on that of the one before: other reviewers
    must not see that a reply is being mended.
    """
    if attempt.thread_id is not None or attempt.number == 1:
        return attempt.thread_id
    if councils.seat_of_task(tx, attempt.task_id) is None:
        return None
    earlier = [a.thread_id for a in attempts.of_task(tx, attempt.task_id)]
    return next((thread for thread in reversed(earlier) if thread is not None), None)
