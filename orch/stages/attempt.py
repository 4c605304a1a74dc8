"""Attempts that go by a blueprint, as a kind of work; and what carries them from stage to stage.

`advance` does all that takes no time, `working` runs gates and actions with turns for its caller.
Both look at what is written down and nothing else, so that it does not matter which leader does
it, nor which one died before.
"""

from collections.abc import Generator, Sequence

from inbox_orch.shared.store.engine import Session, Transaction

from ..attempts import rows as attempts
from ..attempts.kinds import FirstMessage
from ..attempts.verify import verify
from ..git.repository import is_there
from ..git.worktrees import Hold
from ..runs.config import NoAnswer, config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from . import accept, begin, course, decide, enter, gating, outdated, overtime, seats
from . import settle as settling
from .course import Course
from .machine import Step, has_to_wait
from .model import FIRST_STAGE, SURROUNDINGS

_OVERDUE_LOOK_MS = 500
AT_HAND = ("provisioned", "submitted")
"""The states in which an attempt waits for a leader."""
NEEDS_WORKTREE = ("offer", "gates", "action", "council")
"""The steps that nothing can be done about without a worktree."""


def prepare(desk: Desk, run: Run, task: Task, attempt: Attempt, hold: Hold) -> Attempt:
    """The worktree with all that is found there, and a first snapshot of it."""
    return begin.prepare(desk, run, task, attempt, hold)


def offer(
    desk: Desk, tx: Transaction, run: Run, task: Task, attempt: Attempt, text: FirstMessage
) -> Attempt:
    """Its first visit begins: the gates are tried on the base, if that is still to be done; or the
    first stage."""
    return begin.begin(desk, tx, run, attempt)


def take_in(desk: Desk, run: Run) -> int:
    """Judge what has come; see `advance`."""
    return verify(desk, run)


def thread_behind(tx: Session, attempt: Attempt) -> str | None:
    """The thread on which events about an attempt stand."""
    return attempt.thread_id


def advance(desk: Desk, run: Run, live: Sequence[Attempt]) -> int:
    """Carry each attempt as far as it goes without running a gate; returns how many steps that
    were. What cannot be done now waits. Errors: those of git and of every write."""
    late = overtime.end_late(desk, run, live)
    at_hand = [*(a for a in live if a.state in AT_HAND), *late]
    ended = end_unanswered(desk, run, live, None)
    return ended + len(late) + sum(_advance(desk, run, attempt) for attempt in at_hand)


def working(
    desk: Desk, run: Run, live: Sequence[Attempt], starts_before_ms: float | None
) -> Generator[None, None, bool | None]:
    """Run the gates or the action of one stage, with turns for the caller; returns whether it came
    to an end, None when there is none to run."""
    proved_now = {_base_tree(a) for a in live if a.state == "verifying" and a.stage == SURROUNDINGS}
    for attempt in live:
        if attempt.state not in AT_HAND:
            continue
        if attempt.stage == SURROUNDINGS and _base_tree(attempt) in proved_now:
            continue  # what the other one finds out holds for this one, too
        with desk.database.snapshot() as snapshot:
            now = course.read(snapshot, run, attempt.id)
        if (
            now.attempt.state in AT_HAND
            and gating.is_next(now)
            and not outdated.holds_up(desk, now)
        ):
            begun = gating.begin(desk, now)
            if begun is not None:
                ended = yield from gating.carry_on(desk, begun, starts_before_ms)
                _advance(desk, run, attempt)
                return ended
    return None


def _base_tree(attempt: Attempt) -> str | None:
    start = attempts.details_of(attempt).start
    return None if start is None else start.base_tree


def end_unanswered(
    desk: Desk, run: Run, live: Sequence[Attempt], unanswered: NoAnswer | None
) -> int:
    """Settle the decisions that nobody has taken in time, as the config or `unanswered` says."""
    policy = unanswered or config_of(run).decisions
    ended = [
        attempt
        for attempt in live
        if attempt.deciding and decide.end_unanswered(desk, run, attempt.id, policy)
    ]
    return len(ended) + sum(_advance(desk, run, attempt) for attempt in ended)


def ask_approval(desk: Desk, tx: Transaction, run: Run, attempt: Attempt) -> None:
    """Ask whoever has to approve of what an attempt without a blueprint has handed in. Its one
    visit is over, and what comes next follows from that as for every other."""
    staged = attempts.move(tx, attempt.id, {"stage": FIRST_STAGE}, expected_state=attempt.state)
    assert staged is not None, "the attempt changed under the write lock"
    now = course.read(tx, run, attempt.id)
    visit, patch = now.live, now.waiting[-1].patch
    assert visit is not None
    columns = {"tree_after": patch.tree, "head": attempt.head_commit, "worker": patch.author}
    settling.end(desk, tx, now, visit, settling.Outcome("succeeded"), columns)
    again = course.read(tx, run, attempt.id)
    decide.ask(desk, tx, again, again.step())


def due_ms(
    desk: Desk, tx: Session, live: Sequence[Attempt], unanswered: NoAnswer | None
) -> int | None:
    """When the next back-off of a stage is over, the time to decide, or that of a visit, in
    wall-clock milliseconds."""
    found = [_due_ms(desk, tx, attempt, unanswered) for attempt in live]
    found.append(overtime.due_ms(desk, tx, live))
    return min((at_ms for at_ms in found if at_ms is not None), default=None)


def _due_ms(desk: Desk, tx: Session, attempt: Attempt, unanswered: NoAnswer | None) -> int | None:
    from ..runs import run_rows as runs

    run = runs.get(tx, attempt.run_id)
    assert run is not None
    if attempt.deciding:
        policies = filter(None, (config_of(run).decisions, unanswered))
        ends = [decide.until_ms(tx, attempt, policy) for policy in policies]
        at_ms = min((end for end in ends if end is not None), default=None)
    elif attempt.state in AT_HAND:
        now = course.read(tx, run, attempt.id)
        at_ms = _until_ms(desk, now) if now.live is not None else now.step().at_ms or None
    else:
        at_ms = None
    # What is overdue waits for room in a mailbox, say: it is looked at now and then.
    return None if at_ms is None else max(at_ms, desk.database.now().wall_ms + _OVERDUE_LOOK_MS)


def _until_ms(desk: Desk, now: Course) -> int | None:
    """When what lives is over by itself: the time of a council, or the last of a worker that was
    stopped."""
    assert now.live is not None
    return seats.until_ms(now) or overtime.settles_ms(desk, now.run, now.live)


def _advance(desk: Desk, run: Run, attempt: Attempt) -> int:
    """As many steps as follow on one another."""
    steps = 0
    while True:
        with desk.database.snapshot() as snapshot:
            now = course.read(snapshot, run, attempt.id)
        if now.attempt.state not in AT_HAND or not _step(desk, now):
            return steps
        steps += 1


def _step(desk: Desk, now: Course) -> bool:
    """One step; False when nothing can be done now."""
    live = now.live
    if live is not None and live.kind == "decision":
        return decide.settle(desk, now)
    step = None if live is not None else now.step()
    needed = step is None or step.do in NEEDS_WORKTREE
    if needed and not is_there(str(now.attempt.worktree_path)):
        return accept.lose(desk, now)
    if step is None:
        if live is not None and live.kind == "council":
            return seats.settle(desk, now)
        return live is not None and live.kind == "agent" and settling.settle(desk, now)
    if has_to_wait(step, desk.database.now().wall_ms) or outdated.holds_up(desk, now):
        return False
    return _take(desk, now, step)


def _take(desk: Desk, now: Course, step: Step) -> bool:
    if step.do == "accept":
        return accept.accept(desk, now)
    if step.do == "end":
        return accept.give_up(desk, now, step)
    return step.do in ("offer", "council", "decide") and _enter(desk, now, step)


def _enter(desk: Desk, now: Course, step: Step) -> bool:
    """Send for somebody: a worker, or whoever decides."""
    change = enter.change_of(desk, now, step)
    with desk.database.transaction() as tx:
        again = course.read(tx, now.run, now.attempt.id)
        if again.attempt.state != now.attempt.state or len(again.visits) != len(now.visits):
            return False
        if step.do == "decide":
            decide.ask(desk, tx, again, step)
            return True
        if enter.skips(desk, tx, again, step):
            return True
        send = seats.offer if step.do == "council" else enter.offer
        return send(desk, tx, again, step, change) is not None
