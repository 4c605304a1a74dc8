"""`patch rollback`: an accepted patch is undone on the branch on which a run's work comes together.

It is taken out in memory, and what remains is a patch of its own: judged by the policy, recorded,
and brought in under the intent of an integration. No working tree is touched, and what was accepted
stays in the history.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.digests import sha256_hex
from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.store.engine import Transaction

from ..attempts import keep
from ..attempts import patches as handed
from ..attempts import rows as attempts
from ..git import mending, reversing
from ..git.diffs import Span, changed_files
from ..git.repository import Repository
from ..git.reversing import Reversed
from ..journal import rows as journal_rows
from ..patches import ledger
from ..patches import policy as policies
from ..patches import rows as patches
from ..patches.examine import Told, examine_told
from ..patches.ledger import New, Word
from ..patches.model import Patch
from ..patches.policy import Examined
from ..patches.rules import approvals_needed
from ..runs import task_rows as tasks
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from ..runs.secrets import secrets_of
from . import branch, integrate, trial
from . import rows as integrations
from .rules import branch_of

MOST_REASON = 1000
_MOST_TRIES = 10
_MOST_NAMED = 5


class RolledBack(NamedTuple):
    """A patch that was undone: `reverse` undoes it, and the branch has come from `before` to
    `tip`. `builds_on` are attempts whose work has the patch in its history: accepted and not
    integrated yet, or going on."""

    name: str
    undone: Patch
    reverse: Patch
    reverse_name: str
    branch: str
    before: str
    tip: str
    builds_on: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "patch": self.undone.id,
            "name": self.name,
            "rolled_back_by": self.reverse.id,
            "by_name": self.reverse_name,
            "branch": self.branch,
            "before": self.before,
            "tip": self.tip,
            "paths": list(self.reverse.summary.paths),
            "builds_on": list(self.builds_on),
        }


class _Chosen(NamedTuple):
    """The patch that is to be undone, whose it is, and the branch that has it."""

    patch: Patch
    name: str
    attempt: Attempt
    task: Task
    head: str
    branch: str
    tip: str


def roll_back(desk: Desk, run: Run, name: str, *, reason: str | None = None) -> RolledBack:
    """Undo an accepted patch that was integrated.

    Errors: `usage`, `not_found`, `invalid_state` (it is not accepted, not integrated, or nothing of
    it is left), `patch_does_not_apply` (other work builds on it; `details` has the paths and whose
    that is), `policy_denied`, `approval_needed`, `dirty_repository` (the branch is checked out, and
    there are changes), `busy`, and those of git. Nothing is changed then.
    """
    reason = reason_of(reason)
    repository = desk.repository(run)
    mending.mend(repository)
    integrate.finish_integrations(desk, run)
    for _ in range(_MOST_TRIES):
        chosen = _chosen(desk, run, repository, name)
        found = _reversed(desk, run, repository, chosen, reason)
        reverse = _handed_in(desk, run, repository, chosen, found, reason)
        if _bring_in(desk, run, repository, chosen, reverse, reason):
            return _done(desk, run, repository, chosen, reverse)
    raise InboxOrchError(
        "busy",
        f"run {run.name} changes faster than {name} can be undone",
        hint="try again; nothing was moved",
    )


def reason_of(reason: str | None) -> str | None:
    """Why it is undone. Error `usage`."""
    if reason is None:
        return None
    words = " ".join(reason.split())
    if not words or not words.isprintable() or len(words) > MOST_REASON:
        raise usage(f"a reason is text of at most {MOST_REASON} characters", hint="--reason TEXT")
    return words


# -- which patch ---------------------------------------------------------------------------------


def _chosen(desk: Desk, run: Run, repository: Repository, name: str) -> _Chosen:
    with desk.database.snapshot() as snapshot:
        patch = ledger.named(snapshot, run, name)
        attempt = attempts.get(snapshot, patch.attempt_id)
        assert attempt is not None
        task = tasks.by_id(snapshot, attempt.task_id)
        state = ledger.state(snapshot, patch, attempt)
    named = f"{task.key}/{attempt.number}/{patch.number}"
    if state == "rolled_back":
        hint = "what undid it can be rolled back in its turn; `orch patch list` shows it"
        raise _refused(patch, f"{named} is undone already", hint)
    if state != "committed":
        hint = f"`orch patch show {named}` tells how it stands"
        raise _refused(patch, f"{named} is {state}, and was not accepted", hint)
    onto = branch_of(run)
    tip = repository.ref_commit(f"refs/heads/{onto}")
    head = _integrated(repository, attempt, patch, tip)
    if tip is None or head is None:
        hint = (
            f"`orch retry {task.key} --force` gives it up and has the task done again;"
            f" `orch integrate` brings it in, if it is to be undone there"
        )
        raise _refused(patch, f"{named} is accepted, and in no integration yet", hint)
    return _Chosen(patch, named, attempt, task, head, onto, tip)


def _integrated(
    repository: Repository, attempt: Attempt, patch: Patch, tip: str | None
) -> str | None:
    """The commit by which the patch came into the history of the branch; None when it did not."""
    accepted = repository.ref_commit(keep.ref_of(attempt))
    heads = (patch.head,) if patch.way == "reverse" else (accepted, attempt.head_commit)
    for head in heads:
        there = head is not None and repository.ref_commit(f"{head}^{{commit}}") is not None
        if there and tip is not None and repository.contains(tip, str(head)):
            return head
    return None


def _refused(patch: Patch, message: str, hint: str) -> InboxOrchError:
    return InboxOrchError("invalid_state", message, hint=hint, details={"patch": patch.id})


# -- what remains --------------------------------------------------------------------------------


def _reversed(
    desk: Desk, run: Run, repository: Repository, chosen: _Chosen, reason: str | None
) -> Reversed:
    patch, message = chosen.patch, _message(run, chosen, reason)
    found = reversing.reversed_in(repository, chosen.tip, patch.base_tree, str(patch.tree), message)
    if found.conflicts:
        raise _in_the_way(desk, repository, chosen, found.conflicts)
    if found.commit is None:
        hint = "what it changed was changed back, or done anew, by later work"
        raise _refused(patch, f"nothing of {chosen.name} is left on {chosen.branch}", hint)
    return found


def _message(run: Run, chosen: _Chosen, reason: str | None) -> str:
    text = f"Roll back {chosen.name}: {chosen.task.title}\n\nRun {run.name}."
    return text if reason is None else f"{text}\n\n{reason}"


def _in_the_way(
    desk: Desk, repository: Repository, chosen: _Chosen, paths: Sequence[str]
) -> InboxOrchError:
    """The error for what other work builds on; with whose that is."""
    names = _built_on(desk, repository, chosen, paths)
    whose = f"; {', '.join(names)} changed the same there" if names else ""
    more = f" and {len(paths) - _MOST_NAMED} more" if len(paths) > _MOST_NAMED else ""
    return InboxOrchError(
        "patch_does_not_apply",
        f"{chosen.name} cannot be undone by itself, in {', '.join(paths[:_MOST_NAMED])}{more}"
        f"{whose}",
        hint="undo those first, or let a new task change it back",
        details={"paths": list(paths), "built_on": list(names)},
    )


def _built_on(
    desk: Desk, repository: Repository, chosen: _Chosen, paths: Sequence[str]
) -> tuple[str, ...]:
    """The later patches of the attempt, and the attempts that were integrated after it, that change
    one of the paths."""
    with desk.database.snapshot() as snapshot:
        own = patches.of_attempt(snapshot, chosen.attempt.id)
        others = integrations.accepted(snapshot, chosen.attempt.run_id)
        keys = {t.id: t.key for t in tasks.of_run(snapshot, chosen.attempt.run_id)}
        states = {patch.id: ledger.said_of(snapshot, patch) for patch in own}
    about, found = set(paths), []
    prefix = f"{chosen.task.key}/{chosen.attempt.number}"
    for patch in own:
        later = patch.number > chosen.patch.number and states[patch.id] == "committed"
        if later and about & _paths(repository, patch.base_tree, str(patch.tree)):
            found.append(f"{prefix}/{patch.number}")
    for other in others:
        head = other.head_commit
        if other.id == chosen.attempt.id or head is None or other.base_commit is None:
            continue
        there = repository.ref_commit(f"{head}^{{commit}}") is not None
        came_in = there and repository.contains(chosen.tip, head)
        if came_in and about & _paths(repository, other.base_commit, head):
            found.append(f"{keys[other.task_id]}/{other.number}")
    return tuple(found)


def _paths(repository: Repository, base: str, head: str) -> set[str]:
    return {each.path for each in changed_files(Span(repository.path, base, head))}


# -- the patch that it is ------------------------------------------------------------------------


def _handed_in(
    desk: Desk,
    run: Run,
    repository: Repository,
    chosen: _Chosen,
    found: Reversed,
    reason: str | None,
) -> Patch:
    """The patch that undoes it, as it was judged. Errors: `policy_denied`, `approval_needed`."""
    config = config_of(run)
    policy = policies.of_task(config, chosen.task, staged=chosen.attempt.staged)
    told = Told(secrets_of(config), desk.actor(run))
    judged = examine_told(repository, chosen.tip, str(found.commit), policy, told)
    # Only what comes in is on the branch.
    handed.keep(repository, chosen.attempt, (str(found.commit),))
    with desk.database.transaction() as tx:
        patch = ledger.hand_in(tx, _new(desk, run, (chosen, found), judged))
        _void_others(desk, tx, run, patch)
        state = ledger.said_of(tx, patch)
        if state == "created":
            facts: dict[str, Any] = {"objections": [o.as_json() for o in judged.objections]}
            if judged.outcome == "asked":
                facts["needed"] = approvals_needed(policy)
            word = Word("policy", judged.outcome, None, judged.reason, facts, policy)
            state = ledger.say(tx, desk, run, patch, word)
    if state != "validated":
        raise _held(chosen, patch, state, judged)
    return patch


def _new(desk: Desk, run: Run, found: tuple[_Chosen, Reversed], judged: Examined) -> New:
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


def _held(chosen: _Chosen, patch: Patch, state: str, judged: Examined) -> InboxOrchError:
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


# -- bringing it in ------------------------------------------------------------------------------


def _bring_in(
    desk: Desk,
    run: Run,
    repository: Repository,
    chosen: _Chosen,
    reverse: Patch,
    reason: str | None,
) -> bool:
    """Move the branch and write down what that undoes; False when something has changed since."""
    facts = {
        "step": "move",
        "branch": chosen.branch,
        "before": chosen.tip,
        "tip": str(reverse.head),
        "merged": [],
        "conflicts": [],
        "rollback": {
            "patch": chosen.patch.id,
            "reverse": reverse.id,
            "by": desk.actor(run),
            "reason": reason,
        },
    }
    with desk.database.transaction() as tx:
        if ledger.said_of(tx, chosen.patch) != "committed":
            return False
        if ledger.said_of(tx, reverse) != "validated":
            return False
        number = journal_rows.open_integration(
            tx,
            run_id=run.id,
            data=facts,
            owner=desk.database.owner(),
            now_ms=tx.now.wall_ms,
        )
    try:
        moved = branch.moved(repository, chosen.branch, chosen.tip, str(reverse.head))
    except BaseException:
        # A signal may have come when the branch had moved.
        integrate.settle_integration(desk, run, repository, number, facts)
        raise
    if not moved:
        trial.forget_integration(desk, number)
        return False
    with desk.database.transaction() as tx:
        integrate.confirm(desk, tx, run, number, facts)
    return True


def _done(
    desk: Desk, run: Run, repository: Repository, chosen: _Chosen, reverse: Patch
) -> RolledBack:
    prefix = f"{chosen.task.key}/{chosen.attempt.number}"
    return RolledBack(
        chosen.name,
        chosen.patch,
        reverse,
        f"{prefix}/{reverse.number}",
        chosen.branch,
        chosen.tip,
        str(reverse.head),
        _builds_on(desk, run, repository, chosen),
    )


def _builds_on(desk: Desk, run: Run, repository: Repository, chosen: _Chosen) -> tuple[str, ...]:
    """The attempts that have the patch in their history and are in no integration yet."""
    with desk.database.snapshot() as snapshot:
        keys = {task.id: task.key for task in tasks.of_run(snapshot, run.id)}
        accepted = integrations.accepted(snapshot, run.id)
        live = attempts.live_of_run(snapshot, run.id)
    found = []
    for other in (*accepted, *live):
        at = other.head_commit or other.base_commit
        if at is None or repository.ref_commit(f"{at}^{{commit}}") is None:
            continue
        if repository.contains(at, chosen.head) and not repository.contains(chosen.tip, at):
            found.append(f"{keys[other.task_id]}/{other.number}")
    return tuple(found)
