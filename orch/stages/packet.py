"""What somebody who decides is given: the task, a line for each visit, what failed last."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from inbox_orch.shared.ids import counted, printable

from ..attempts.visits import Visit
from ..patches.hiding import covered, hidden
from ..patches.model import Waiting
from ..runs.costs import Cost
from . import sessions
from .course import Course, results_of
from .machine import Step
from .texts import bounded

if TYPE_CHECKING:
    from .releasing import Stopped

MAX_PACKET_BYTES = 16 * 1024
_MOST_VISITS, _MOST_FAILURES, _MOST_OUTPUT = 40, 20, 2000

SENTENCES = {
    "approval": "stage {stage} has to be approved",
    "policy": "the change has to be approved",
    "error": "what came of stage {stage} cannot be judged",
    "exhausted": "stage {stage} goes no further",
    "stalled": "stage {stage} does not get better",
    "oscillating": "stage {stage} goes in circles",
    "pause": "stage {stage} did not succeed",
    "rejected": "the review in stage {stage} rejects it",
    "infrastructure": "stage {stage} has lost its workers again and again",
}
"""Why a decision is asked for, by its cause."""
MEANINGS = {
    "continue": "go on at {resume}, with its counters anew; the hint is told to the next worker",
    "change_role": "the same, and another mailbox gets {resume}",
    "accept": "take the work as it is, though not all is well; that is said in status and report",
    "split": "end this attempt, and put the tasks of a plan in the place of this one",
    "relax": "take the refused patch as it is, though it breaks {rules}; say why",
    "approve": "go on with {resume}",
    "refuse": "go the way of a failure; the hint is told to the next worker",
    "abandon": "end the task as failed; its branch and all that was tried stay",
}
"""What each answer does, and so what it costs."""

OFFERED = "What may be answered:"
"""The line above them."""

HOW = (
    "`orch answer {key} --decide ANSWER --body HINT` answers; an agent claims this thread and hands"
    ' in {{"answer": ANSWER, "hint": TEXT}}.'
)
SPLIT = "A split is given with that command alone: `--decide split --plan FILE`."
ONE_BY_ONE = "One rule at a time: `--decide relax --rule RULE --body WHY`."


class Packet(NamedTuple):
    """The text for people and the facts for programs."""

    text: str
    facts: Mapping[str, Any]


def sentence(course: Course, step: Step) -> str:
    """Why it is asked, on one line."""
    cause = "policy" if step.by_policy else str(step.cause)
    return why(cause, str(step.stage), step.reason)


def why(cause: str, stage: str, reason: str | None) -> str:
    """The same of a decision that is open."""
    said = SENTENCES[cause].format(stage=stage)
    return f"{said}: {reason.rstrip('.')}" if reason else said


def meaning_of(
    answer: str, resume: str | None, by_policy: bool = False, rules: Sequence[str] = ()
) -> str:
    """What an answer does, of a decision that goes on at `resume` after a yes; `rules` are those
    that keep a refused patch out."""
    if by_policy and answer == "approve":
        return "let this change come in, as it lies there; another one is asked about anew"
    named = " and ".join(f"`{rule}`" for rule in rules) or "a rule"
    return MEANINGS[answer].format(resume=resume, rules=named)


def of(
    course: Course, step: Step, asked: "tuple[Sequence[str], Stopped | None]", tree: str | None
) -> Packet:
    """The packet of a decision, which speaks of a tree. `asked` is what may be answered, and the
    refused patch that it is about."""
    task, attempt, resume = course.task, course.attempt, step.resume
    visits = course.visits[-_MOST_VISITS:]
    answers, stopped = asked
    rules = () if stopped is None else stopped.refused.left
    about = (resume, step.by_policy, rules)
    meanings = {answer: meaning_of(answer, *about) for answer in answers}
    lines = [
        f"Task {task.key} of run {course.run.name}, attempt {attempt.number}: "
        + sentence(course, step)
        + ".",
        "",
        task.text,
        "",
        "What has happened:",
        *(f"- {visit_line(v)}" for v in visits),
        *_failures(course),
        *_asked(course, step),
        *_refused(stopped),
        "",
        OFFERED,
        *(f"- {answer}: {meaning}" for answer, meaning in meanings.items()),
        "",
        HOW.format(key=task.key),
        *([SPLIT] if "split" in answers else []),
        *([ONE_BY_ONE] if len(rules) > 1 else []),
    ]
    facts = {
        "run": course.run.name,
        "task": task.key,
        "attempt": attempt.number,
        "attempt_id": attempt.id,
        "cause": step.cause,
        "stage": step.stage,
        "reason": step.reason,
        "resume": resume,
        "tree": tree,
        "branch": attempt.branch,
        "worktree": attempt.worktree_path,
        "base_commit": attempt.base_commit,
        "answers": meanings,
        "visits": [brief_json(v) for v in visits],
        **({"patches": [_asked_json(each) for each in course.waiting]} if step.by_policy else {}),
        **({} if stopped is None else {"refused": _refused_json(stopped)}),
    }
    return Packet(bounded(hidden("\n".join(lines)), MAX_PACKET_BYTES), covered(facts))


def visit_line(visit: Visit) -> str:
    """A visit on one line: number, stage, how it ended, what that says, what it cost."""
    said = [f"{visit.number}. {visit.stage}"]
    if visit.nth > 1:
        said[0] += f" ({visit.nth})"
    said.append(" ".join(filter(None, (visit.verdict or visit.state, visit.found.get("rule")))))
    failing = sum(sum(r.failures.values()) for r in results_of(visit))
    if failing and not visit.reason:
        said.append(counted(failing, "failure"))
    if visit.worker:
        said.append(f"by {visit.worker}")
    if visit.worked_ms:
        said.append(f"{visit.worked_ms / 1000:.0f} s")
    session = visit.found.get(sessions.KEY) or {}
    if session.get("resumed"):
        said.append(f"resumed session {session['id']}")
    elif session.get("lost"):
        said.append(f"lost session {session['lost']}")
    cost = visit.found.get("cost")
    if cost and Cost(**cost).usd is not None:
        said.append(f"${Cost(**cost).usd:.2f}")
    return ", ".join(said) + (f": {visit.reason}" if visit.reason else "")


def brief_json(visit: Visit) -> dict[str, Any]:
    """A visit without its outputs."""
    shape = visit.as_json()
    shape["failures"] = {
        result.gate: dict(list(result.failures.items())[:_MOST_FAILURES])
        for result in results_of(visit)
        if result.failures
    }
    del shape["result"]
    return shape


def _asked(course: Course, step: Step) -> list[str]:
    """What the policy asks about, patch by patch."""
    if not step.by_policy:
        return []
    lines = ["", "What has to be approved:"]
    for each in course.waiting:
        name = f"{course.task.key}/{course.attempt.number}/{each.patch.number}"
        lines.append(f"- patch {name}, by {each.patch.author}: {each.sentence}")
        lines += [
            f"  {printable(path, 4096)}" for path in each.patch.summary.paths[:_MOST_FAILURES]
        ]
    first = f"{course.task.key}/{course.attempt.number}/{course.waiting[0].patch.number}"
    return [*lines, f"`orch patch show {first} --diff` shows it."]


def _refused(stopped: "Stopped | None") -> list[str]:
    """What the policy has against the patch that was refused."""
    if stopped is None:
        return []
    name = stopped.refused.name
    lines = ["", f"What was refused, patch {name}, by {stopped.refused.patch.author}:"]
    lines += [f"- {each['rule']}: {each['text']}" for each in stopped.refused.objections]
    return [*lines, f"`orch patch show {name} --diff` shows it."]


def _refused_json(stopped: "Stopped") -> dict[str, Any]:
    found = stopped.refused
    return {"patch": found.patch.id, "name": found.name, "rules": list(found.left)}


def _asked_json(each: Waiting) -> dict[str, Any]:
    return {
        "id": each.patch.id,
        "number": each.patch.number,
        "author": each.patch.author,
        "tree": each.patch.tree,
        "head": each.patch.head,
        "facts": each.patch.summary.as_json(),
        "objections": list(each.objections),
        "needs": each.needs,
        "given": list(each.given),
    }


def _failures(course: Course) -> list[str]:
    last = next((v for v in reversed(course.visits) if v.kind == "gates"), None)
    if last is None:
        return []
    lines: list[str] = []
    for result in results_of(last):
        if result.state not in ("failed", "error"):
            continue
        lines += ["", f"{result.gate}: {result.state}, {result.reason or ''}".rstrip(", ")]
        for name in list(result.failures)[:_MOST_FAILURES]:
            lines.append(f"- {result.texts.get(name) or name}")
        if result.output:
            lines += ["The end of its output:", result.output[-_MOST_OUTPUT:].rstrip()]
    return lines
