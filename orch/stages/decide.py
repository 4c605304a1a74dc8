"""Decisions: asking somebody, and what was answered.

A decision is a visit whose worker is whoever answers: its own thread in the mailbox `operator`,
with a packet of what there is to know. It is settled once.
"""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from inbox_orch.inbox.services import sending
from inbox_orch.inbox.services.desk import Draft
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import check_name, new_id, plain_number
from inbox_orch.shared.store.engine import Session, Transaction

from ..attempts import moving, stop
from ..attempts import rows as attempts
from ..attempts import visit_rows as visits
from ..attempts.visits import OPERATOR, Visit
from ..patches import approvals
from ..patches import rows as patches
from ..runs.config import NoAnswer
from ..runs.desk import Desk
from ..runs.model import DECISION, Attempt, Run
from ..runs.plan import Plan
from ..runs.plan_import import as_asked
from . import enter, packet, parting, releasing
from . import settle as settling
from .course import Course, read
from .machine import ANSWERS, APPROVAL_ANSWERS, Step
from .settle import Outcome
from .writers import writers_of

MAX_HINT_BYTES = 16 * 1024
_FIRST_SAID = 3  # of an answer, what could always be said


class Decision(NamedTuple):
    """An open decision: the number of its visit, why it is asked (a key of `packet.SENTENCES`, and
    in words), in which stage, what may be answered, and the stage that a plain yes goes on at;
    where a policy asks for it, the ids of the `patches` that it is about; where it has refused one
    that may be released, the `rules` that still keep that out."""

    visit: int
    cause: str
    sentence: str
    about: str
    answers: tuple[str, ...]
    resume: str | None
    patches: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()

    @property
    def by_policy(self) -> bool:
        """Whether a policy asks for it."""
        return bool(self.patches)

    def as_json(self) -> dict[str, Any]:
        lists = {name: list(getattr(self, name)) for name in ("answers", "patches", "rules")}
        facts = {**self._asdict(), **lists}
        unsaid = {name for name in ("patches", "rules") if not facts[name]}
        return {name: value for name, value in facts.items() if name not in unsaid}


class Lying(NamedTuple):
    """What lies in a worktree: its tree, and a snapshot of it with its HEAD, if one was made; and
    what is other than it was."""

    tree: str | None
    snapshot: str | None = None
    head: str | None = None
    what: str = ""


class Answered(NamedTuple):
    """What somebody decided: one of the answers that were asked for, a hint for whoever goes on;
    to change the role, the mailbox that gets the stage; to release a `rule` of a refused patch,
    which (None: the only one); to split the task, the plan of its `parts`."""

    answer: str
    hint: str = ""
    mailbox: str | None = None
    rule: str | None = None
    parts: Plan | None = None

    def as_request(self) -> list[Any]:
        """What a key stands for: as ever, where nothing is said that could not be said before."""
        parts = None if self.parts is None else [as_asked(each) for each in self.parts.tasks]
        values = [*self._replace(parts=None)[:-1], parts]
        while len(values) > _FIRST_SAID and values[-1] is None:
            values.pop()
        return values


class Said(NamedTuple):
    """A decision that is taken: what was answered, `by` whom, and what else is noted of it."""

    given: Answered
    by: str
    noted: Mapping[str, Any] = MappingProxyType({})


def answers_to(cause: str, *, relaxes: bool = False) -> tuple[str, ...]:
    """What may be answered; `relaxes`: there is a refused patch to release."""
    if cause == "approval":
        return APPROVAL_ANSWERS
    return ANSWERS if relaxes else tuple(each for each in ANSWERS if each != "relax")


def _answers_of(visit: Visit) -> tuple[str, ...]:
    return answers_to(str(visit.found["cause"]), relaxes="stopped" in visit.found)


def ask(
    desk: Desk, tx: Transaction, course: Course, step: Step, seen: "Lying | None" = None
) -> Attempt:
    """Open the decision: the attempt is blocked, and gives its slot back. `seen` is what lies in
    the worktree, if that is not what was judged last."""
    stopped = None if step.cause == "approval" or seen else releasing.stopped_by(tx, course)
    seen = seen or Lying(course.last_tree)
    thread_id, cause = new_id(), str(step.cause)
    answers = answers_to(cause, relaxes=stopped is not None)
    about: dict[str, Any] = {"cause": cause, "about": step.stage, "resume": step.resume}
    if step.by_policy:
        step = step._replace(reason="; ".join(each.sentence for each in course.waiting)[:1000])
        about["patches"] = [each.patch.id for each in course.waiting]
    if stopped is not None:
        about["stopped"] = {"patch": stopped.refused.patch.id, "stage": stopped.stage}
    told = packet.of(course, step, (answers, stopped), seen.tree)
    outgoing = sending.Outgoing(
        to=OPERATOR,
        subject=f"Decide: {course.task.key}: {packet.sentence(course, step)}"[:200],
        priority=course.task.priority,
        thread_id=thread_id,
        schema=json.dumps(schema_of(answers), sort_keys=True),
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
    """What an answer on the thread has to satisfy; a plan is given to the command alone."""
    more = {"rule": {"type": "string"}} if "relax" in answers else {}
    return {
        "type": "object",
        "required": ["answer"],
        "properties": {
            "answer": {"enum": [each for each in answers if each != "split"]},
            "hint": {"type": "string"},
            "mailbox": {"type": "string"},
            **more,
        },
    }


# -- answered by a command -----------------------------------------------------------------


def answer(
    desk: Desk, tx: Transaction, run: Run, attempt: Attempt, given: Answered
) -> dict[str, Any]:
    """Settle the open decision of an attempt, also while an agent holds its thread, who learns that
    it was cancelled. Errors: `usage`, `invalid_state` (none is open; the run is closed),
    `policy_denied`. Raises `Refused` for a plan of parts that cannot be taken in."""
    course = read(tx, run, attempt.id)
    visit = course.live
    if not attempt.deciding or visit is None or visit.kind != "decision":
        raise _none_open(course)
    thread = desk.bus.reap_thread(tx, desk.bus.desk.thread_now(tx, str(visit.thread_id)))
    if thread.finished_at is not None:
        raise _none_open(course)  # an agent was quicker
    checked = check(given, _answers_of(visit))
    said = _carried_out(desk, tx, course, visit, Said(checked, desk.actor(run)))
    desk.bus.cancel(thread.id, body=f"decided: {checked.answer}", agent=run.leader)
    _close(desk, tx, course, visit, said)
    told = {"decision": visit.number, "thread": thread.id, "answer": checked.answer, **said.noted}
    if checked.parts is not None:
        parting.end_in_parts(desk, tx, run, attempt, said.by, said.noted["parts"])
        return told
    place = {"stage": visit.found.get("about") or attempt.stage}
    moved = moving.move_attempt(
        desk, tx, run, attempt, moving.Move("submitted", f"decided: {checked.answer}", place)
    )
    stop.task_follows(desk, tx, run, moved, "submitted")
    return told


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
    _check_more(given)
    return given


def _check_more(given: Answered) -> None:
    if given.rule is not None and given.answer != "relax":
        raise usage("a rule goes with relax alone", hint="leave --rule out")
    if given.answer == "relax" and not given.hint.strip():
        raise usage(
            "relax needs a reason", hint="give --body TEXT: it is kept with the patch that comes in"
        )
    if (given.parts is None) == (given.answer == "split"):
        if given.parts is not None:
            raise usage("a plan goes with split alone", hint="leave --plan out")
        raise usage(
            "split needs the plan of its parts",
            hint="`orch answer TASK --decide split --plan FILE`: as `orch plan import` takes it",
        )


def _carried_out(desk: Desk, tx: Transaction, course: Course, visit: Visit, said: Said) -> Said:
    """What an answer does at once, with what is to be noted of it; before anything is written that
    could not be. Nobody approves or releases what they wrote. Errors: `policy_denied`, `usage`,
    `invalid_state`. Raises `Refused`."""
    given, by = said.given, said.by
    if given.answer == "approve" and "patches" in visit.found:
        writers = writers_of(desk, tx, course)
        approvals.require_other(course.waiting, writers, by)
    if given.answer == "relax":
        patch = patches.get(tx, str(visit.found["stopped"]["patch"]))
        assert patch is not None, "patches are never removed"
        refused = releasing.refused(tx, patch)
        how = (given.rule, by, given.hint)
        return said._replace(noted=releasing.relax(desk, tx, course.run, refused, how))
    if given.parts is not None:
        parts = parting.add(desk, tx, course.run, course.task, given.parts)
        return said._replace(noted={"parts": list(parts)})
    return said


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
            taken = None
            if given is not None and said is not None:
                now = Said(check(given, _answers_of(visit)), said.sender)
                taken = _carried_out(desk, tx, read(tx, course.run, present.id), visit, now)
        except InboxOrchError as error:
            taken, why = None, error.message
        if taken is None:
            return settling.end(desk, tx, course, visit, Outcome("void", reason=why), {})
        return _close(desk, tx, course, visit, taken)


def _given(*handed_in: str | None) -> Answered | None:
    for text in handed_in:
        try:
            value = json.loads(text or "null")
        except ValueError:
            continue
        if isinstance(value, dict) and isinstance(value.get("answer"), str):
            mailbox, rule = value.get("mailbox"), value.get("rule")
            hint = value.get("hint", "")
            hint = hint if isinstance(hint, str) else ""
            return Answered(value["answer"], hint, mailbox or None, rule or None)
    return None


def _close(desk: Desk, tx: Transaction, course: Course, visit: Visit, said: Said) -> bool:
    given, by = said.given, said.by
    facts = {**visit.found, "answer": given.answer, "hint": given.hint, "by": by, **said.noted}
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


def open_in(tx: Session, attempt: Attempt) -> Decision | None:
    """The open decision of an attempt; None when there is none."""
    visit = visits.live_of(tx, attempt.id) if attempt.deciding else None
    if visit is None or visit.kind != "decision":
        return None
    found = visit.found
    cause, about = str(found["cause"]), str(found["about"])
    why = packet.why("policy" if "patches" in found else cause, about, visit.reason)
    answers, resume = _answers_of(visit), found.get("resume")
    asked = tuple(found.get("patches", ()))
    return Decision(visit.number, cause, why, about, answers, resume, asked, _rules_of(tx, visit))


def _rules_of(tx: Session, visit: Visit) -> tuple[str, ...]:
    """The rules that keep the refused patch out which a decision is about."""
    stopped = visit.found.get("stopped")
    patch = None if stopped is None else patches.get(tx, str(stopped["patch"]))
    return () if patch is None else releasing.refused(tx, patch).left
