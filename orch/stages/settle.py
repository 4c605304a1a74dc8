"""What an agent's visit has come to, once its thread is over: its work is harvested, or taken back.

Git is asked in the lock of the attempt, in which the visit also ends: no other leader can have sent
the next worker into a worktree that is put back here. Doing it again comes to the same.
"""

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

from inbox_orch.inbox.domain.model import Message, Thread
from inbox_orch.shared.adapters.usage import session_in
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store import kept_files
from inbox_orch.shared.store.artifacts import Stored
from inbox_orch.shared.store.engine import Transaction

from ..attempts import fold, harvesting, moving, patches, verify
from ..attempts import rows as attempts
from ..attempts import visit_rows as visits
from ..attempts.patches import Judged
from ..attempts.visits import Visit
from ..git import snapshots, worktrees
from ..git.commands import NO_ANSWER, git
from ..git.facts import facts
from ..git.repository import Repository, is_there
from ..git.snapshots import ref_of
from ..git.worktrees import Hold
from ..patches.hiding import covered, hidden
from ..runs.costs import cost_in
from ..runs.desk import Desk, place_of
from . import ahead, judging, overtime, sessions, text_visit
from .course import Course
from .documents_only import not_documents
from .judging import By
from .model import Stage

_MOST_REASON = 1000
_MOST_PATHS = 100
_BUSY_SECONDS = 0.5
AUTHORS = ("agent",)
VERDICTS = ("approve", "request_changes", "reject")
Held = tuple[Repository, Hold]
"""The repository, and the lock of the attempt."""


class Ending(NamedTuple):
    """How a visit ends, the columns that only its kind has, and what its worker said last."""

    outcome: "Outcome"
    columns: Mapping[str, Any]
    said: Message | None = None


class Outcome(NamedTuple):
    """How a visit ends: its `state`, a `verdict` of a review, why, what is stored of it as JSON;
    whether the worktree is put back to what it was before; and whether that ends the attempt."""

    state: str
    verdict: str | None = None
    reason: str | None = None
    result: Mapping[str, Any] | None = None
    put_back: bool = False
    fatal: bool = False


def settle(desk: Desk, course: Course) -> bool:
    """End the visit of an agent whose thread is over; False when another leader is at it, or was
    quicker, or its worktree cannot be looked at now, or its worker may still be writing there.
    Errors: those of git and of every write."""
    visit = course.live
    assert visit is not None
    if overtime.settles_ms(desk, course.run, visit) is not None:
        return False  # its worker has been stopped, and may not know it yet
    stage = course.stage_of(visit)
    assert stage is not None, "only stages of agents have workers"
    return conclude(desk, course, stage, partial(_of_agent, desk, course, visit, stage))


def conclude(desk: Desk, course: Course, stage: Stage, ending: Callable[[Held], Ending]) -> bool:
    """End the live visit with what `ending` comes to in the lock of its attempt; returns and errors
    as `settle`."""
    visit, attempt = course.live, course.attempt
    assert visit is not None
    if not is_there(str(attempt.worktree_path)):
        return False  # the attempt is lost, or its file system is away for a time
    repository = desk.repository(course.run)
    try:
        with worktrees.alone(repository, place_of(desk, attempt), _BUSY_SECONDS) as hold:
            if not _is_still(desk, course, visit):
                return False
            return _conclude(desk, course, (visit, stage), ending, (repository, hold))
    except InboxOrchError as error:
        if error.code != "busy" and is_there(str(attempt.worktree_path)):
            raise
        return False


def _is_still(desk: Desk, course: Course, visit: Visit) -> bool:
    with desk.database.snapshot() as snapshot:
        present = attempts.get(snapshot, course.attempt.id)
        live = visits.live_of(snapshot, course.attempt.id)
    assert present is not None
    same = present.state == course.attempt.state
    return same and live is not None and live.number == visit.number


def _of_agent(desk: Desk, course: Course, visit: Visit, stage: Stage, held: Held) -> Ending:
    thread = desk.bus.threads([str(visit.thread_id)])[str(visit.thread_id)]
    said = _last_words(desk, thread)
    noted = visit.found.get("settling")
    if overtime.is_over(visit):
        said = None
    outcome = _outcome(desk, course, stage, thread, said) if noted is None else Outcome(**noted)
    worker = _last_holder(desk, thread) if said is None else said.sender
    columns = {"worker": worker, "worked_ms": _worked_ms(desk, thread)}
    if outcome.state == "succeeded" and stage.writes:
        try:
            refused = text_visit.refusal(desk, course, stage, held) if stage.hands_in else None
            if refused is not None:
                failed = Outcome("failed", reason=refused[:_MOST_REASON], put_back=True)
                return Ending(failed, columns, said)
            outcome = _harvested(desk, course, outcome, held)
        except (snapshots.Unfit, InboxOrchError) as error:
            outcome = unreadable(course, error)
    return Ending(outcome, columns, said)


def _conclude(
    desk: Desk,
    course: Course,
    about: tuple[Visit, Stage],
    ending: Callable[[Held], Ending],
    held: Held,
) -> bool:
    visit, stage = about
    outcome, columns, said = ending(held)
    try:
        outcome, kept = _put_right(desk, course, stage, (outcome, said), held)
    except (snapshots.Unfit, InboxOrchError) as error:
        outcome, kept = unreadable(course, error), _NOTHING
    ends = {
        **columns,
        "tree_after": kept.tree,
        "snapshot": kept.commit,
        "head": kept.head,
        "result": _stored(outcome, said, kept),
    }
    with desk.database.transaction() as tx:
        if not end(desk, tx, course, visit, outcome, ends):
            return False
        if kept.judged is not None:
            judging.record(desk, tx, course, kept.judged)
        if outcome.fatal:
            _end_attempt(desk, tx, course, outcome)
        return True


# -- what was handed in ------------------------------------------------------------------


def _last_words(desk: Desk, thread: Thread) -> Message | None:
    kind = "result" if thread.state == "done" else "failure"
    return desk.bus.last_message(thread.id, kind)


def _last_holder(desk: Desk, thread: Thread) -> str | None:
    held = desk.bus.holders([thread.id]).get(thread.id)
    return None if held is None or thread.state != "cancelled" else held.names[-1]


def _outcome(
    desk: Desk, course: Course, stage: Stage, thread: Thread, said: Message | None
) -> Outcome:
    visit = course.live
    assert visit is not None
    if overtime.is_over(visit):
        # Of a review nobody who writes could make anything.
        state = "lost" if stage.reviews else "failed"
        return Outcome(state, reason=visit.reason, put_back=True)
    words = "" if said is None or said.body is None else hidden(" ".join(said.body.split()))
    if thread.state == "failed" and thread.reason == "exhausted":
        lost = f"no delivery left after {thread.deliveries} (workers died or handed it back)"
        if stage.reviews and words:
            lost += f": {words}"
        return Outcome("lost", reason=lost[:_MOST_REASON])
    if thread.state == "failed":
        reason = words[:_MOST_REASON] or "its worker gave up"
        # A review that comes to no verdict is nothing that a writer could do anything about.
        state = "lost" if stage.reviews and not thread.fatal else "failed"
        return Outcome(state, reason=reason, put_back=True, fatal=thread.fatal)
    if not stage.reviews:
        return Outcome("succeeded", reason=None)
    return _verdict(course, said)


def _verdict(course: Course, said: Message | None) -> Outcome:
    """What a review says. Nobody approves what they wrote."""
    found = covered(verdict_of(said))
    verdict = found.get("verdict")
    if verdict is None:
        return Outcome("lost", reason="its verdict cannot be read")
    if said is not None and said.sender in authors_of(course):
        reason = f"{said.sender} has written what it reviewed"
        return Outcome("skipped", reason=reason, result=found, put_back=True)
    state = "succeeded" if verdict == "approve" else "failed"
    reason = str(found.get("summary", ""))[:_MOST_REASON]
    return Outcome(state, verdict, reason, found, put_back=True)


def authors_of(course: Course) -> set[str | None]:
    """Who has written what is judged."""
    return {v.worker for v in course.visits if v.kind in AUTHORS and not _reviews(course, v)}


def verdict_of(said: Message | None) -> dict[str, Any]:
    """The verdict of a review with all that stands beside it; empty where it cannot be read."""
    found = _json_of(said)
    return found if found.get("verdict") in VERDICTS else {}


def _reviews(course: Course, visit: Visit) -> bool:
    stage = course.stage_of(visit)
    return stage is not None and stage.reviews


def _json_of(said: Message | None) -> dict[str, Any]:
    for text in () if said is None else (said.payload, said.body):
        try:
            value = json.loads(text or "null")
        except ValueError:
            continue
        if isinstance(value, dict) and "verdict" in value:
            return value
    return {}


def _worked_ms(desk: Desk, thread: Thread) -> int:
    times = desk.bus.work_times([thread.id]).get(thread.id)
    if times is None or times.first_claimed_at is None or thread.finished_at is None:
        return 0
    return max(0, thread.finished_at - times.first_claimed_at - times.blocked_ms)


def _stored(outcome: Outcome, said: Message | None, kept: "_Kept") -> str | None:
    cost = None if said is None else cost_in(said.payload)
    session = None if said is None or said.kind != "result" else session_in(said.payload)
    facts = {
        **(outcome.result or {}),
        **({} if session is None else {sessions.KEY: session.as_json()}),
        **({} if cost is None else {"cost": cost.as_json()}),
        **({"put_back": list(kept.taken_back)} if kept.taken_back else {}),
    }
    return json.dumps(facts, ensure_ascii=False) if facts else None


# -- the worktree ------------------------------------------------------------------------


def _harvested(desk: Desk, course: Course, outcome: Outcome, held: Held) -> Outcome:
    """Commit what the worker has left, and look at what it has come to."""
    done = harvesting.commit_left_in(desk, course.run, course.task, course.attempt, held)
    if done.obstacle is not None:
        return Outcome("failed", reason=f"not committed: {done.obstacle}", put_back=True)
    if done.found is None:
        return Outcome("failed", reason="its worktree cannot be looked at", put_back=True)
    if done.found.head is not None:
        ahead.remember(course.attempt, done.found.head, done.found.commits_ahead)
    reasons, _ = verify.objections(done.found, True)
    if reasons:
        return Outcome("failed", reason="; ".join(reasons)[:_MOST_REASON], put_back=True)
    return outcome


class _Kept(NamedTuple):
    """What lies in the worktree when a visit is over, the commit that keeps it, its HEAD, what was
    taken back, and what the policy says of the change."""

    tree: str | None
    commit: str | None
    head: str | None
    taken_back: tuple[str, ...] = ()
    judged: Judged | None = None


_NOTHING = _Kept(None, None, None)


def _put_right(
    desk: Desk, course: Course, stage: Stage, ended: tuple[Outcome, Message | None], held: Held
) -> tuple[Outcome, _Kept]:
    """Judge what changed, keep what lies there, and let files, index and HEAD be as they were
    before if the visit does not count."""
    (repository, hold), (outcome, said), found = held, ended, None
    attempt, before = course.attempt, course.last_snapshot
    worktree, known = str(attempt.worktree_path), verify.untracked_at_start(attempt)
    message, ref = f"After stage {stage.id}", ref_of(attempt.id)
    made = snapshots.snapshot(repository, worktree, known, ref, message, before)
    if outcome.state == "succeeded" and stage.writes:
        outcome = _changed(course, stage, outcome, (repository, made.tree))
    if outcome.state == "succeeded" and stage.writes and made.head is not None:
        found = judging.judged(desk, course, stage, made.head, _by(desk, course, said, made.head))
        if found is not None and found.denied:
            outcome = Outcome("failed", reason=found.rejection, put_back=True)
    visit = course.live
    assert visit is not None
    taken_back = tuple(visit.found.get("put_back", ()))
    unmoved = made.tree == course.last_tree and is_head_as_before(course)
    if before is None or unmoved or (stage.writes and not outcome.put_back):
        return outcome, _Kept(made.tree, made.commit, made.head, taken_back, found)
    changed = facts(repository, str(course.last_tree), made.tree).files
    taken_back = tuple(each.path for each in changed[:_MOST_PATHS]) or taken_back
    # Whoever looks after that does not see any more why.
    noted = {"settling": outcome._asdict(), "put_back": list(taken_back)}
    settling = {**visit.found, **noted}
    with desk.database.transaction() as tx:
        visits.update(tx, visit, {"result": json.dumps(settling, ensure_ascii=False)})
        if found is not None:
            judging.record(desk, tx, course, found)
    snapshots.restore(repository, worktree, hold, before, known)
    made = snapshots.snapshot(repository, worktree, known, ref, message, before)
    return outcome, _Kept(made.tree, made.commit, made.head, taken_back)


def _by(desk: Desk, course: Course, said: Message | None, head: str) -> By:
    """How the change of an agent's visit came, and who wrote it, in which words."""
    with desk.database.snapshot() as snapshot:
        present = attempts.get(snapshot, course.attempt.id)
    assert present is not None
    author = course.attempt.mailbox if said is None else said.sender
    words = "" if said is None else said.body or ""
    return By(patches.handed_in(present, head), author, words)


def is_head_as_before(course: Course) -> bool:
    """Whether HEAD is at the commit that it was at, and on the branch of the attempt."""
    asking = ("rev-parse", "HEAD^{commit}", "--symbolic-full-name", "HEAD")
    worktree = str(course.attempt.worktree_path)
    said = git(worktree, *asking, reads=True, accepted=(0, 128))[1].split()
    return said == [course.last_head, f"refs/heads/{course.attempt.branch}"]


def unreadable(course: Course, error: snapshots.Unfit | InboxOrchError) -> Outcome:
    """The end of a visit whose worktree cannot be kept as it is, or of which git cannot make sense:
    somebody has to look. Raises what is this machine's trouble, and when the worktree is gone."""
    if isinstance(error, InboxOrchError):
        if not _is_of_worktree(error) or not is_there(str(course.attempt.worktree_path)):
            raise error
        return Outcome("error", reason=f"unreadable: {error.message}"[:_MOST_REASON])
    reason = f"what lies in its worktree cannot be kept: {error}"
    return Outcome("error", reason=reason[:_MOST_REASON])


def _is_of_worktree(error: InboxOrchError) -> bool:
    """Whether the worktree alone is why git could not do it: not the machine, no setting of all."""
    said = error.details
    no_worktree = "folder" in said and said.get("setting") is None
    return error.code == "git_failed" and (said.get("status") != NO_ANSWER or no_worktree)


def _changed(
    course: Course, stage: Stage, outcome: Outcome, now: tuple[Repository, str]
) -> Outcome:
    """Whether what a visit has changed is a change, and of what it may change."""
    (repository, tree), before = now, course.last_tree
    if tree == before and not course.task.allow_empty and not _mends(course):
        return Outcome("failed", reason="it changed nothing", put_back=True)
    if tree != before and tree == _first_tree(course) and not course.task.allow_empty:
        reason = "it has undone the work: all is as it was at the beginning"
        return Outcome("failed", reason=reason, put_back=True)
    if stage.toolset == "docs" and before is not None and tree != before:
        others = not_documents(repository, before, tree)
        if others:
            reason = f"only documents may change, not {', '.join(others[:5])}"
            return Outcome("failed", reason=reason[:_MOST_REASON], put_back=True)
    return outcome


def _first_tree(course: Course) -> str | None:
    start = attempts.details_of(course.attempt).start
    return None if start is None else start.tree


def _mends(course: Course) -> bool:
    """Whether it was asked to mend what a gate found: that this has not changed, the gate tells."""
    over = [v for v in course.visits if not v.live and v.state not in ("lost", "void")]
    last = next((v for v in reversed(over) if v.kind != "decision"), None)
    return last is not None and last.kind == "gates" and last.state == "failed"


# -- the end of a visit ------------------------------------------------------------------


def end(
    desk: Desk,
    tx: Transaction,
    course: Course,
    visit: Visit,
    outcome: Outcome,
    columns: Mapping[str, Any],
) -> bool:
    """End a visit, with its event; False when it is over already."""
    values = {
        **columns,
        "state": outcome.state,
        "verdict": outcome.verdict,
        "reason": outcome.reason,
        "ended_at": tx.now.wall_ms,
    }
    if not visits.update(tx, visit, values):
        return False
    _keep_output(tx, course.run.id, columns.get("result"))
    present = attempts.get(tx, course.attempt.id)
    assert present is not None
    facts = {
        "visit": visit.number,
        "stage": visit.stage,
        "nth": visit.nth,
        "kind": visit.kind,
        "state": outcome.state,
        "verdict": outcome.verdict,
        "why": outcome.reason,
        "worker": columns.get("worker"),
    }
    moving.record_attempt(desk, tx, course.run, present, "visit_ended", facts)
    return True


def _keep_output(tx: Transaction, run_id: str, result: str | None) -> None:
    """Keep the files that a visit has put out until its run is over, and as long as what threads
    carry from then on."""
    found = json.loads(result or "{}")
    files = [Stored(*each["artifact"]) for each in found.get("gates", ()) if each.get("artifact")]
    files += [Stored(**each) for each in found.get("artifacts", ())]
    for stored in files:
        kept_files.keep(tx, stored, run_id, "output", tx.now.wall_ms)


def _end_attempt(desk: Desk, tx: Transaction, course: Course, outcome: Outcome) -> None:
    present = attempts.get(tx, course.attempt.id)
    assert present is not None
    changes = {"fatal": 1, "reason": outcome.reason}
    fold.end_attempt(
        desk, tx, course.run, present, moving.Move("failed", str(outcome.reason), changes)
    )
