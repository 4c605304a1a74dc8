"""What people say of patches: approve, refuse, release, give up. Each in one transaction.

A patch that a decision asks about is answered through that, so that it does not matter where it is
said.
"""

from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.store.engine import Transaction

from ..attempts import rows as attempts
from ..patches import approvals, ledger, states
from ..patches import rows as patches
from ..patches.ledger import Word
from ..patches.model import Entry, Patch
from ..runs.desk import Desk
from ..runs.model import Attempt, Run
from ..stages import attempt as stages
from ..stages import course, decide, releasing
from ..stages.decide import Answered
from ..stages.writers import writers_of


class Said(NamedTuple):
    """What a call has come to: the patch, its name and its state, what is still missing: names of
    people (how many), or rules that deny it; and `next`, what to do then, as a call with what that
    does; None where nothing of this patch is left to be done."""

    patch: Patch
    name: str
    state: str
    missing: int = 0
    denied_by: tuple[str, ...] = ()
    next: str | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "patch": self.patch.id,
            "name": self.name,
            "state": self.state,
            "missing": self.missing,
            "denied_by": list(self.denied_by),
            "next": self.next,
        }


class _Seen(NamedTuple):
    """A patch as it stands in the transaction."""

    patch: Patch
    attempt: Attempt
    where: patches.Where
    entries: tuple[Entry, ...]

    @property
    def name(self) -> str:
        return self.where.name_of(self.patch)

    @property
    def state(self) -> str:
        """However its attempt stands."""
        return states.state_of(self.entries)


def _seen(tx: Transaction, patch: Patch) -> _Seen:
    attempt = attempts.get(tx, patch.attempt_id)
    assert attempt is not None
    entries = tuple(patches.entries_of(tx, patch.id))
    return _Seen(patch, attempt, patches.where(tx, patch.attempt_id), entries)


def _told(tx: Transaction, seen: _Seen, **more: Any) -> Said:
    said = patches.entries_of(tx, seen.patch.id)
    state = states.state_of(said, given_up_at=seen.where.given_up_at)
    return Said(seen.patch, seen.name, state, **more)


# -- approving -------------------------------------------------------------------------------


def approve(desk: Desk, run: Run, patch: Patch, reason: str = "") -> Said:
    """Approve of a patch that a policy asks about. Errors: `invalid_state` (nothing is asked, or
    the caller has approved already), `policy_denied` (whoever wrote it)."""
    return _answer(desk, run, patch, Answered("approve", reason))


def refuse(desk: Desk, run: Run, patch: Patch, reason: str = "") -> Said:
    """Refuse a patch that a policy asks about. Error `invalid_state`."""
    return _answer(desk, run, patch, Answered("refuse", reason))


def _answer(desk: Desk, run: Run, patch: Patch, given: Answered) -> Said:
    _ask_on(desk, run, patch)
    with desk.database.transaction() as tx:
        seen = _seen(tx, patch)
        if seen.state != "queued":
            raise _not_asked(seen, given.answer)
        decision = decide.open_in(tx, seen.attempt)
        if decision is not None and patch.id in decision.patches:
            decide.answer(desk, tx, run, seen.attempt, given)
        else:
            _say(desk, tx, run, seen, given)
        left = [each for each in approvals.waiting(tx, patch.attempt_id) if each.patch == patch]
        missing = left[0].needs - len(left[0].given) if left else 0
        return _told(tx, seen, missing=missing, next=_after_answer(seen, given.answer, missing))


_ROLL_BACK = "`orch patch rollback` of the same patch once more takes it back"


def _after_answer(seen: _Seen, answer: str, missing: int) -> str:
    key = seen.where.key
    if missing:
        return f"`orch patch approve {seen.name} --agent NAME` by another lets it in"
    if seen.patch.rollback_of is not None:
        return _ROLL_BACK if answer == "approve" else "what it was to undo stays as it is"
    if answer == "approve" and seen.where.given_up:
        return f"`orch adopt {key}` takes it in"
    if seen.where.given_up:
        return f"`orch retry {key}` has it done anew"
    if answer == "approve":
        return "`orch reconcile` carries it on, as every wait and drive does"
    return f"`orch reconcile` carries that over; `orch task show {key}` tells how it goes on"


def _ask_on(desk: Desk, run: Run, patch: Patch) -> None:
    """Between two approvals nobody is asked until a leader has looked: do what it does."""
    with desk.database.snapshot() as snapshot:
        attempt = attempts.get(snapshot, patch.attempt_id)
    assert attempt is not None
    if attempt.staged and attempt.state in stages.AT_HAND:
        stages.advance(desk, run, [attempt])


def _say(desk: Desk, tx: Transaction, run: Run, seen: _Seen, given: Answered) -> None:
    """Of an attempt that is over, or still under way, so that nobody asks yet."""
    waiting = approvals.waiting(tx, seen.attempt.id)
    asked = tuple(each for each in waiting if each.patch == seen.patch)
    by = desk.actor(run)
    if given.answer == "approve":
        writers = writers_of(desk, tx, course.read(tx, run, seen.attempt.id))
        approvals.require_other(asked, writers, by)
        approvals.approve(desk, tx, run, asked, (by, given.hint or None))
    else:
        approvals.refuse(desk, tx, run, asked, (by, given.hint or None))


def _not_asked(seen: _Seen, verb: str) -> InboxOrchError:
    hint = f"`orch patch log {seen.name}` shows what was said of it"
    if seen.state == "quarantined":
        hint = f"`orch patch release {seen.name} --rule RULE --reason TEXT` lets it be handed in"
    return InboxOrchError(
        "invalid_state",
        f"patch {seen.name} is {seen.state}: `{verb}` does not apply to it",
        hint=hint,
        details={"patch": seen.patch.id, "state": seen.state},
    )


# -- releasing -------------------------------------------------------------------------------


def release(desk: Desk, run: Run, patch: Patch, rule: str, reason: str) -> Said:
    """Let a refused patch be handed in once more though it breaks a rule: this rule, of these
    paths, with this tree. Doing it again does nothing. Errors: `invalid_state` (it was not
    refused), `usage` (it breaks no such rule), `policy_denied` (the floor, or whoever wrote it)."""
    if not reason.strip():
        raise usage(
            "a release needs a reason", hint="give --reason TEXT: it is kept with the patch"
        )
    with desk.database.transaction() as tx:
        seen = _seen(tx, patch)
        if seen.state != "quarantined":
            raise _not_asked(seen, "release")
        found = releasing.refused(tx, patch)
        left = releasing.release(desk, tx, run, found, rule, (desk.actor(run), reason))
        decision = decide.open_in(tx, seen.attempt)
        asks = decision is not None and "relax" in decision.answers and not decision.rules
        after = _after_release(seen, left) if left or not asks else _take_up(seen)
        return _told(tx, seen, denied_by=left, next=after)


def _take_up(seen: _Seen) -> str:
    return f"`orch answer {seen.where.key} --decide relax --body WHY` takes it in at once"


def _after_release(seen: _Seen, denied_by: tuple[str, ...]) -> str:
    key, name = seen.where.key, seen.name
    if denied_by:
        return f"`orch patch release {name} --rule {denied_by[0]} --reason TEXT` releases the rest"
    if seen.patch.rollback_of is not None:
        return _ROLL_BACK
    if seen.where.ended_at is None:
        return f"`orch task show {key}` tells when it is handed in once more; it is let in then"
    if seen.patch.text is None:
        return f"`orch adopt {key}` takes it in"
    again = f"`orch patch export {name} | orch patch submit - --task {key} --replaces {name}`"
    return f"`orch retry {key}`, then {again} takes it in"


# -- giving up -------------------------------------------------------------------------------


def drop(desk: Desk, run: Run, patch: Patch, reason: str | None = None) -> Said:
    """Give a patch up that is refused, does not apply, or whose attempt is over; it is kept. Doing
    it again does nothing. Error `invalid_state`."""
    with desk.database.transaction() as tx:
        seen = _seen(tx, patch)
        if seen.state == "dropped":
            return _told(tx, seen)
        _require_droppable(seen)
        ledger.say(tx, desk, run, patch, Word("drop", "dropped", reason=reason))
        return _told(tx, seen, next=_after_drop(seen))


def _after_drop(seen: _Seen) -> str | None:
    if not seen.where.given_up:
        return None
    return f"`orch retry {seen.where.key}` has its task done anew, where nothing else does"


def _require_droppable(seen: _Seen) -> None:
    if seen.state in ("quarantined", "apply_failed") or (
        seen.where.given_up and seen.state not in states.ENDED
    ):
        return
    hint = f"`orch cancel {seen.where.key}` ends its attempt"
    if seen.state == "queued":
        hint = f"`orch patch refuse {seen.name}` says no to it"
    if seen.state == "committed":
        hint = "what was accepted is undone by another patch, not given up"
    raise InboxOrchError(
        "invalid_state",
        f"patch {seen.name} is {seen.state}: it cannot be given up",
        hint=hint,
        details={"patch": seen.patch.id, "state": seen.state},
    )
