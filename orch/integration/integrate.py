"""`integrate`: accepted work comes together on a branch of the run, conflicts go back to be solved.

What is merged is only objects until the branch is moved, by compare-and-swap, between an intent
and its confirmation. No working tree of the user's is touched, but for the fast-forward that was
asked for.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.engine import Transaction

from ..attempts import dispatch, moving, provision
from ..attempts import rows as attempts
from ..attempts.provision import LATER
from ..gates.checks import Checked
from ..git import integrating as git_integrating
from ..git import mending, worktrees
from ..git.integrating import Move, Moved
from ..git.repository import Repository
from ..journal import owners
from ..journal import rows as journal_rows
from ..journal.rows import Intent
from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.limits import FOREIGN_SECONDS, check_commands
from ..runs.model import Attempt, Conflict, Run, Task
from ..runs.readiness import Slots, taken_by
from . import branch, merge, rolled_back, trial
from . import rows as integrations
from . import rules as integration
from .merge import Plan, Work
from .rules import CONFLICT, HELD_BACK, MERGED, Result

_MOST_TRIES = 10
_NOT_FORWARDED = ("checked_out", "refused", "moved", "conflict", "not_tried")


class Integrated(NamedTuple):
    """What an integration came to. `checks` were run before, and nothing is moved when one of
    them fails; `moved`: the branch was, or a conflict was recorded. `dispatched` are the attempts
    that were opened for conflicts, `undispatched` why one could not be."""

    plan: Plan
    tip: str | None
    results: tuple[Result, ...]
    dry_run: bool
    onto: dict[str, Any] | None = None
    checks: tuple[Checked, ...] = ()
    moved: bool = False
    dispatched: tuple[dict[str, Any], ...] = ()
    undispatched: str | None = None

    @property
    def conflicts(self) -> list[Result]:
        """The pieces that do not merge, or did not earlier and are being worked on again."""
        return [result for result in self.results if result.state == CONFLICT]

    @property
    def held_back(self) -> list[Result]:
        """The pieces that build on those, or on what conflicted earlier."""
        return [result for result in self.results if result.state == HELD_BACK]

    @property
    def failed_check(self) -> Checked | None:
        """The check because of which nothing was moved."""
        return next((tried for tried in self.checks if not tried.passed), None)

    @property
    def not_forwarded(self) -> bool:
        """Whether the branch that was to come forward did not."""
        return self.onto is not None and self.onto["state"] in _NOT_FORWARDED

    def as_json(self) -> dict[str, Any]:
        return {
            "items": [result.as_json() for result in self.results],
            "truncated": False,
            "next_cursor": None,
            "dry_run": self.dry_run,
            "branch": self.plan.branch,
            "before": self.plan.before,
            "tip": self.tip,
            "moved": self.moved,
            "already": self.plan.already,
            "checks": [tried.as_json() for tried in self.checks],
            "onto": self.onto,
            "dispatched": list(self.dispatched),
            "undispatched": self.undispatched,
        }


def integrate(
    desk: Desk,
    run: Run,
    *,
    onto: str | None = None,
    checks: Sequence[str] = (),
    dry_run: bool = False,
    within: str | None = None,
) -> Integrated:
    """Merge the accepted work of a run, in the order of its dependencies, onto its branch
    `orch/<run>/integration`; with `onto`, let that branch come forward to it.

    `checks` are shell commands that are run in the files of the result, all pieces together,
    before anything is moved; when one fails, nothing is. A dry run runs none.

    What conflicts goes back to its task: a new attempt that starts from what was integrated,
    opened at once when the run is open and there is room. HEAD, where a run without a base
    begins, is that of the folder `within`. A dry run makes nothing but objects.
    Errors: `usage`, `not_found` (no such branch), `busy`, `dirty_repository` (the branch of
    the integration is checked out, and there are changes), and those of git.
    """
    check_commands(checks)
    repository = desk.repository(run)
    if not dry_run:
        mending.mend(repository)
        finish_integrations(desk, run)
    for _ in range(_MOST_TRIES):
        plan = merge.plan(repository, run, _work(desk, run), onto, within)
        if dry_run:
            return _done(plan, _forwarded(repository, plan, dry_run=True), dry_run=True)
        tried = trial.try_out(desk, run, repository, plan, checks) if plan.needs_check else ()
        if not all(each.passed for each in tried):
            return _done(plan, None, dry_run=False)._replace(checks=tried)
        if plan.changes_nothing or _bring_in(desk, run, repository, plan):
            forwarded = _forwarded(repository, plan, dry_run=False)
            done = _done(plan, forwarded, dry_run=False)._replace(
                checks=tried, moved=not plan.changes_nothing
            )
            return _offer_conflicts(desk, run, done)
    raise InboxOrchError(
        "busy",
        f"run {run.name} changes faster than it can be integrated",
        hint="try again; nothing was moved",
    )


def _work(desk: Desk, run: Run) -> Work:
    with desk.database.snapshot() as snapshot:
        of_run = tasks.of_run(snapshot, run.id)
        dependencies = tasks.dependencies_of_run(snapshot, run.id)
        accepted = integrations.accepted(snapshot, run.id)
        in_conflict = integrations.in_open_conflict(snapshot, run.id)
        once_accepted = integrations.once_accepted(snapshot, run.id) if in_conflict else []
        live = attempts.live_of_run(snapshot, run.id)
        ever = integrations.ever_accepted(snapshot, run.id)
    pieces = integration.pieces(of_run, dependencies, accepted)
    conflicts = integration.in_conflict(of_run, in_conflict, live)
    return Work(pieces, conflicts, once_accepted, ever, {task.id: task.key for task in of_run})


# -- moving the branch -------------------------------------------------------------------


def _bring_in(desk: Desk, run: Run, repository: Repository, plan: Plan) -> bool:
    """Move the branch and write down what came of each piece; False when something has
    changed since it was planned."""
    number = _begin(desk, run, plan)
    if number is None:
        return False
    facts = _facts(plan)
    try:
        moved = branch.moved(repository, plan.branch, plan.before, plan.tip)
    except BaseException:
        # A signal may have come when the branch had moved.
        settle_integration(desk, run, repository, number, facts)
        raise
    if not moved:
        trial.forget_integration(desk, number)
        return False
    with desk.database.transaction() as tx:
        confirm(desk, tx, run, number, facts)
    return True


def _begin(desk: Desk, run: Run, plan: Plan) -> int | None:
    """Write down what is about to be done, if what it was planned for still holds."""
    with desk.database.transaction() as tx:
        for result in plan.results:
            task = tasks.by_id(tx, result.piece.task.id)
            if task.accepted_attempt != result.piece.attempt.id:
                return None
        return journal_rows.open_integration(
            tx,
            run_id=run.id,
            data=_facts(plan),
            owner=desk.database.owner(),
            now_ms=tx.now.wall_ms,
        )


def confirm(desk: Desk, tx: Transaction, run: Run, number: int, facts: dict[str, Any]) -> None:
    """The branch has moved: say so, and give back what conflicts, unless another leader has
    taken this over and done it."""
    me = desk.database.owner()
    if not journal_rows.close_by_number(tx, number, "done", me, tx.now.wall_ms):
        return
    present = runs.get(tx, run.id)
    assert present is not None
    for attempt_id, commit in facts["merged"]:
        attempt = attempts.get(tx, attempt_id)
        assert attempt is not None
        moving.record_attempt(desk, tx, present, attempt, "attempt_integrated", {"commit": commit})
    for task_id in integrations.starting_from_integration(tx, run.id):
        tasks.update(tx, task_id, {"next_base": facts["tip"]}, expected_state="pending")
    if "rollback" in facts:
        rolled_back.confirm(desk, tx, present, facts)
    for attempt_id, paths in facts["conflicts"]:
        _record_conflict(desk, tx, present, attempt_id, facts["tip"], paths)


def _record_conflict(
    desk: Desk, tx: Transaction, run: Run, attempt_id: str, onto: str, paths: Sequence[str]
) -> None:
    """Remember it at the attempt, and give the task another one, if the run goes on."""
    attempt = attempts.get(tx, attempt_id)
    assert attempt is not None
    task = tasks.by_id(tx, attempt.task_id)
    if task.accepted_attempt != attempt.id:
        return  # it has been decided otherwise meanwhile
    conflict = Conflict(onto, tuple(paths))
    stored = conflict.column()
    if stored != attempt.conflict:
        changes = {"conflict": stored, "updated_at": tx.now.wall_ms}
        attempts.update(tx, attempt.id, changes, expected_state=attempt.state)
        facts = {**conflict.as_json(), "reason": f"conflict in {', '.join(paths)}"[:1000]}
        moving.record_attempt(desk, tx, run, attempt, "attempt_conflict", facts)
    if run.state in ("open", "paused"):
        _give_back(desk, tx, run, task, attempt, conflict)


def _give_back(
    desk: Desk, tx: Transaction, run: Run, task: Task, attempt: Attempt, conflict: Conflict
) -> None:
    reason = f"does not merge with what was integrated before: {', '.join(conflict.paths)}"
    moving.move_task(
        desk,
        tx,
        run,
        task,
        moving.Move(
            "pending",
            "conflict in the integration",
            {
                "accepted_attempt": None,
                "accepted_head": None,
                "next_base": conflict.onto,
                "next_base_source": "integration",
                # The worker that made the work is asked to make it fit.
                "mailbox": attempt.mailbox,
                "not_before": None,
                "reason": reason[:1000],
            },
        ),
        attempt=attempt,
    )


# -- what follows ------------------------------------------------------------------------


def _forwarded(repository: Repository, plan: Plan, *, dry_run: bool) -> Moved | None:
    """Let the target come forward, if there is one that can."""
    target = plan.target
    if target is None or target.paths:
        return None
    move = Move(target.branch, plan.tip, target.commit)
    if dry_run:
        return git_integrating.fast_forward(repository, move, plan.branch, dry_run=True)
    try:
        with worktrees.locked(repository) as lock:
            return git_integrating.fast_forward(repository, move, plan.branch, shared_locks=(lock,))
    except InboxOrchError as error:
        if error.code != "busy":
            raise
        return Moved("refused", reason=error.message)


def _offer_conflicts(desk: Desk, run: Run, done: Integrated) -> Integrated:
    """Open the new attempts at once, as far as the run has room for them. What cannot be
    opened now is ready, and a later dispatch opens it."""
    offered: dict[str, dict[str, Any]] = {}
    problem = None
    for result in done.plan.of(CONFLICT):
        task = result.piece.task
        if not _has_room_for(desk, run, task):
            continue
        try:
            # Who left its work uncommitted before does so again.
            harvest = attempts.details_of(result.piece.attempt).harvest is not None or None
            made = dispatch.dispatch(desk, run, task_names=[task.id], harvest=harvest)
        except InboxOrchError as error:
            # The integration itself is done; that must not be hidden by what came after.
            problem = f"{task.key}: {error.message}"
            continue
        offered |= {item["task"]: item for item in made.items}
    results = tuple(
        result._replace(offered=offered[result.piece.task.id]["id"])
        if result.piece.task.id in offered
        else result
        for result in done.results
    )
    return done._replace(results=results, dispatched=tuple(offered.values()), undispatched=problem)


def _has_room_for(desk: Desk, run: Run, task: Task) -> bool:
    with desk.database.snapshot() as snapshot:
        present = runs.get(snapshot, run.id)
        assert present is not None
        standing = moving.picture(desk, snapshot, present, desk.database.now().wall_ms)
        live = attempts.live_of_run(snapshot, run.id)
        mailbox = tasks.by_id(snapshot, task.id).mailbox
    free = Slots(present, taken_by(live)).free(mailbox)
    return present.state == "open" and standing.of(task.id).state == "ready" and free


# -- after a crash -----------------------------------------------------------------------


def finish_integrations(desk: Desk, run: Run) -> int:
    """Confirm what a process that is gone has moved; forget what it had not moved yet, which
    were only objects. Returns how many there were."""
    with desk.database.snapshot() as snapshot:
        begun = [i for i in journal_rows.open_intents(snapshot, run.id) if i.kind == "integrate"]
    return sum(_finish_integration(desk, run, intent) for intent in begun)


def _finish_integration(desk: Desk, run: Run, intent: Intent) -> bool:
    try:
        repository = desk.repository(run)
    except InboxOrchError:
        return False  # until it is there again
    facts = intent.data
    if not owners.is_abandoned(desk, intent, facts.get("patience_seconds", FOREIGN_SECONDS)):
        return False
    if facts["step"] == "check":
        return provision.take_over(desk, intent) and trial.clear_after_check(desk, run, intent)
    try:
        # Before it is taken over: from a process that waits in vain, no other could take it again.
        with worktrees.locked(repository):
            if not provision.take_over(desk, intent):
                return False
            settle_integration(desk, run, repository, intent.number, facts)
    except InboxOrchError as error:
        if error.code not in LATER:
            raise
        return False
    return True


def settle_integration(
    desk: Desk, run: Run, repository: Repository, number: int, facts: dict[str, Any]
) -> None:
    """Confirm it if the branch has moved; the branch tells. No git of it may still run."""
    present = repository.ref_commit(f"refs/heads/{facts['branch']}")
    # Where it never came to, nothing has kept from being collected.
    tip = repository.ref_commit(f"{facts['tip']}^{{commit}}")
    if present is not None and tip is not None and repository.contains(present, tip):
        with desk.database.transaction() as tx:
            confirm(desk, tx, run, number, facts)
    else:
        trial.forget_integration(desk, number)


def _facts(plan: Plan) -> dict[str, Any]:
    """What an intent has to hold so that another process can finish it."""
    return {
        "step": "move",
        "branch": plan.branch,
        "before": plan.before,
        "tip": plan.tip,
        "merged": [[r.piece.attempt.id, r.commit] for r in plan.of(MERGED)],
        "conflicts": [[r.piece.attempt.id, list(r.paths)] for r in plan.of(CONFLICT)],
    }


def _done(plan: Plan, moved: Moved | None, *, dry_run: bool) -> Integrated:
    onto = None if plan.target is None else merge.as_json(plan.target, moved, plan.tip)
    tip = None if plan.before is None and plan.changes_nothing else plan.tip
    return Integrated(plan, tip, (*plan.results, *plan.unresolved), dry_run, onto)
