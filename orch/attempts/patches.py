"""The change of an attempt as a patch: judged by what is in force for its task, and written down.

Git is asked by `judge`, before any transaction; `record` and what follows it only write.
"""

from typing import Any, NamedTuple

from inbox_orch.shared.digests import sha256_hex
from inbox_orch.shared.store.engine import Session, Transaction

from ..git import signed as signing
from ..git import snapshots
from ..git.repository import Repository
from ..git.signed import Signed
from ..patches import ledger, rows, states
from ..patches.examine import Told, examine_told
from ..patches.ledger import New, Waiver, Word
from ..patches.model import Patch, Summary
from ..patches.policy import NO_NAME, Examined, Objection, Policy, naming_rule, of_task
from ..patches.rules import FLOOR, approvals_needed
from ..runs import task_rows as tasks
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from ..runs.readiness import Heads
from ..runs.secrets import secrets_of
from . import harvesting
from . import rows as attempts

_MOST_REASON = 1000


class Judged(NamedTuple):
    """A change as it is handed in, what the policy says of it, the waivers that count for it, the
    commit with which it is accepted, and how it is called."""

    new: New
    examined: Examined
    policy: Policy
    waivers: tuple[Waiver, ...]
    head: str
    name: str = NO_NAME

    @property
    def denied(self) -> bool:
        """Whether it may not come in."""
        return self.examined.outcome == "denied"

    @property
    def asked(self) -> bool:
        """Whether somebody has to approve of it first."""
        return self.examined.outcome == "asked"

    @property
    def rejection(self) -> str:
        """Why it may not come in, and how it could, in a line."""
        named = self.examined.named(self.name)
        told = [o for o in named.objections if o.outcome == "denied"]
        return f"policy: {'; '.join(map(in_words, told))}"[:_MOST_REASON]


class NotFitting(NamedTuple):
    """A text that was handed in and fits nothing, and why."""

    new: New
    reason: str

    @property
    def asked(self) -> bool:
        """Nobody is asked about it."""
        return False


def in_words(objection: Objection) -> str:
    """What is objected to: by which rule of which layer, and how it could be allowed."""
    said = naming_rule(objection.rule, objection.layer, objection.text)
    return f"{said}; {objection.remedy}"


# -- judging ---------------------------------------------------------------------------------


def judge(desk: Desk, run: Run, task: Task, attempt: Attempt, head: str) -> Judged | None:
    """What is to be thought of the commits of an attempt from its base to `head`; None where there
    are none, or nothing of the run is judged. Errors: those of git where this machine is the cause,
    and of every write."""
    if not run.patches:
        return None
    repository = desk.repository(run)
    base = base_of(desk, repository, attempt)
    if head == base:
        return None
    policy = of_task(config_of(run), task, staged=task.blueprint is not None)
    left = harvesting.left_by(desk, run, task, attempt)
    signed = Signed(left.author, left.at, left.message)
    secrets = secrets_of(config_of(run))
    squashes = policy.is_more_than_the_floor and not policy.keeps_history
    messages = (signed.message,) if squashes else ()
    told = Told(secrets, left.author, messages)
    examined = examine_told(repository, base, head, policy, told)
    base_tree, tree = signing.trees_of(repository, base, head)
    with desk.database.snapshot() as snapshot:
        released = ledger.waivers_for(snapshot, task.id, attempt.id, tree)
    examined, waivers = let_in(examined, released)
    handed = _handed_in(attempt, head)
    new = New(
        run.id,
        attempt.id,
        handed.way,
        base,
        base_tree,
        tree,
        head,
        examined.summary._replace(notes=handed.notes),
        sha256_hex(f"{base_tree} {tree}".encode()),
        left.author,
        author=left.author,
        text=handed.text,
        replaces=waivers[0].patch.id if waivers else handed.replaces,
    )
    accepted = head
    if squashes and examined.outcome != "denied":
        accepted = signing.commit_of(repository, tree, base, signed)
    if policy.is_more_than_the_floor or examined.outcome == "denied":
        keep(repository, attempt, (head, accepted))
    return with_name(desk, Judged(new, examined, policy, waivers, accepted))


def with_name(desk: Desk, judged: Judged) -> Judged:
    """With the name that it has once it is written down, where there is something to be said."""
    if not judged.examined.objections:
        return judged
    with desk.database.snapshot() as snapshot:
        return judged._replace(name=ledger.name_of_new(snapshot, judged.new))


def base_of(desk: Desk, repository: Repository, attempt: Attempt) -> str:
    """The commit from which on the change of an attempt is judged, and that what is accepted stands
    on: its base; where it goes on from what an earlier attempt has come to, which may have been
    refused, the base of that one. Errors: those of git."""
    base = str(attempt.base_commit)
    if attempt.base_source != "attempt":
        return base
    with desk.database.snapshot() as snapshot:
        before = attempts.of_task(snapshot, attempt.task_id)
        of_run = tasks.of_run(snapshot, attempt.run_id, bodies=False)
        edges = tasks.dependencies_of_run(snapshot, attempt.run_id)
    bases = [
        str(each.base_commit)
        for each in before
        if each.number < attempt.number and each.base_commit and each.base_source != "attempt"
    ]
    behind = [each for each in dict.fromkeys(bases) if repository.contains(base, each)]
    nearest = repository.independent(behind) if len(behind) > 1 else behind
    # None is behind it where its worker has left the base: then all of it is judged.
    first = (nearest or bases or [base])[-1]
    task = next(each for each in of_run if each.id == attempt.task_id)
    return _with_heads(repository, attempt, (base, first), Heads(of_run, edges).of(task))


def _with_heads(
    repository: Repository, attempt: Attempt, between: tuple[str, str], heads: tuple[str, ...]
) -> str:
    """The first base with what was merged into the later one of work that was accepted since, which
    is no part of the attempt's. Made again it is the same commit."""
    base, first = between
    added = [
        head
        for head in heads
        if repository.contains(base, head) and not repository.contains(first, head)
    ]
    if not added:
        return first
    commits = (first, *repository.independent(added))
    text = f"Base of attempt {attempt.number}"
    merged = repository.merge(commits, text, at=attempt.created_at // 1000)
    return merged.commit or first


def author_of(desk: Desk, attempt: Attempt) -> str:
    """Who has handed in the last result of an attempt."""
    said = desk.bus.last_message(str(attempt.thread_id), "result")
    return attempt.mailbox if said is None else said.sender


class _Handed(NamedTuple):
    """How a change came: its way, of `model.WAYS`; the text that it came as, what was done to bring
    that in, and the patch that it is for."""

    way: str
    text: str | None = None
    notes: tuple[str, ...] = ()
    replaces: str | None = None


def handed_in(attempt: Attempt, head: str) -> str:
    """How the commit that is the newest of an attempt came, of `model.WAYS`."""
    return _handed_in(attempt, head).way


def _handed_in(attempt: Attempt, head: str) -> _Handed:
    found = attempts.details_of(attempt)
    brought, replaces = found.brought, None if found.text is None else found.text.replaces
    if brought is not None and brought.commit == head:
        return _Handed(brought.way, brought.sha256, brought.notes, replaces)
    harvested = found.harvested is not None and found.harvested.commit == head
    return _Handed("harvest" if harvested else "commits")


def not_fitting(
    desk: Desk, run: Run, attempt: Attempt, text: tuple[str, str, str], reason: str
) -> NotFitting | None:
    """A text that fits nothing, for its base: its way, its digest and who wrote it. None where
    nothing of the run is recorded. Errors: those of git where this machine is the cause."""
    if not run.patches:
        return None
    way, sha256, author = text
    base = str(attempt.base_commit)
    (base_tree,) = signing.trees_of(desk.repository(run), base)
    found = attempts.details_of(attempt).text
    new = New(
        run.id,
        attempt.id,
        way,
        base,
        base_tree,
        None,
        None,
        Summary(0, 0, 0, 0, ()),
        sha256,
        author,
        author=author,
        text=sha256,
        replaces=None if found is None else found.replaces,
    )
    return NotFitting(new, reason)


def let_in(examined: Examined, released: list[Waiver]) -> tuple[Examined, tuple[Waiver, ...]]:
    """What is still objected to where some of it was released, and the waivers that count. The
    floor is never released."""
    left: list[Objection] = []
    used: dict[str, Waiver] = {}
    for objection in examined.objections:
        waiver = next((each for each in released if _covers(each, objection)), None)
        if waiver is None:
            left.append(objection)
        else:
            used[waiver.patch.id] = waiver
    still_denied = any(objection.outcome == "denied" for objection in left)
    if still_denied:
        return examined, ()
    return examined._replace(objections=tuple(left)), tuple(used.values())


def _covers(waiver: Waiver, objection: Objection) -> bool:
    if waiver.rule != objection.rule or objection.layer == FLOOR:
        return False
    return not waiver.paths or set(objection.paths) <= set(waiver.paths)


def keep(repository: Repository, attempt: Attempt, commits: tuple[str, ...]) -> None:
    """Keep what was handed in, whatever becomes of the branch; it proves of no work that it is
    elsewhere, and is never merged. Errors: those of git."""
    ref = snapshots.ref_of(attempt.id)
    snapshots.keep(repository, ref, tuple(dict.fromkeys(commits)), "Handed in")


# -- writing it down -------------------------------------------------------------------------


def record(desk: Desk, tx: Transaction, run: Run, judged: Judged | NotFitting) -> tuple[Patch, str]:
    """The patch, and what the policy says of it; one that may come in lies in the worktree. What
    was written down before is not written again. Returns it with its state, however its attempt
    stands."""
    if isinstance(judged, NotFitting):
        patch = ledger.hand_in(tx, judged.new)
        state = ledger.said_of(tx, patch)
        if state == "created":
            word = Word("format", "failed", reason=judged.reason)
            state = ledger.say(tx, desk, run, patch, word)
        return patch, state
    patch, state = _fitting(tx, judged)
    if state != "created":
        return patch, state
    judged = judged._replace(name=rows.where(tx, patch.attempt_id).name_of(patch))
    examined = judged.examined.named(judged.name)
    facts: dict[str, Any] = {"objections": [each.as_json() for each in examined.objections]}
    if judged.asked:
        facts["needed"] = approvals_needed(judged.policy)
    verdict = Word(
        "policy",
        examined.outcome,
        reason=judged.rejection.removeprefix("policy: ") if judged.denied else examined.reason,
        facts=facts if examined.objections else None,
        policy=judged.policy,
    )
    state = ledger.say(tx, desk, run, patch, verdict)
    for waiver in {each.patch.id: each for each in judged.waivers}.values():
        ledger.say(tx, desk, run, waiver.patch, Word("waiver", "used", facts={"by": patch.id}))
    if examined.outcome == "allowed":
        state = ledger.say(tx, desk, run, patch, Word("apply", "applied"))
    return patch, state


_FITTING = {
    "denied": ("created", "quarantined"),
    "asked": ("created", "queued", "validated", "applied", "verified"),
    "allowed": ("created", "validated", "applied", "verified"),
}


def _fitting(tx: Transaction, judged: Judged) -> tuple[Patch, str]:
    """The patch of this change, and its state. One of which something else was said before (it was
    refused, say, and the task has another policy now) is replaced."""
    new = judged.new
    while True:
        patch = ledger.hand_in(tx, new)
        state = ledger.said_of(tx, patch)
        if state in _FITTING[judged.examined.outcome]:
            return patch, state
        new = new._replace(replaces=patch.id)


COME_IN = ("validated", "applied", "verified")
"""The states of patches that may be accepted."""


def checked(desk: Desk, tx: Transaction, run: Run, attempt: Attempt, *, passed: bool) -> None:
    """Note what the checks have come to on the tree of the attempt's patch."""
    patch, state = open_patch(tx, attempt)
    if patch is not None and state == ("applied" if passed else state) and state in COME_IN[1:]:
        ledger.say(tx, desk, run, patch, Word("gates", "passed" if passed else "failed"))


def accepted(desk: Desk, tx: Transaction, run: Run, attempt: Attempt, *, gates: bool) -> None:
    """The attempt is accepted with its patch; where it went through stages, with those of all that
    came in. `gates`: whether some have passed on the last."""
    last = True
    for patch in reversed(rows.of_attempt(tx, attempt.id)):
        state = ledger.said_of(tx, patch)
        if state not in COME_IN or patch.rollback_of is not None:
            continue
        words = [("apply", "applied")] if state == "validated" else []
        words += [("gates", "passed")] if gates and last and state != "verified" else []
        for kind, outcome in (*words, ("acceptance", "accepted")):
            ledger.say(tx, desk, run, patch, Word(kind, outcome))
        last = False
        if not attempt.staged:
            return


def open_patch(tx: Session, attempt: Attempt) -> tuple[Patch | None, str | None]:
    """The newest patch of an attempt of which something is still to be said, and its state; not one
    that is to undo another, which is no part of the attempt's work."""
    for patch in reversed(rows.of_attempt(tx, attempt.id)):
        state = ledger.said_of(tx, patch)
        if state not in states.ENDED and patch.rollback_of is None:
            return patch, state
    return None, None


def refusal(tx: Session, attempt: Attempt) -> str | None:
    """Why an attempt cannot be accepted though nobody is asked any more: somebody has refused its
    newest change by name, before its decision was open; None where nobody has."""
    for patch in reversed(rows.of_attempt(tx, attempt.id)):
        if patch.rollback_of is None:
            said = rows.entries_of(tx, patch.id)
            refused = [e for e in said if (e.kind, e.outcome) == ("approval", "refused")]
            return refused_by(refused[-1].by, refused[-1].reason) if refused else None
    return None


def refused_by(by: str, reason: str | None) -> str:
    """That somebody refuses a change, and why."""
    return f"policy: {by} refuses it" + (f": {reason}" if reason else "")
