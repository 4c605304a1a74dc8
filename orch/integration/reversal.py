"""The patch that undoes another one: judged by the policy, and written down, before any branch is
moved. What was released for the patch that is undone is not asked for again, where all of it gets
back to what it was.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.digests import sha256_hex
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.engine import Transaction

from ..attempts import patches as handed
from ..git.facts import facts
from ..git.repository import Repository
from ..git.reversing import Reversed
from ..patches import ledger
from ..patches import policy as policies
from ..patches import rows as patches
from ..patches.examine import Told, examine_told
from ..patches.ledger import New, Waiver, Word
from ..patches.model import Patch
from ..patches.policy import Examined
from ..patches.rules import approvals_needed
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from ..runs.secrets import secrets_of


class Chosen(NamedTuple):
    """The patch that is to be undone, whose it is, and the branch that has it."""

    patch: Patch
    name: str
    attempt: Attempt
    task: Task
    head: str
    branch: str
    tip: str


def handed_in(
    desk: Desk,
    run: Run,
    repository: Repository,
    chosen: Chosen,
    found: Reversed,
) -> Patch:
    """The patch that undoes it, as it was judged. Errors: `policy_denied`, `approval_needed`."""
    config = config_of(run)
    policy = policies.of_task(config, chosen.task, staged=chosen.attempt.staged)
    told = Told(secrets_of(config), desk.actor(run))
    judged = examine_told(repository, chosen.tip, str(found.commit), policy, told)
    # Only what comes in is on the branch.
    handed.keep(repository, chosen.attempt, (str(found.commit),))
    judged, waivers = _released(desk, repository, chosen, found, judged)
    new = _new(desk, run, (chosen, found), judged)
    open_waivers = [each for each in waivers if each.patch.tree == new.tree]
    if open_waivers:
        new = new._replace(replaces=open_waivers[0].patch.id)
    with desk.database.transaction() as tx:
        patch, state = _fitting(tx, new, judged)
        _void_others(desk, tx, run, patch)
        if state == "created":
            judged = judged.named(f"{chosen.task.key}/{chosen.attempt.number}/{patch.number}")
            facts: dict[str, Any] = {"objections": [o.as_json() for o in judged.objections]}
            if judged.outcome == "asked":
                facts["needed"] = approvals_needed(policy)
            if waivers:
                facts["released"] = [{"rule": each.rule, "by": each.by} for each in waivers]
            reason = judged.reason or _in_words(chosen, waivers)
            word = Word("policy", judged.outcome, None, reason, facts, policy)
            state = ledger.say(tx, desk, run, patch, word)
            for each in {each.patch.id: each for each in open_waivers}.values():
                ledger.say(
                    tx, desk, run, each.patch, Word("waiver", "used", facts={"by": patch.id})
                )
    if state != "validated":
        raise _held(chosen, patch, state, judged)
    return patch


def _released(
    desk: Desk, repository: Repository, chosen: Chosen, found: Reversed, judged: Examined
) -> tuple[Examined, tuple[Waiver, ...]]:
    """What is still objected to, and what was released of it, a waiver for each rule: of this very
    tree; or of the patch that is undone. Where that one came in because a rule was not to count,
    the rule does not hold up its exact reverse: what lies there then is what lay there before."""
    with desk.database.snapshot() as snapshot:
        given = ledger.waivers_for(snapshot, chosen.task.id, chosen.attempt.id, found.tree)
        used = ledger.waivers_used_by(snapshot, chosen.task.id, chosen.patch)
    if used and _is_exact(repository, chosen.patch, found):
        given += used
    left, _ = handed.let_in(judged, given)
    gone = {each.rule for each in judged.objections} - {each.rule for each in left.objections}
    by_rule = {each.rule: each for each in reversed(given) if each.rule in gone}
    return left, tuple(by_rule.values())


def _is_exact(repository: Repository, patch: Patch, found: Reversed) -> bool:
    """Whether every path of the patch gets what it had before, and no other path changes."""
    done = facts(repository, patch.base_tree, str(patch.tree)).files
    undone = facts(repository, found.before, found.tree).files
    there = {(c.path, c.old_mode, c.old_blob, c.new_mode, c.new_blob) for c in done}
    back = {(c.path, c.new_mode, c.new_blob, c.old_mode, c.old_blob) for c in undone}
    return there == back


def _in_words(chosen: Chosen, waivers: Sequence[Waiver]) -> str | None:
    rules = ", ".join(f"`{each.rule}` by {each.by}" for each in waivers)
    return f"released for {chosen.name} or for this: {rules}" if rules else None


def _fitting(tx: Transaction, new: New, judged: Examined) -> tuple[Patch, str]:
    """The patch, and its state. One that was refused before, and may come in now, is replaced."""
    patch = ledger.hand_in(tx, new)
    if ledger.said_of(tx, patch) != "quarantined":
        return patch, ledger.said_of(tx, patch)
    # Its release is used up when whoever was at it died before the branch was moved.
    for later in patches.replacing(tx, patch.id):
        if ledger.said_of(tx, later) == "validated":
            return later, "validated"
    if judged.outcome == "allowed":
        patch = ledger.hand_in(tx, new._replace(replaces=patch.id))
    return patch, ledger.said_of(tx, patch)


def _new(desk: Desk, run: Run, found: tuple[Chosen, Reversed], judged: Examined) -> New:
    chosen, undone = found
    return New(
        run.id,
        chosen.attempt.id,
        "reverse",
        chosen.tip,
        undone.before,
        undone.tree,
        undone.commit,
        judged.summary,
        sha256_hex(f"{chosen.patch.id} undone on {chosen.tip}".encode()),
        desk.actor(run),
        author=desk.actor(run),
        rollback_of=chosen.patch.id,
    )


def _void_others(desk: Desk, tx: Transaction, run: Run, patch: Patch) -> None:
    """What was to undo the same on an earlier commit speaks of nothing that is there any more."""
    for other in patches.of_attempt(tx, patch.attempt_id):
        same = other.rollback_of == patch.rollback_of and other.id != patch.id
        if same and ledger.said_of(tx, other) in ("queued", "validated"):
            ledger.say(tx, desk, run, other, Word("approval", "void"))


def _held(chosen: Chosen, patch: Patch, state: str, judged: Examined) -> InboxOrchError:
    name = f"{chosen.task.key}/{chosen.attempt.number}/{patch.number}"
    details = {
        "patch": patch.id,
        "name": name,
        "objections": [o.as_json() for o in judged.objections],
    }
    if state == "queued":
        return InboxOrchError(
            "approval_needed",
            f"{name}, which undoes {chosen.name}, waits for somebody: {judged.reason}",
            hint=f"somebody else has to: `orch patch approve {name} --agent NAME`; then roll back"
            " once more",
            details=details,
            data=details,
        )
    return InboxOrchError(
        "policy_denied",
        f"{name}, which undoes {chosen.name}, is {state}: {judged.reason}",
        hint=f"`orch patch show {name}` says what is in the way, and how it could be allowed",
        details=details,
    )
