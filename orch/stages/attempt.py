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
from ..git.worktrees import Hold
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from . import accept, begin, course, decide, enter, gating
from . import settle as settling
from .course import Course
from .model import SURROUNDINGS

AT_HAND = ("provisioned", "submitted")
"""The states in which an attempt waits for a leader."""


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
    return sum(_advance(desk, run, attempt) for attempt in live if attempt.state in AT_HAND)


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
        if now.attempt.state in AT_HAND and gating.is_next(now):
            begun = gating.begin(desk, now)
            if begun is not None:
                ended = yield from gating.carry_on(desk, begun, starts_before_ms)
                _advance(desk, run, attempt)
                return ended
    return None


def _base_tree(attempt: Attempt) -> str | None:
    start = attempts.details_of(attempt).start
    return None if start is None else start.base_tree


def due_ms(desk: Desk, tx: Session, live: Sequence[Attempt]) -> int | None:
    """When the next back-off of a stage is over, in wall-clock milliseconds."""
    from ..runs import run_rows as runs

    found, known = [], dict[str, Run]()
    for attempt in live:
        if attempt.state not in AT_HAND:
            continue
        if attempt.run_id not in known:
            run = runs.get(tx, attempt.run_id)
            assert run is not None
            known[attempt.run_id] = run
        now = course.read(tx, known[attempt.run_id], attempt.id)
        if now.live is None and (at_ms := now.step().at_ms):
            found.append(at_ms)
    return min(found, default=None)


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
    if live is not None:
        if live.kind == "decision":
            return decide.settle(desk, now)
        return live.kind == "agent" and settling.settle(desk, now)
    step = now.step()
    if step.at_ms > desk.database.now().wall_ms:
        return False
    if step.do == "accept":
        return accept.accept(desk, now)
    if step.do == "end":
        return accept.give_up(desk, now, step)
    if step.do not in ("offer", "decide"):
        return False
    with desk.database.transaction() as tx:
        again = course.read(tx, now.run, now.attempt.id)
        if again.attempt.state != now.attempt.state or len(again.visits) != len(now.visits):
            return False
        if step.do == "decide":
            decide.ask(desk, tx, again, step)
            return True
        if enter.skips(desk, tx, again, step):
            return True
        return enter.offer(desk, tx, again, step) is not None
