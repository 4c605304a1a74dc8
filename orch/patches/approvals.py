"""Who has approved of what a policy asks about, and how many are still to.

A name counts once, and never that of whoever wrote it. Names are asserted, not proven. An approval
speaks of one patch, and so of one tree.
"""

from collections.abc import Sequence

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.engine import Session, Transaction

from ..runs.desk import Desk
from ..runs.model import Run
from . import ledger, states
from . import rows as patches
from .ledger import Word
from .model import Entry, Patch, Waiting


def waiting(tx: Session, attempt_id: str) -> tuple[Waiting, ...]:
    """The patches of an attempt that wait for approvals, in order."""
    found = []
    for patch in patches.of_attempt(tx, attempt_id):
        entries = patches.entries_of(tx, patch.id)
        if states.state_of(entries) == "queued":
            found.append(waits(patch, entries))
    return tuple(found)


def waits(patch: Patch, entries: Sequence[Entry]) -> Waiting:
    """What a patch that is queued waits for, by all that was said of it."""
    asked = next(e for e in entries if (e.kind, e.outcome) == ("policy", "asked"))
    given = dict.fromkeys(e.by for e in entries if (e.kind, e.outcome) == ("approval", "given"))
    facts = asked.found
    return Waiting(
        patch,
        asked.reason or "it is asked for",
        tuple(facts.get("objections", ())),
        int(facts.get("needed", 1)),
        tuple(given),
    )


def require_other(asked: tuple[Waiting, ...], authors: set[str | None], by: str) -> None:
    """Whether somebody may approve. Errors: `policy_denied` for whoever wrote it; `invalid_state`
    for who has approved of all of it already."""
    name = {"agent": by}
    if by in authors | {each.patch.author for each in asked}:
        raise InboxOrchError(
            "policy_denied",
            f"{by} has written what is to be approved, and cannot approve of it",
            hint="somebody else has to: `--agent NAME` says who answers",
            details=name,
        )
    if asked and all(by in each.given for each in asked):
        raise InboxOrchError(
            "invalid_state",
            f"{by} has approved of it already, and a name counts once",
            hint="it waits for the approval of somebody else: `--agent NAME` says who answers",
            details=name,
        )


def approve(
    desk: Desk, tx: Transaction, run: Run, asked: tuple[Waiting, ...], said: tuple[str, str | None]
) -> int:
    """Note that somebody approves; `said` is who, and why. Returns how many more have to."""
    by, reason = said
    missing = 0
    for each in asked:
        names = {*each.given, by}
        left = each.needs - len(names)
        missing = max(missing, left)
        if left <= 0:
            ledger.say(tx, desk, run, each.patch, Word("approval", "approved", by, reason))
        elif by not in each.given:
            ledger.say(tx, desk, run, each.patch, Word("approval", "given", by, reason))
    return max(missing, 0)


def refuse(
    desk: Desk, tx: Transaction, run: Run, asked: tuple[Waiting, ...], said: tuple[str, str | None]
) -> None:
    """Note that somebody refuses; `said` is who, and why."""
    by, reason = said
    for each in asked:
        ledger.say(tx, desk, run, each.patch, Word("approval", "refused", by, reason))
