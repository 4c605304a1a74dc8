"""Letting a refused patch come in though it breaks a rule: a waiver of this rule, of these paths,
with this tree, used up by one patch. Never by whoever wrote it, and never of the floor.

In the caller's transaction or snapshot; asks no git.
"""

from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.store.engine import Session, Transaction

from ..attempts import rows as attempts
from ..attempts.visits import Visit
from ..patches import ledger
from ..patches import rows as patches
from ..patches.ledger import Word
from ..patches.model import Patch
from ..patches.rules import FLOOR
from ..runs.desk import Desk
from ..runs.model import Run
from . import course as courses
from .course import Course
from .writers import writers_of


class Refused(NamedTuple):
    """A patch that was refused: its `name`, what the policy had against it (what it denied, or else
    what it asked about), and the rules among these that were released already."""

    patch: Patch
    name: str
    objections: tuple[dict[str, Any], ...]
    opened: frozenset[str] = frozenset()

    @property
    def rules(self) -> tuple[str, ...]:
        """The rules that it breaks, in order, each once."""
        return tuple(sorted({each["rule"] for each in self.objections}))

    @property
    def left(self) -> tuple[str, ...]:
        """Those that still keep it out."""
        return tuple(rule for rule in self.rules if rule not in self.opened)

    @property
    def on_the_floor(self) -> bool:
        """Whether one of them holds whatever a policy says."""
        return any(each["layer"] == FLOOR for each in self.objections)


def refused(tx: Session, patch: Patch) -> Refused:
    """What there is to release of a patch that was refused."""
    found = [
        each
        for entry in patches.entries_of(tx, patch.id)
        if entry.kind == "policy"
        for each in entry.found.get("objections", ())
    ]
    denied = [each for each in found if each["outcome"] == "denied"] or found
    where = patches.where(tx, patch.attempt_id)
    attempt = attempts.get(tx, patch.attempt_id)
    assert attempt is not None, "attempts are never removed"
    every = ledger.waivers_for(tx, attempt.task_id, attempt.id, str(patch.tree))
    opened = frozenset(each.rule for each in every if each.patch == patch)
    return Refused(patch, where.name_of(patch), tuple(denied), opened)


def release(
    desk: Desk, tx: Transaction, run: Run, found: Refused, rule: str, said: tuple[str, str]
) -> tuple[str, ...]:
    """Release a rule of a patch that is refused; `said` is who does, and why. Doing it again does
    nothing. Returns the rules that still keep it out. Errors: `usage` (it breaks no such rule),
    `policy_denied` (the floor, or whoever wrote it)."""
    by, reason = said
    met = [each for each in found.objections if each["rule"] == rule]
    _require_releasable(found, rule, met)
    _require_other(desk, tx, run, found, (by, rule))
    if rule not in found.opened:
        paths = sorted({path for each in met for path in each["paths"]})
        facts = {"rule": rule, "paths": paths, "tree": found.patch.tree}
        ledger.say(tx, desk, run, found.patch, Word("waiver", "given", by, reason, facts))
    return tuple(each for each in found.left if each != rule)


def _require_releasable(found: Refused, rule: str, met: list[dict[str, Any]]) -> None:
    if not met:
        raise usage(
            f"patch {found.name} was not refused for {rule[:60]!r}",
            hint=f"the rules that it breaks: {', '.join(found.rules) or 'none'}",
        )
    if any(each["layer"] == FLOOR for each in met):
        raise InboxOrchError(
            "policy_denied",
            f"{rule} is not released: it holds whatever a policy says",
            hint=met[0]["remedy"],
            details={"patch": found.patch.id, "rule": rule},
        )


def _require_other(
    desk: Desk, tx: Transaction, run: Run, found: Refused, said: tuple[str, str]
) -> None:
    """Nobody releases what they wrote; `said` is who, and the rule."""
    by, rule = said
    writers = writers_of(desk, tx, courses.read(tx, run, found.patch.attempt_id))
    if by in writers | {found.patch.author}:
        raise InboxOrchError(
            "policy_denied",
            f"{by} has written patch {found.name}, and cannot release it",
            hint="somebody else has to: `--agent NAME` says who does",
            details={"patch": found.patch.id, "rule": rule},
        )


# -- in a decision ---------------------------------------------------------------------------


class Stopped(NamedTuple):
    """A refused patch because of which an attempt asks for a decision. `stage` is the one whose
    visit it was, whose work was taken back; None where somebody has refused it, so that it lies in
    the worktree still."""

    refused: Refused
    stage: str | None


def stopped_by(tx: Session, course: Course) -> Stopped | None:
    """The patch whose refusal stops an attempt, if that can be released: the work of the last visit
    was taken back for it, or somebody who was asked has just refused it; and nobody has changed the
    worktree since."""
    if course.plain or not course.run.patches:
        return None
    said = [v for v in course.visits if v.state != "void" and v.verdict != "relax"]
    last = said[-1] if said else None
    if last is None or _is_changed(course, last) or _has_taken(course, last):
        return None
    stage = last.stage if last.kind != "decision" else None
    patch = next(filter(None, (_of(last, each) for each in _refused_in(tx, course))), None)
    if patch is None or (stage is None and patch.head != course.last_head):
        return None
    found = refused(tx, patch)
    return None if found.on_the_floor else Stopped(found, stage)


def _refused_in(tx: Session, course: Course) -> list[Patch]:
    """The patches of an attempt that were refused, the newest first."""
    every = reversed(patches.of_attempt(tx, course.attempt.id))
    return [each for each in every if ledger.said_of(tx, each) == "quarantined"]


def _of(last: Visit, patch: Patch) -> Patch | None:
    """The patch, if it is the one that a visit has failed with, or that it says no to."""
    if last.kind != "decision":
        return patch if last.state == "failed" and patch.visit == last.number else None
    refuses = last.verdict == "refuse" and last.found.get("resume") == "done"
    return patch if refuses and patch.id in last.found.get("patches", ()) else None


def _has_taken(course: Course, last: Visit) -> bool:
    """Whether refused work was taken up in a visit, and refused once more: no rule that it was
    released from is why."""
    stage = course.stage_of(last)
    return last.kind == "action" and stage is not None and stage.type == "agent"


def _is_changed(course: Course, last: Visit) -> bool:
    """Whether a decision since that visit has found another tree in the worktree."""
    return any(each.snapshot is not None for each in course.visits[last.number :])


def relax(
    desk: Desk, tx: Transaction, run: Run, stopped: Refused, said: tuple[str | None, str, str]
) -> dict[str, Any]:
    """Release one rule of the patch that a decision is about; `said` is which (None: the only one
    that is left), who does, and why. Returns what is noted with the decision. Errors: `usage`
    (several are left, or it breaks no such rule), and as for `release`."""
    rule, by, why = said
    if rule is None and len(stopped.left) > 1:
        raise usage(
            f"patch {stopped.name} breaks several rules: {', '.join(stopped.left)}",
            hint="name one with --rule RULE; the next is asked about after it",
        )
    # With none left somebody has released them already: what is asked is to take it up.
    chosen = rule or next(iter(stopped.left or stopped.rules))
    left = release(desk, tx, run, stopped, chosen, (by, why))
    return {"rule": chosen, "left": list(left)}
