"""`Scheduler`: all that `orch` does, over one open bus. A page: each method says what it is, and
what it does stands in the module that it names, which is loaded when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inbox_orch.inbox import Bus
from inbox_orch.shared.later import Later
from inbox_orch.shared.store.engine import Engine

from ..attempts import fold
from ..runs.desk import Desk
from ..runs.limits import DEFAULT_PAIRS, DEFAULT_WAIT_SECONDS

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import Any

    from inbox_orch.inbox.services.examining import Examined
    from inbox_orch.shared.store import waits

    from ..attempts import adopt as adopting
    from ..attempts import dispatch as dispatching
    from ..attempts import govern, steer
    from ..cleanup import checkpoints, clean, go_back, restore
    from ..cleanup.cleaned import Cleaned
    from ..council import count, settling, sit, views
    from ..council import open as council_opening
    from ..council.ask import Asked
    from ..integration import compare
    from ..integration import integrate as integrating
    from ..integration import roll_back as rolling_back
    from ..integration.pairs import Conflicts
    from ..purge import purge as purging
    from ..purge.found import Purged
    from ..runs import plan_import as plans
    from ..runs import planning
    from ..runs.desk import Answer
    from ..runs.model import Run
    from ..runs.plan import Opening, Plan, TaskSpec
    from ..stages.decide import Answered
    from ..views import charts, show
    from ..views import report as reporting
    from ..views import status as viewing
    from . import board as boarding
    from . import doctor as examining
    from . import drive as driving
    from . import wait as waiting
else:
    adopting = Later("inbox_orch.orch.attempts.adopt")
    boarding = Later("inbox_orch.orch.leader.board")
    charts = Later("inbox_orch.orch.views.charts")
    checkpoints = Later("inbox_orch.orch.cleanup.checkpoints")
    clean = Later("inbox_orch.orch.cleanup.clean")
    compare = Later("inbox_orch.orch.integration.compare")
    count = Later("inbox_orch.orch.council.count")
    views = Later("inbox_orch.orch.council.views")
    council_opening = Later("inbox_orch.orch.council.open")
    rolling_back = Later("inbox_orch.orch.integration.roll_back")
    settling = Later("inbox_orch.orch.council.settling")
    sit = Later("inbox_orch.orch.council.sit")
    dispatching = Later("inbox_orch.orch.attempts.dispatch")
    driving = Later("inbox_orch.orch.leader.drive")
    examining = Later("inbox_orch.orch.leader.doctor")
    go_back = Later("inbox_orch.orch.cleanup.go_back")
    govern = Later("inbox_orch.orch.attempts.govern")
    integrating = Later("inbox_orch.orch.integration.integrate")
    planning = Later("inbox_orch.orch.runs.planning")
    plans = Later("inbox_orch.orch.runs.plan_import")
    purging = Later("inbox_orch.orch.purge.purge")
    reporting = Later("inbox_orch.orch.views.report")
    restore = Later("inbox_orch.orch.cleanup.restore")
    show = Later("inbox_orch.orch.views.show")
    steer = Later("inbox_orch.orch.attempts.steer")
    viewing = Later("inbox_orch.orch.views.status")
    waiting = Later("inbox_orch.orch.leader.wait")


class Scheduler:
    """Runs, tasks, attempts, waits, councils, checks. One for each open `Bus`, in its thread.

    `caller` is the agent named by the call; without one a call acts as the run's leader.
    """

    def __init__(self, bus: Bus, caller: str | None = None) -> None:
        self.desk = Desk(bus, caller)

    @property
    def bus(self) -> Bus:
        """The bus that the scheduler stands on."""
        return self.desk.bus

    @property
    def database(self) -> Engine:
        """The database that the bus and the scheduler share."""
        return self.desk.database

    def run(self, name: str | None, *, shows: bool = False) -> Run:
        """The run of this name or id, else the only one that is not closed; with `shows`, where
        none is open, the last one. Errors: `not_found`; `usage` when there are several."""
        return self.desk.run(name, shows=shows)

    def run_init(
        self,
        opening: Opening,
        *,
        repository: str | None,
        worktree_root: str | None = None,
        key: str | None = None,
    ) -> Answer:
        """Open a run. `repository` is a folder inside it, None for a run without git. Errors:
        `usage`, `invalid_state` (a branch called `orch`), `git_missing`, `key_conflict`."""
        return planning.run_init(
            self.desk, opening, repository=repository, worktree_root=worktree_root, key=key
        )

    def add_task(self, run: Run, spec: TaskSpec, *, key: str | None = None) -> Answer:
        """Add a task. Errors: `usage`, `not_found` (a dependency), `invalid_state` (the run is
        closed, or the task's key is taken), `key_conflict`."""
        return planning.add_task(self.desk, run, spec, key=key)

    def add_dependency(
        self, run: Run, task_name: str, upstream_name: str, condition: str = "success"
    ) -> dict[str, Any]:
        """Let a pending task wait for another. Errors: `not_found`, `cycle` (with the path),
        `invalid_state` (the task is not pending, or the edge is there with another condition),
        `usage`."""
        return planning.add_dependency(self.desk, run, task_name, upstream_name, condition)

    def remove_dependency(self, run: Run, task_name: str, upstream_name: str) -> dict[str, Any]:
        """Let a pending task wait no more for another. Errors: `not_found` (also the edge),
        `invalid_state` (the task is not pending)."""
        return steer.remove_dependency(self.desk, run, task_name, upstream_name)

    def plan_check(self, run: Run | None, plan: Plan, *, repository: bool) -> dict[str, Any]:
        """What importing would come to; `run` is None for a new one. Errors: `invalid_state`."""
        return plans.plan_check(self.desk, run, plan, repository=repository)

    def plan_open(
        self,
        plan: Plan,
        opening: Opening,
        *,
        repository: str | None,
        worktree_root: str | None = None,
        key: str | None = None,
    ) -> Answer:
        """Open a run and take the plan into it, in one transaction. Errors: those of `run_init`."""
        return plans.plan_open(
            self.desk, plan, opening, repository=repository, worktree_root=worktree_root, key=key
        )

    def plan_opening_check(
        self, opening: Opening, repository: str | None, worktree_root: str | None
    ) -> None:
        """Raise what `plan_open` would raise about the run, with nothing written."""
        return plans.plan_opening_check(opening, repository, worktree_root)

    def plan_import(self, run: Run, plan: Plan, *, key: str | None = None) -> Answer:
        """Add every task of a plan to a run, with what they wait for: all or nothing. Errors:
        `invalid_state` (the run is closed), `key_conflict`."""
        return plans.plan_import(self.desk, run, plan, key=key)

    def plan_export(self, run: Run) -> Plan:
        """A run as the plan that, imported again, gives an equal one."""
        return plans.plan_export(self.desk, run)

    def runs(self, *, closed: bool = False) -> list[Run]:
        """The runs that are not closed, oldest first; with `closed` those too."""
        return govern.list_runs(self.desk, closed=closed)

    def pause_run(self, run: Run) -> govern.Governed:
        """Dispatch nothing more; what runs goes on. Error `invalid_state`."""
        return govern.pause_run(self.desk, run)

    def resume_run(self, run: Run) -> govern.Governed:
        """Dispatch again. Error `invalid_state`."""
        return govern.resume_run(self.desk, run)

    def cancel_run(self, run: Run) -> govern.Governed:
        """Cancel every pending task and stop every attempt; the last one that ends closes the run.
        Error `invalid_state` (it is closed, and was not cancelled)."""
        return govern.cancel_run(self.desk, run)

    def close_run(self, run: Run) -> govern.Governed:
        """Close a run in which nothing lives any more. Errors: `live_attempt`; `invalid_state` (it
        is being cancelled)."""
        return govern.close_run(self.desk, run)

    def reopen_run(self, run: Run) -> govern.Governed:
        """Go on with a closed run. Error `invalid_state`."""
        return govern.reopen_run(self.desk, run)

    def status(self, run: Run) -> viewing.Status:
        """Every task of a run, after folding in what the bus says."""
        return viewing.status(self.desk, run)

    def ready(self, run: Run) -> viewing.Ready:
        """The tasks that `dispatch` would take, in its order, and those that only lack a base."""
        return viewing.ready(self.desk, run)

    def questions(self, run: Run) -> list[viewing.Question]:
        """The open questions of a run, oldest first."""
        return viewing.questions(self.desk, run)

    def fold_if_writable(self, run: Run) -> bool:
        """Fold, unless the database cannot be written here; returns whether that was so."""
        return fold.fold_if_writable(self.desk, run)

    def show_task(self, run: Run, name: str) -> show.TaskShown:
        """One task of a run. Error `not_found`."""
        return show.show_task(self.desk, run, name)

    def graph(self, run: Run) -> charts.Graph:
        """Every task as it stands, and every dependency."""
        return charts.graph(self.desk, run)

    def critical_path(self, run: Run) -> charts.Critical:
        """The chain that sets the end, by the time of attempts as far as it is known."""
        return charts.critical(self.desk, run)

    def timeline(self, run: Run, *, most: int) -> charts.Timeline:
        """The newest `most` attempts of a run."""
        return charts.timeline(self.desk, run, most=most)

    def report(self, run: Run, *, most: int) -> reporting.Report:
        """A run with its newest `most` attempts."""
        return reporting.report(self.desk, run, most=most)

    def board(self, run: Run) -> boarding.Board:
        """One look. Errors: those of folding, which writes."""
        return boarding.board(self.desk, run)

    def board_due(self, run: Run) -> waits.Look:
        """When something of the run falls due by itself, as a wait takes it."""
        return boarding.board_due(self.desk, run)

    def board_topics(self, run: Run) -> tuple[str, ...]:
        """The bells to listen to."""
        return boarding.board_topics(run)

    def dispatch(
        self,
        run: Run,
        *,
        task_names: Sequence[str] = (),
        mailbox: str | None = None,
        base: str | None = None,
        allow_dirty: bool = False,
        dry_run: bool = False,
        key: str | None = None,
        within: str | None = None,
        harvest: bool | None = None,
    ) -> dispatching.Dispatched:
        """One attempt for each ready task, or for those named. Errors: `usage`, `not_found`,
        `invalid_state` (a named task is not ready, the run is not open), `dep_not_in_base`,
        `base_conflict`, `dirty_repository`, `key_conflict`, and those of git."""
        return dispatching.dispatch(
            self.desk,
            run,
            task_names=task_names,
            mailbox=mailbox,
            base=base,
            allow_dirty=allow_dirty,
            dry_run=dry_run,
            key=key,
            within=within,
            harvest=harvest,
        )

    def reconcile(self, run: Run, *, checks: bool = True) -> waiting.Reconciled:
        """Finish what a killed process has begun, and carry over what happened on the bus. Errors:
        those of every write, of git, and of `check_next`."""
        return waiting.reconcile(self.desk, run, checks=checks)

    def wait(
        self,
        run: Run,
        *,
        until: str = "change",
        after: str | None = None,
        wait_seconds: float = DEFAULT_WAIT_SECONDS,
        agent: str | None = None,
        checks: bool | int = True,
    ) -> waiting.Waited:
        """Block until something has happened: `change`, `blocked`, `run`, or `task:KEY`. Errors:
        `usage`, `not_found`; `timeout`, with the cursor to go on from."""
        return waiting.wait(
            self.desk,
            run,
            until=until,
            after=after,
            wait_seconds=wait_seconds,
            agent=agent,
            checks=checks,
        )

    def mark_told(self, told: waiting.Told, agent: str | None = None) -> None:
        """Move the agent's cursor in the run, forward only."""
        return waiting.mark_told(self.desk, told, agent)

    def drive(
        self, run: Run, wanted: driving.Drive | None = None
    ) -> Generator[driving.Step, None, None]:
        """Bring a run forward until what is wanted has come (by default its end). Errors: `usage`,
        `not_found`, those of every write, and of git."""
        return driving.drive(self.desk, run, wanted or driving.Drive())

    def answer(
        self,
        run: Run,
        task_name: str,
        *,
        body: str,
        key: str | None = None,
        decided: Answered | None = None,
    ) -> dict[str, Any]:
        """Answer the open question of a task's worker, or settle the decision that its blueprint
        asks for. Errors: `usage`, `not_found`, `invalid_state` (nothing is open, or the leader
        itself has put the question), `key_conflict`."""
        return viewing.answer(self.desk, run, task_name, body=body, key=key, decided=decided)

    def cancel(self, run: Run, names: Sequence[str]) -> steer.Steered:
        """Cancel tasks. Errors: `usage`, `not_found`, `invalid_state` (one is final), `busy` (the
        attempt is being made by another leader)."""
        return steer.cancel(self.desk, run, names)

    def skip(self, run: Run, names: Sequence[str]) -> steer.Steered:
        """Count pending tasks as done: what depends on their success may start. Errors: `usage`,
        `not_found`, `invalid_state` (one is not pending)."""
        return steer.skip(self.desk, run, names)

    def reassign(self, run: Run, names: Sequence[str], mailbox: str) -> steer.Steered:
        """Let other workers have tasks. Errors: `usage`, `not_found`, `invalid_state` (its work is
        submitted, or it is being cancelled), `busy`."""
        return steer.reassign(self.desk, run, names, mailbox)

    def retry(
        self,
        run: Run,
        names: Sequence[str],
        *,
        from_attempt: int | None = None,
        force: bool = False,
    ) -> steer.Steered:
        """Make failed and cancelled tasks pending again, with fresh budgets. Errors: `usage`,
        `not_found` (also attempt `from_attempt`), `invalid_state`."""
        return steer.retry(self.desk, run, names, from_attempt=from_attempt, force=force)

    def adopt(
        self, run: Run, task_name: str, *, number: int | None = None, checks: bool = True
    ) -> dict[str, Any]:
        """Take the commits of attempt `number`, or of the newest that has some, as the accepted
        work of a task. Errors: `not_found`, `invalid_state`, `live_attempt`, `work_rejected`,
        `busy`; those of git."""
        return adopting.adopt(self.desk, run, task_name, number=number, checks=checks)

    def attempt_list(self, run: Run, task_names: Sequence[str] = ()) -> list[restore.Listed]:
        """The attempts of a run, or of certain tasks, oldest first. Error `not_found`."""
        return restore.attempt_list(self.desk, run, task_names)

    def attempt_named(
        self, name: str, run_name: str | None, *, shows: bool = False
    ) -> tuple[Run, restore.Listed]:
        """The attempt with this id, or with this task's key and number (`KEY/N`, or `KEY`) in the
        run; with `shows` that is the last one, if none is open. Errors: `not_found`, `usage`."""
        return restore.attempt_named(self.desk, name, run_name, shows=shows)

    def attempt_show(self, run: Run, listed: restore.Listed) -> restore.Shown:
        """An attempt, and what there is of it. Errors: those of git."""
        return restore.attempt_show(self.desk, run, listed)

    def attempt_restore(
        self, run: Run, listed: restore.Listed, *, into: str | None = None
    ) -> restore.BroughtBack:
        """Bring back what clean-up has salvaged, into a folder that is new or empty. Errors:
        `not_found` (nothing was salvaged), `file_exists`, `usage`, and those of git."""
        return restore.attempt_restore(self.desk, run, listed, into=into)

    def checkpoint_list(
        self, run: Run, listed: restore.Listed | None = None
    ) -> list[checkpoints.Checkpoint]:
        """The checkpoints of an attempt, or of all attempts of a run. Errors: those of git."""
        return checkpoints.checkpoint_list(self.desk, run, listed)

    def checkpoint_named(
        self, name: str, run_name: str | None, *, shows: bool = False
    ) -> tuple[Run, checkpoints.Checkpoint]:
        """The checkpoint `KEY/ATTEMPT/N`; with `shows` of the last run, if none is open. Errors:
        `usage`, `not_found`, those of git."""
        return checkpoints.checkpoint_named(self.desk, name, run_name, shows=shows)

    def checkpoint_show(
        self, run: Run, checkpoint: checkpoints.Checkpoint, *, diff: bool = False
    ) -> checkpoints.Shown:
        """A checkpoint, and what it changes against the one before. Errors: those of git."""
        return checkpoints.checkpoint_show(self.desk, run, checkpoint, diff=diff)

    def checkpoint_make(
        self, run: Run, listed: restore.Listed, note: str | None = None
    ) -> checkpoints.Made:
        """Keep what lies in the worktree of an attempt now. Errors: `usage`, `invalid_state`,
        `busy`, and those of git."""
        return checkpoints.checkpoint_make(self.desk, run, listed, note)

    def checkpoint_restore(self, run: Run, checkpoint: checkpoints.Checkpoint) -> go_back.WentBack:
        """Let a worktree be as in a checkpoint. Errors: `live_attempt`, `invalid_state`, `busy`,
        and those of git."""
        return go_back.checkpoint_restore(self.desk, run, checkpoint)

    def checkpoint_into(
        self, run: Run, checkpoint: checkpoints.Checkpoint, folder: str
    ) -> checkpoints.Elsewhere:
        """Write the files of a checkpoint into a folder that is new or empty. Errors:
        `file_exists`, `usage`, and those of git."""
        return checkpoints.checkpoint_into(self.desk, run, checkpoint, folder)

    def conflicts(self, run: Run, *, most_pairs: int = DEFAULT_PAIRS) -> Conflicts:
        """Compare each two attempts that are live, or accepted and not integrated yet, and each
        with what was integrated. Errors: `usage` (a run without a repository), those of git."""
        return compare.conflicts(self.desk, run, most_pairs=most_pairs)

    def integrate(
        self,
        run: Run,
        *,
        onto: str | None = None,
        checks: Sequence[str] = (),
        dry_run: bool = False,
        within: str | None = None,
    ) -> integrating.Integrated:
        """Merge the accepted work of a run onto its branch `orch/<run>/integration`. Errors:
        `usage`, `not_found` (no such branch), `busy`, `dirty_repository`, and those of git."""
        return integrating.integrate(
            self.desk, run, onto=onto, checks=checks, dry_run=dry_run, within=within
        )

    def patch_rollback(
        self, run: Run, name: str, *, reason: str | None = None
    ) -> rolling_back.RolledBack:
        """Undo an accepted patch that was integrated. Errors: `usage`, `not_found`,
        `invalid_state`, `patch_does_not_apply`, `policy_denied`, `approval_needed`,
        `dirty_repository`, `busy`, and those of git."""
        return rolling_back.roll_back(self.desk, run, name, reason=reason)

    def purge(self, values: Sequence[str], *, yes: bool, reason: str | None = None) -> Purged:
        """Look for secrets in all that is stored; with `yes` take them out. Errors: `usage`,
        `busy`, and those of every write and of git."""
        return purging.purge(self.desk, values, yes=yes, reason=reason)

    def cleanup(
        self,
        run: Run,
        *,
        task_names: Sequence[str] = (),
        force: bool = False,
        dry_run: bool = False,
        within: str | None = None,
    ) -> Cleaned:
        """Take away the worktrees of ended attempts, of all tasks or of those named. Errors also:
        `usage`, `not_found`, and those of git."""
        return clean.clean_up(
            self.desk, run, task_names=task_names, force=force, dry_run=dry_run, within=within
        )

    def doctor(self, *, verify: bool = False) -> Examined:
        """Look at git and at what is unfinished; with `verify`, compare tables and events, too."""
        return examining.doctor(self.desk, verify=verify)

    def council(self, name: str | None, *, shows: bool = False) -> Run:
        """The run of the council with this name or id, else the only one that is not closed; with
        `shows`, where none is open, the last one. Errors: `not_found`; `usage` (several)."""
        return views.council(self.desk, name, shows=shows)

    def start_council(self, asked: Asked, *, key: str | None = None) -> Answer:
        """Open a council and ask its reviewers. Errors: `usage`, `key_conflict`, `git_missing`,
        `invalid_state` (a branch `orch`), and those of every write."""
        return council_opening.start_council(self.desk, asked, key=key)

    def wait_for_council(self, run: Run, *, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> sit.Sat:
        """Block until every seat is final, or the round's deadline has come. Error `timeout`."""
        return sit.wait_for_council(self.desk, run, wait_seconds=wait_seconds)

    def show_council(self, run: Run) -> sit.Sat:
        """A council with its seats, after taking in what has come."""
        return sit.show_council(self.desk, run)

    def councils(self) -> list[views.CouncilView]:
        """Every council, oldest first, as it is stored."""
        return sit.list_councils(self.desk)

    def tally_of(
        self, run: Run, *, overrides: bool = True, revision: int | None = None
    ) -> count.Counted:
        """Take in what reviewers have sent, and count it. Error `not_found`."""
        return count.tally_of(self.desk, run, overrides=overrides, revision=revision)

    def suggestions(self, run: Run) -> dict[str, Any]:
        """Pairs that may be one recommendation, to be decided on."""
        return count.suggestions(self.desk, run)

    def settle_groups(self, run: Run, wanted: Sequence[settling.Settled]) -> dict[str, Any]:
        """Record what a leader has settled, all or nothing. Errors: `usage`, `not_found`,
        `invalid_state`, `opposed` (without `forced`), `busy` (others settle faster)."""
        return settling.settle_groups(self.desk, run, wanted)

    def open_ballot(self, run: Run, *, deadline_seconds: float | None) -> dict[str, Any]:
        """Ask each reviewer whose reply counts about the groups that it did not raise. Error
        `invalid_state`."""
        return council_opening.open_ballot(self.desk, run, deadline_seconds=deadline_seconds)

    def keep_report(self, counted: count.Counted, name: str, content: bytes) -> dict[str, Any]:
        """Store a report as an artifact of the run. Errors: those of every write."""
        return count.keep_report(self.desk, counted, name, content)
