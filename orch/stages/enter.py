"""Entering a stage: the visit of an agent, with its thread. In the caller's transaction."""

import json
from typing import Any, NamedTuple

from inbox_orch.inbox.domain.working import STAND_INS
from inbox_orch.inbox.services import sending
from inbox_orch.inbox.services.desk import Draft
from inbox_orch.shared.ids import new_id
from inbox_orch.shared.store.artifacts import Stored
from inbox_orch.shared.store.engine import Transaction

from ..attempts import moving, recount, stop, work
from ..attempts import rows as attempts
from ..attempts import visit_rows as visits
from ..attempts.rows import Details, details_with
from ..attempts.visits import Visit
from ..gates import surroundings_rows
from ..gates.chosen import checks_of
from ..gates.results import GateResult
from ..patches.hiding import hidden
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.limits import MAX_DELIVERIES
from ..runs.model import Attempt
from ..runs.readiness import Slots, taken_by
from ..runs.secrets import secrets_of
from . import judging, sessions, texts, tried, unseen
from . import settle as settling
from .course import Course, results_of
from .machine import Step
from .model import SURROUNDINGS, Stage
from .roles import has_reviewer, mailbox_of

_IN_VAIN = ("failed", "error", "lost", "void")


class Change(NamedTuple):
    """What a reviewer is given to judge: the text of it, bounded; and all of it where it is cut."""

    text: str | None = None
    whole: Stored | None = None


def change_of(desk: Desk, course: Course, step: Step) -> Change:
    """The change that a stage reviews; nothing for any other stage. Asks git, and so is called
    before the transaction. Errors: those of git, and of storing a file."""
    from . import reports

    stage = course.blueprint.by_id.get(str(step.stage))
    if stage is None or not stage.judges:
        return Change()
    if not has_reviewer(course.run, course.task, stage, course.visits):
        return Change()
    secrets = secrets_of(config_of(course.run))
    text = hidden(reports.change_text(desk, course), secrets)
    if texts.size(text) <= texts.MAX_CHANGE_BYTES:
        return Change(text)
    whole = hidden(reports.change_text(desk, course, reports.MAX_DIFF_BYTES), secrets)
    return Change(text, desk.bus.artifacts.add_bytes("change.diff", whole.encode()))


def insert(tx: Transaction, course: Course, stage: str, kind: str, values: dict[str, Any]) -> int:
    """A new live visit; returns its number. Guarded by the database: there is one at a time."""
    number = len(course.visits) + 1
    visits.insert(
        tx,
        {
            "attempt_id": course.attempt.id,
            "number": number,
            "stage": stage,
            "nth": course.nth(stage),
            "kind": kind,
            "state": "live",
            "created_at": tx.now.wall_ms,
            **values,
        },
    )
    return number


def record(desk: Desk, tx: Transaction, course: Course, number: int, facts: dict[str, Any]) -> None:
    """That a visit has begun, as an event."""
    present, visit = attempts.get(tx, course.attempt.id), visits.live_of(tx, course.attempt.id)
    assert present is not None and visit is not None
    about = {"visit": number, "nth": visit.nth, "kind": visit.kind, **facts}
    moving.record_attempt(desk, tx, course.run, present, "visit_begun", about)


def skips(desk: Desk, tx: Transaction, course: Course, step: Step) -> bool:
    """Skip a review where nobody else could do it: nobody approves what they wrote."""
    stage = course.blueprint.by_id[str(step.stage)]
    if not stage.judges or has_reviewer(course.run, course.task, stage, course.visits):
        return False
    number = insert(tx, course, stage.id, stage.type, {"tree_after": course.last_tree})
    record(desk, tx, course, number, {"stage": stage.id})
    visit = visits.live_of(tx, course.attempt.id)
    assert visit is not None
    role = f"role {stage.role} has" if stage.role else f"stage {stage.id} has"
    reason = f"{role} no mailbox of its own, and nobody approves what they wrote"
    return settling.end(desk, tx, course, visit, settling.Outcome("skipped", reason=reason), {})


def has_room(tx: Transaction, course: Course, mailbox: str) -> bool:
    """Whether a visit finds a slot in its mailbox, beside all that live in the run."""
    others = [a for a in attempts.live_of_run(tx, course.run.id) if a.id != course.attempt.id]
    return Slots(course.run, taken_by(others)).free(mailbox)


def offer(
    desk: Desk, tx: Transaction, course: Course, step: Step, change: Change | None = None
) -> Attempt | None:
    """Send the thread of an agent's visit; None when its mailbox has no room for it now. `change`
    is what `change_of` has made of it."""
    stage = course.blueprint.by_id[str(step.stage)]
    mailbox = mailbox_of(course.run, course.task, stage, course.visits)
    if not has_room(tx, course, mailbox):
        return None
    thread_id = new_id()
    text = True if stage.hands_in else False if course.attempt.hands_in_text else None
    more = Details(harvest=stage.writes, hands_in_text=text)
    details = details_with(course.attempt, more)
    attempt = course.attempt._replace(mailbox=mailbox, details=details)
    entered = (stage, step, change or Change())
    send(desk, tx, course._replace(attempt=attempt), entered, thread_id)
    number = insert(
        tx,
        course,
        stage.id,
        "agent",
        {"mailbox": mailbox, "thread_id": thread_id, "tree_before": course.last_tree},
    )
    changes = {
        "thread_id": thread_id,
        "mailbox": mailbox,
        "stage": stage.id,
        "details": details,
        "head_commit": None,
    }
    cause = f"stage {stage.id}"
    moved = moving.move_attempt(
        desk, tx, course.run, attempt, moving.Move("offered", cause, changes)
    )
    stop.task_follows(desk, tx, course.run, moved, "offered")
    record(desk, tx, course, number, {"stage": stage.id, "mailbox": mailbox, "thread": thread_id})
    return moved


def send(
    desk: Desk, tx: Transaction, course: Course, entered: tuple[Stage, Step, Change], thread_id: str
) -> None:
    """Send the thread of a stage that is entered, to the mailbox that `course.attempt` has."""
    stage, step, change = entered
    run, task, attempt = course.run, course.task, course.attempt
    facts = {
        "run": run.name,
        "task": task.key,
        "attempt": attempt.number,
        "attempt_id": attempt.id,
        "stage": stage.id,
        "visit": len(course.visits) + 1,
        "worktree": attempt.worktree_path,
        "branch": attempt.branch,
        "base_commit": attempt.base_commit,
        "time_limit_seconds": stage.timeout_seconds or task.limits.run_seconds,
        "database": desk.database.address,
        "database_id": desk.database.id,
        "brief": work.brief_of(desk, run, task, attempt, thread_id, reads=not stage.writes),
        # What is no verdict is for another try at the review: no writer can do anything about it.
        "retry_refused": True if stage.reviews else None,
        "retry_failed": True if stage.reviews else None,
        sessions.KEY: sessions.to_resume(course, stage, attempt.mailbox),
    }
    payload = {name: value for name, value in facts.items() if value is not None}
    outgoing = sending.Outgoing(
        to=attempt.mailbox,
        subject=f"{task.key}/{stage.id}: {task.title}"[:200],
        priority=task.priority,
        max_deliveries=MAX_DELIVERIES,
        thread_id=thread_id,
        schema=json.dumps(texts.REVIEW_SCHEMA, sort_keys=True) if stage.reviews else None,
    )
    told = [*tried_before(desk, course), *before(course, step)]
    told += [*known(desk, course), *asked_before(course, stage)] if stage.reviews else []
    if change.text is not None:
        told += [*left_out(course), texts.change(change.text)]
    body = texts.for_visit(
        recount.text_of(run, task, stage) if stage.writes else task.text,
        stage,
        told,
        gates=gates_ahead(tx, course),
        background=background(course, stage),
        base=attempt.base_commit,
    )
    draft = Draft(body, payload=json.dumps(payload), files=_files(desk, course, change))
    sending.open_thread(desk.bus.desk, tx, outgoing, draft, agent=run.leader)


def _files(desk: Desk, course: Course, change: Change) -> tuple[Stored, ...]:
    """What actions have made since a worker was last sent for, by its names, and the change. What
    has been cleared away since is left out."""
    found: dict[str, Stored] = {}
    for visit in course.visits:
        if visit.kind == "council" or (visit.kind == "agent" and visit.thread_id is not None):
            found.clear()
        elif visit.kind == "action":
            made = [Stored(**each) for each in visit.found.get("artifacts", ())]
            found |= {each.name: each for each in made}
    if change.whole is not None:
        found[change.whole.name] = change.whole
    return tuple(each for each in found.values() if desk.bus.artifacts.has(each))


def gates_ahead(tx: Transaction, course: Course) -> list[str]:
    """The names of the gates that judge what a worker of this attempt does next: of a repair, those
    that sent for it."""
    last = next((v for v in reversed(course.visits) if v.kind != "decision"), None)
    if last is not None and last.kind == "gates" and last.state == "failed":
        return [result.gate for result in results_of(last) if result.stops]
    if not any(stage.runs_gates for stage in course.blueprint.stages):
        return [gate.name for gate in checks_of(course.task)]
    start = attempts.details_of(course.attempt).start
    assert start is not None, "its worktree was prepared"
    known = surroundings_rows.get(tx, course.run.id, start.base_tree)
    usable = [] if known is None else [proof.gate for proof in known.proofs if proof.usable]
    return usable + [gate.name for gate in checks_of(course.task)]


def before(course: Course, step: Step) -> list[str]:
    """What a worker has to know of the visits before its own, newest last."""
    told = [
        texts.decided(str(visit.verdict), visit.found.get("hint"), visit.found.get("rule"))
        for visit in course.visits
        if visit.kind == "decision" and visit.state == "succeeded"
    ]
    over = [visit for visit in course.visits if visit.kind != "decision"]
    found = next((visit for visit in reversed(over) if not _is_in_vain(visit)), None)
    failing = found is not None and any(result.stops for result in results_of(found))
    if found is not None and found.kind == "gates" and found.state == "failed" and failing:
        told.append(texts.failed_gates(results_of(found), step.told))
    elif found is not None and found.verdict in texts.HEADINGS:
        told.append(texts.findings(found.found, texts.HEADINGS[str(found.verdict)]))
    elif found is not None and found.state in ("failed", "error") and found.reason:
        told.append(texts.failed_visit(found.stage, found.reason))
    if over and _is_in_vain(over[-1]):
        told.append(_in_vain(course, over[-1]))
    return told


def tried_before(desk: Desk, course: Course) -> list[str]:
    """What was tried against the same failures before somebody said `continue`."""

    def words(visit: Visit) -> str | None:
        said = desk.bus.last_message(str(visit.thread_id), "result")
        return None if said is None else said.body

    told = tried.tried(course.visits, words)
    return [] if told is None else [told]


def _is_in_vain(visit: Visit) -> bool:
    """Whether an agent's visit has come to nothing: what it was sent for is still to be done."""
    return visit.kind == "agent" and not visit.verdict and visit.state in _IN_VAIN


def _in_vain(course: Course, visit: Visit) -> str:
    stage = course.stage_of(visit)
    if visit.state in ("lost", "void"):
        judges = stage is not None and stage.judges
        return texts.lost_review(visit.stage, str(visit.reason)) if judges else texts.LOST
    return texts.failed_visit(visit.stage, visit.reason or "it was not said why")


def known(desk: Desk, course: Course) -> list[str]:
    """What those who review are told beside the change: what the gates say of this very tree, and
    what its author said."""
    told, results = [], _judged(course)
    gated = any(stage.runs_gates for stage in course.blueprint.stages)
    if results or gated:
        told.append(texts.judged_by(results) if results else texts.UNJUDGED)
    wrote = judging.last_writing(course)
    words = "" if wrote is None or wrote.worker is None else _words(desk, wrote)
    if wrote is not None and words:
        secrets = secrets_of(config_of(course.run))
        told.append(texts.said_by_author(str(wrote.worker), hidden(words, secrets)))
    return told


def _judged(course: Course) -> list[GateResult]:
    """The newest result of each gate on what lies there now."""
    found: dict[str, GateResult] = {}
    for visit in course.visits:
        if visit.kind == "gates" and visit.stage != SURROUNDINGS and not visit.live:
            here = visit.tree_after == course.last_tree
            found |= {result.gate: result for result in results_of(visit)} if here else {}
    return list(found.values())


def _words(desk: Desk, visit: Visit) -> str:
    """What the worker of a visit has said with its result; nothing where that is only the end of
    what its command printed, or says only where a file is."""
    said = desk.bus.last_message(str(visit.thread_id), "result")
    if said is None:
        return ""
    body = (said.body or "").strip()
    return "" if body.startswith(STAND_INS) else body or _summary_in(said.payload)


def _summary_in(payload: str | None) -> str:
    value = json.loads(payload or "null")
    summary = value.get("summary") if isinstance(value, dict) else None
    return summary.strip() if isinstance(summary, str) else ""


def asked_before(course: Course, stage: Stage) -> list[str]:
    """What a review has asked for the last time, for the one that looks again."""
    asked = [v for v in course.visits if v.stage == stage.id and v.verdict == "request_changes"]
    return [texts.findings(asked[-1].found, texts.ASKED_BEFORE)] if asked else []


def left_out(course: Course) -> list[str]:
    """What the gates saw and the change has not, for those who review it."""
    said = unseen.in_the_end(course.visits)
    return [] if said is None else [f"{said[0].upper()}{said[1:]}."]


def background(course: Course, stage: Stage) -> list[str]:
    """What actions have found, of each the newest; what was gathered for reviewers is for them
    alone."""
    found: dict[str, str] = {}
    for visit in course.visits:
        entered = course.stage_of(visit)
        if visit.kind != "action" or entered is None or not visit.found.get("text"):
            continue
        if entered.action != "prepare_review_bundle" or stage.reviews:
            found[str(entered.action)] = str(visit.found["text"])
    return list(found.values())
