"""Decisions: asking somebody, and what was answered.

A decision is a visit whose worker is whoever answers: its own thread in the mailbox `operator`,
with a packet of what there is to know. It is settled once.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.inbox.services import sending
from inbox_orch.inbox.services.desk import Draft
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import check_name, new_id, plain_number
from inbox_orch.shared.store.engine import Session, Transaction

from ..attempts import harvesting, moving, stop, verify
from ..attempts import rows as attempts
from ..attempts import visit_rows as visits
from ..attempts.visits import OPERATOR, Visit
from ..git import snapshots, worktrees
from ..git.facts import facts
from ..git.failures import shown
from ..git.repository import Repository, is_there
from ..git.worktrees import Hold
from ..journal import rows as journal_rows
from ..patches import approvals
from ..runs.config import NoAnswer
from ..runs.desk import Desk, place_of
from ..runs.model import DECISION, Attempt, Run
from . import enter, packet
from . import settle as settling
from .course import Course, read
from .machine import ANSWERS, APPROVAL_ANSWERS, Step
from .settle import Outcome
from .writers import writers_of

MAX_HINT_BYTES = 16 * 1024
OF_A_TREE = ("accept", "approve")
"""Answers about what lies in the worktree: of another tree they say nothing."""
_BUSY_SECONDS = 0.5
_MOST_NAMED = 5


class Decision(NamedTuple):
    """An open decision: the number of its visit, why it is asked (a key of `packet.SENTENCES`, and
    in words), in which stage, what may be answered, and the stage that a plain yes goes on at;
    where a policy asks for it, the ids of the `patches` that it is about."""

    visit: int
    cause: str
    sentence: str
    about: str
    answers: tuple[str, ...]
    resume: str | None
    patches: tuple[str, ...] = ()

    @property
    def by_policy(self) -> bool:
        """Whether a policy asks for it."""
        return bool(self.patches)

    def as_json(self) -> dict[str, Any]:
        facts = {**self._asdict(), "answers": list(self.answers), "patches": list(self.patches)}
        return facts if self.patches else {k: v for k, v in facts.items() if k != "patches"}


class Lying(NamedTuple):
    """What lies in a worktree: its tree, and a snapshot of it with its HEAD, if one was made; and
    what is other than it was."""

    tree: str | None
    snapshot: str | None = None
    head: str | None = None
    what: str = ""


class Answered(NamedTuple):
    """What somebody decided: one of the answers that were asked for, a hint for whoever goes on,
    and, to change the role, the mailbox that gets the stage."""

    answer: str
    hint: str = ""
    mailbox: str | None = None


def answers_to(cause: str) -> tuple[str, ...]:
    """What may be answered."""
    return APPROVAL_ANSWERS if cause == "approval" else ANSWERS


def ask(
    desk: Desk, tx: Transaction, course: Course, step: Step, seen: "Lying | None" = None
) -> Attempt:
    """Open the decision: the attempt is blocked, and gives its slot back. `seen` is what lies in
    the worktree, if that is not what was judged last."""
    seen = seen or Lying(course.last_tree)
    thread_id, cause = new_id(), str(step.cause)
    about: dict[str, Any] = {"cause": cause, "about": step.stage, "resume": step.resume}
    if step.by_policy:
        step = step._replace(reason="; ".join(each.sentence for each in course.waiting)[:1000])
        about["patches"] = [each.patch.id for each in course.waiting]
    told = packet.of(course, step, answers_to(cause), seen.tree)
    outgoing = sending.Outgoing(
        to=OPERATOR,
        subject=f"Decide: {course.task.key}: {packet.sentence(course, step)}"[:200],
        priority=course.task.priority,
        thread_id=thread_id,
        schema=json.dumps(schema_of(answers_to(cause)), sort_keys=True),
    )
    draft = Draft(told.text, payload=json.dumps(told.facts, ensure_ascii=False))
    sending.open_thread(desk.bus.desk, tx, outgoing, draft, agent=course.run.leader)
    number = enter.insert(
        tx,
        course,
        DECISION,
        "decision",
        {
            "mailbox": OPERATOR,
            "thread_id": thread_id,
            "tree_before": seen.tree,
            "tree_after": seen.tree,
            "snapshot": seen.snapshot,
            "head": seen.head,
            "reason": step.reason,
            "result": json.dumps(about),
        },
    )
    changes = {"thread_id": thread_id, "stage": DECISION}
    moved = moving.move_attempt(
        desk,
        tx,
        course.run,
        course.attempt,
        moving.Move("blocked", packet.sentence(course, step), changes),
    )
    stop.task_follows(desk, tx, course.run, moved, "blocked")
    said = {
        "stage": DECISION,
        "cause": cause,
        "about": step.stage,
        "why": packet.sentence(course, step),
        "thread": thread_id,
    }
    enter.record(desk, tx, course, number, said)
    return moved


def schema_of(answers: Sequence[str]) -> dict[str, Any]:
    """What an answer on the thread has to satisfy."""
    return {
        "type": "object",
        "required": ["answer"],
        "properties": {
            "answer": {"enum": list(answers)},
            "hint": {"type": "string"},
            "mailbox": {"type": "string"},
        },
    }


# -- answered by a command -----------------------------------------------------------------


def answer(
    desk: Desk, tx: Transaction, run: Run, attempt: Attempt, given: Answered
) -> dict[str, Any]:
    """Settle the open decision of an attempt, also while an agent holds its thread, who learns that
    it was cancelled. Errors: `usage`, `invalid_state` (none is open)."""
    course = read(tx, run, attempt.id)
    visit = course.live
    if not attempt.deciding or visit is None or visit.kind != "decision":
        raise _none_open(course)
    thread = desk.bus.reap_thread(tx, desk.bus.desk.thread_now(tx, str(visit.thread_id)))
    if thread.finished_at is not None:
        raise _none_open(course)  # an agent was quicker
    checked = check(given, answers_to(str(visit.found.get("cause"))))
    _require_other(desk, tx, course, visit, (checked, desk.actor(run)))
    desk.bus.cancel(thread.id, body=f"decided: {checked.answer}", agent=run.leader)
    _close(desk, tx, course, visit, (checked, desk.actor(run)))
    place = {"stage": visit.found.get("about") or attempt.stage}
    moved = moving.move_attempt(
        desk, tx, run, attempt, moving.Move("submitted", f"decided: {checked.answer}", place)
    )
    stop.task_follows(desk, tx, run, moved, "submitted")
    return {"decision": visit.number, "thread": thread.id, "answer": checked.answer}


def check(given: Answered, allowed: Sequence[str]) -> Answered:
    """The answer, if it is one of those; error `usage`."""
    if given.answer not in allowed:
        raise usage(
            f"{given.answer[:60]!r} is no answer to this decision",
            hint=f"answer one of: {', '.join(allowed)}",
        )
    if len(given.hint.encode("utf-8", "surrogateescape")) > MAX_HINT_BYTES:
        raise usage("the hint is longer than 16 KiB", hint="attach what is long to the thread")
    if given.answer == "change_role" and given.mailbox is None:
        raise usage("change_role needs the mailbox that gets the stage", hint="give --to MAILBOX")
    if given.mailbox is not None:
        if given.answer != "change_role":
            raise usage("a mailbox goes with change_role alone", hint="leave --to out")
        check_name(given.mailbox, "mailbox")
    return given


def _require_other(
    desk: Desk, tx: Session, course: Course, visit: Visit, said: tuple[Answered, str]
) -> None:
    """Nobody approves what they wrote. `said` is the answer and who gives it. Errors:
    `policy_denied`, `invalid_state`."""
    given, by = said
    if given.answer == "approve" and "patches" in visit.found:
        writers = writers_of(desk, tx, course)
        approvals.require_other(course.waiting, writers, by)


def _none_open(course: Course) -> InboxOrchError:
    return InboxOrchError(
        "invalid_state",
        f"task {course.task.key} waits for no decision",
        hint="`orch blocked` lists what is open",
        details={"task": course.task.id, "key": course.task.key},
    )


# -- answered on the thread ----------------------------------------------------------------


def settle(desk: Desk, course: Course) -> bool:
    """Take in what was handed in on the thread of a decision; False when it was settled already."""
    visit = course.live
    assert visit is not None
    thread = desk.bus.threads([str(visit.thread_id)])[str(visit.thread_id)]
    said = desk.bus.last_message(thread.id, "result") if thread.state == "done" else None
    with desk.database.transaction() as tx:
        present = attempts.get(tx, course.attempt.id)
        if present is None or present.state != "submitted":
            return False
        given = _given(said.payload, said.body) if said is not None else None
        why = f"its thread ended as {thread.state}, without an answer"
        try:
            checked = None if given is None else check(given, answers_to(visit.found["cause"]))
            if checked is not None and said is not None:
                present_course = read(tx, course.run, present.id)
                _require_other(desk, tx, present_course, visit, (checked, said.sender))
        except InboxOrchError as error:
            checked, why = None, error.message
        if said is None or checked is None:
            return settling.end(desk, tx, course, visit, Outcome("void", reason=why), {})
        return _close(desk, tx, course, visit, (checked, said.sender))


def _given(*handed_in: str | None) -> Answered | None:
    for text in handed_in:
        try:
            value = json.loads(text or "null")
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("answer"), str):
            mailbox = value.get("mailbox")
            hint = value.get("hint", "")
            return Answered(value["answer"], hint if isinstance(hint, str) else "", mailbox or None)
    return None


def _close(
    desk: Desk, tx: Transaction, course: Course, visit: Visit, said: tuple[Answered, str]
) -> bool:
    given, by = said
    facts = {**visit.found, "answer": given.answer, "hint": given.hint, "by": by}
    if given.mailbox is not None:
        facts["mailbox"] = given.mailbox
    if "patches" in facts:
        _tell_the_ledger(desk, tx, course, given, by)
    outcome = Outcome("succeeded", given.answer, given.hint or visit.reason)
    columns = {"worker": by, "result": json.dumps(facts, ensure_ascii=False)}
    return settling.end(desk, tx, course, visit, outcome, columns)


def _tell_the_ledger(desk: Desk, tx: Transaction, course: Course, given: Answered, by: str) -> None:
    """What was answered about patches, that is said of them; the machine sees whether more have to
    approve."""
    asked = approvals.waiting(tx, course.attempt.id)
    said = (by, given.hint or None)
    if given.answer == "approve":
        approvals.approve(desk, tx, course.run, asked, said)
    else:
        approvals.refuse(desk, tx, course.run, asked, said)


# -- answered by nobody --------------------------------------------------------------------


def until_ms(tx: Session, attempt: Attempt, policy: NoAnswer) -> int | None:
    """When the time to decide is over, in wall-clock milliseconds; None when it never is."""
    visit = visits.live_of(tx, attempt.id) if attempt.deciding else None
    if policy.on_no_answer == "wait" or visit is None or visit.kind != "decision":
        return None
    return visit.created_at + int(policy.within_seconds * 1000)


def end_unanswered(desk: Desk, run: Run, attempt_id: str, policy: NoAnswer) -> bool:
    """Abandon what nobody has decided in time, also while an agent holds the thread. False when it
    is not so late, or somebody was quicker."""
    if policy.on_no_answer == "wait":
        return False
    with desk.database.transaction() as tx:
        attempt = attempts.get(tx, attempt_id)
        at_ms = None if attempt is None else until_ms(tx, attempt, policy)
        if attempt is None or attempt.state != "blocked" or at_ms is None or at_ms > tx.now.wall_ms:
            return False
        hint = f"nobody has decided within {plain_number(policy.within_seconds)} s"
        try:
            answer(desk, tx, run, attempt, Answered(policy.on_no_answer, hint))
        except InboxOrchError as error:
            if error.code != "invalid_state":
                raise
            return False
    return True


# -- a tree that has changed since ---------------------------------------------------------


def holds_up(desk: Desk, course: Course) -> bool:
    """Whether what was decided last cannot be carried out: it speaks of a tree, and another lies in
    the worktree by now. Then it is void, and asked for anew. True also when that cannot be told
    now. Errors: those of git and of every write."""
    last = course.visits[-1] if course.visits and not course.plain else None
    if last is None or last.kind != "decision" or last.live:
        return False
    attempt = course.attempt
    with desk.database.snapshot() as snapshot:
        if journal_rows.is_begun(snapshot, attempt, "restore"):
            return True  # its worktree is being put back now, or was not wholly
    if last.verdict not in OF_A_TREE:
        return False
    if not is_there(str(attempt.worktree_path)):
        return True
    repository = desk.repository(course.run)
    try:
        with worktrees.alone(repository, place_of(desk, attempt), _BUSY_SECONDS) as hold:
            seen = _changed(desk, course, (repository, hold), str(last.tree_before))
    except InboxOrchError as error:
        if error.code != "busy":
            raise
        return True
    if seen is None:
        return False
    with desk.database.transaction() as tx:
        again = read(tx, course.run, attempt.id)
        if len(again.visits) == len(course.visits) and again.attempt.state == attempt.state:
            found = last.found
            why = f"{seen.what} was changed before `{last.verdict}` could be carried out"
            step = Step("decide", found["about"], found["cause"], why, resume=found.get("resume"))
            ask(desk, tx, again, step, seen)
    return True


def _changed(desk: Desk, course: Course, held: tuple[Repository, Hold], tree: str) -> Lying | None:
    """What lies there, committed and kept, if it is another tree; None if it is the same, or cannot
    be kept: then what was judged is taken, and nothing else."""
    repository, _ = held
    attempt = course.attempt
    worktree, known = str(attempt.worktree_path), verify.untracked_at_start(attempt)
    try:
        if snapshots.tree_now(repository, worktree, known) == tree:
            return None
        harvesting.commit_there(desk, course.run, course.task, attempt, held)
        ref = snapshots.ref_of(attempt.id)
        message = "Changed before a decision was carried out"
        made = snapshots.snapshot(repository, worktree, known, ref, message, course.last_snapshot)
    except snapshots.Unfit:
        return None
    paths = [shown(each.path) for each in facts(repository, tree, made.tree).files]
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    what = ", ".join(paths[:_MOST_NAMED]) + more
    return Lying(made.tree, made.commit, made.head, what) if paths else None


def open_in(tx: Session, attempt: Attempt) -> Decision | None:
    """The open decision of an attempt; None when there is none."""
    visit = visits.live_of(tx, attempt.id) if attempt.deciding else None
    if visit is None or visit.kind != "decision":
        return None
    found = visit.found
    cause, about = str(found["cause"]), str(found["about"])
    why = packet.why("policy" if "patches" in found else cause, about, visit.reason)
    answers, resume = answers_to(cause), found.get("resume")
    return Decision(
        visit.number, cause, why, about, answers, resume, tuple(found.get("patches", ()))
    )
