"""`Scheduler`: all that `orch` does, over one open bus. A page: each method says what it is, and
what it does stands in the module that it names, which is loaded when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inbox_orch.inbox import Bus
from inbox_orch.shared.later import Later
from inbox_orch.shared.store.sqlite.database import Database

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
    from ..attempts.dispatch import Dispatched
    from ..attempts.govern import Governed
    from ..attempts.steer import Steered
    from ..cleanup import clean, restore
    from ..cleanup.clean import Cleaned
    from ..cleanup.restore import BroughtBack, Listed, Shown
    from ..council import count, sit, views
    from ..council import open as council_opening
    from ..council.ask import Asked
    from ..council.count import Counted, Settled
    from ..council.sit import Sat
    from ..council.views import CouncilView
    from ..integration import compare
    from ..integration import integrate as integrating
    from ..integration.integrate import Integrated
    from ..integration.pairs import Conflicts
    from ..runs import plan_import as plans
    from ..runs import planning
    from ..runs.desk import Answer
    from ..runs.model import Run
    from ..runs.plan import Opening, Plan, TaskSpec
    from ..views import charts, show
    from ..views import report as reporting
    from ..views import status as viewing
    from ..views.charts import Critical, Graph, Timeline
    from ..views.report import Report
    from ..views.show import TaskShown
    from ..views.status import Question, Ready, Status
    from . import board as boarding
    from . import doctor as examining
    from . import drive as driving
    from . import wait as waiting
    from .board import Board
    from .drive import Drive, Step
    from .wait import Reconciled, Told, Waited
else:
    adopting = Later("inbox_orch.orch.attempts.adopt")
    boarding = Later("inbox_orch.orch.leader.board")
    charts = Later("inbox_orch.orch.views.charts")
    clean = Later("inbox_orch.orch.cleanup.clean")
    compare = Later("inbox_orch.orch.integration.compare")
    count = Later("inbox_orch.orch.council.count")
    views = Later("inbox_orch.orch.council.views")
    council_opening = Later("inbox_orch.orch.council.open")
    sit = Later("inbox_orch.orch.council.sit")
    dispatching = Later("inbox_orch.orch.attempts.dispatch")
    driving = Later("inbox_orch.orch.leader.drive")
    examining = Later("inbox_orch.orch.leader.doctor")
    govern = Later("inbox_orch.orch.attempts.govern")
    integrating = Later("inbox_orch.orch.integration.integrate")
    planning = Later("inbox_orch.orch.runs.planning")
    plans = Later("inbox_orch.orch.runs.plan_import")
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
    def database(self) -> Database:
        """The database that the bus and the scheduler share."""
        return self.desk.database

    def run(self, name: str | None) -> Run:
        """The run of this name or id, else the only one that is not closed. Errors: `not_found`;
        `usage`, which lists them, when there are several."""
        return self.desk.run(name)

    def run_init(
        self,
        opening: Opening,
        *,
        repository: str | None,
        worktree_root: str | None = None,
        key: str | None = None,
    ) -> Answer:
        """Open a run. `repository` is a folder inside it, None for a run without git.
        Errors: `usage`, `invalid_state` (a branch called `orch`), `git_missing`,
        `key_conflict`.
        """
        return planning.run_init(
            self.desk, opening, repository=repository, worktree_root=worktree_root, key=key
        )

    def add_task(self, run: Run, spec: TaskSpec, *, key: str | None = None) -> Answer:
        """Add a task. Errors: `usage`, `not_found` (a dependency), `invalid_state` (the run is
        closed, or the task's key is taken), `key_conflict`.
        """
        return planning.add_task(self.desk, run, spec, key=key)

    def add_dependency(
        self, run: Run, task_name: str, upstream_name: str, condition: str = "success"
    ) -> dict[str, Any]:
        """Let a pending task wait for another; adding the same edge again changes
        nothing. Errors: `not_found`, `cycle` (with the path), `invalid_state` (the task
        is not pending, or the edge is there with another condition), `usage`.
        """
        return planning.add_dependency(self.desk, run, task_name, upstream_name, condition)

    def remove_dependency(self, run: Run, task_name: str, upstream_name: str) -> dict[str, Any]:
        """Let a pending task wait no more for another. Errors: `not_found` (also the
        edge), `invalid_state` (the task is not pending).
        """
        return steer.remove_dependency(self.desk, run, task_name, upstream_name)

    def plan_check(self, run: Run | None, plan: Plan, *, repository: bool) -> dict[str, Any]:
        """What importing would come to, with nothing written; `run` is None for a new
        one. Errors: `invalid_state`.
        """
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
        """Open a run and take the plan into it, in one transaction. Errors: those of
        `run_init`.
        """
        return plans.plan_open(
            self.desk, plan, opening, repository=repository, worktree_root=worktree_root, key=key
        )

    def plan_opening_check(
        self, opening: Opening, repository: str | None, worktree_root: str | None
    ) -> None:
        """Raise what `plan_open` would raise about the run, with nothing written."""
        return plans.plan_opening_check(opening, repository, worktree_root)

    def plan_import(self, run: Run, plan: Plan, *, key: str | None = None) -> Answer:
        """Add every task of a plan to a run, with what they wait for: all or nothing.
        Errors: `invalid_state` (the run is closed), `key_conflict`.
        """
        return plans.plan_import(self.desk, run, plan, key=key)

    def plan_export(self, run: Run) -> Plan:
        """A run as the plan that, imported again, gives an equal one: its config with
        the values of secrets left out, its tasks in the order of their making, none of
        them begun.
        """
        return plans.plan_export(self.desk, run)

    def runs(self, *, closed: bool = False) -> list[Run]:
        """The runs that are not closed, oldest first; with `closed` those too."""
        return govern.list_runs(self.desk, closed=closed)

    def pause_run(self, run: Run) -> Governed:
        """Dispatch nothing more; what runs goes on. Error `invalid_state`."""
        return govern.pause_run(self.desk, run)

    def resume_run(self, run: Run) -> Governed:
        """Dispatch again. Error `invalid_state`."""
        return govern.resume_run(self.desk, run)

    def cancel_run(self, run: Run) -> Governed:
        """Cancel every pending task and stop every attempt; the run is closed once the
        last one has ended, by whichever command notices it. Error `invalid_state` (it
        is closed, and was not cancelled).
        """
        return govern.cancel_run(self.desk, run)

    def close_run(self, run: Run) -> Governed:
        """Close a run in which nothing lives any more. Errors: `live_attempt`;
        `invalid_state` (it is being cancelled).
        """
        return govern.close_run(self.desk, run)

    def reopen_run(self, run: Run) -> Governed:
        """Go on with a closed run, also with one that was closed by being cancelled;
        its tasks stay as they are. Error `invalid_state`.
        """
        return govern.reopen_run(self.desk, run)

    def status(self, run: Run) -> Status:
        """Every task of a run, after folding in what the bus says."""
        return viewing.status(self.desk, run)

    def ready(self, run: Run) -> Ready:
        """The tasks that `dispatch` would take, in its order, and those that only lack
        a base.
        """
        return viewing.ready(self.desk, run)

    def questions(self, run: Run) -> list[Question]:
        """The open questions of a run, oldest first."""
        return viewing.questions(self.desk, run)

    def fold_if_writable(self, run: Run) -> bool:
        """Fold, unless the database cannot be written here; returns whether that was
        so.
        """
        return fold.fold_if_writable(self.desk, run)

    def show_task(self, run: Run, name: str) -> TaskShown:
        """One task of a run. Error `not_found`."""
        return show.show_task(self.desk, run, name)

    def graph(self, run: Run) -> Graph:
        """Every task as it stands, and every dependency, after folding in what the bus
        says.
        """
        return charts.graph(self.desk, run)

    def critical_path(self, run: Run) -> Critical:
        """The chain that sets the end, by the time of attempts as far as it is known."""
        return charts.critical(self.desk, run)

    def timeline(self, run: Run, *, most: int) -> Timeline:
        """The newest `most` attempts of a run."""
        return charts.timeline(self.desk, run, most=most)

    def report(self, run: Run, *, most: int) -> Report:
        """A run with its newest `most` attempts. What git cannot tell any more is left
        out.
        """
        return reporting.report(self.desk, run, most=most)

    def board(self, run: Run) -> Board:
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
    ) -> Dispatched:
        """One attempt for each ready task, or for those named, in the order of urgency.
        Errors: `usage`, `not_found`, `invalid_state` (a named task is not ready, the
        run is not open), `dep_not_in_base`, `base_conflict` (of a named task),
        `dirty_repository`, `key_conflict`, and those of git.
        """
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
        )

    def reconcile(self, run: Run, *, checks: bool = True) -> Reconciled:
        """Finish what a killed process has begun, carry over what happened on the bus,
        and look at what workers say is done, with the checks unless `checks` is False.
        Doing it again changes nothing. Errors: those of every write, of git, and of
        `check_next`.
        """
        return waiting.reconcile(self.desk, run, checks=checks)

    def wait(
        self,
        run: Run,
        *,
        until: str = "change",
        after: str | None = None,
        wait_seconds: float = DEFAULT_WAIT_SECONDS,
        agent: str | None = None,
        checks: bool = True,
    ) -> Waited:
        """Block until something has happened: `change`, `blocked`, `run`, or
        `task:KEY`. Errors: `usage`, `not_found`; `timeout`, with the cursor to go on
        from. While there is nothing to tell, the checks of submitted attempts are run,
        unless `checks` is False. None starts after the deadline; one that has begun is
        not cut short.
        """
        return waiting.wait(
            self.desk,
            run,
            until=until,
            after=after,
            wait_seconds=wait_seconds,
            agent=agent,
            checks=checks,
        )

    def mark_told(self, told: Told, agent: str | None = None) -> None:
        """Move the agent's cursor in the run, forward only."""
        return waiting.mark_told(self.desk, told, agent)

    def drive(self, run: Run, wanted: Drive | None = None) -> Generator[Step, None, None]:
        """Bring a run forward until what is wanted has come (by default its end), or
        until nothing moves any more without a decision, or for as long as is wanted.
        Errors: `usage`, `not_found`, those of every write, and of git.
        """
        return driving.drive(self.desk, run, wanted or driving.Drive())

    def answer(
        self, run: Run, task_name: str, *, body: str, key: str | None = None
    ) -> dict[str, Any]:
        """Answer the open question of a task's worker. Errors: `usage`, `not_found`,
        `invalid_state` (no question is open, or the leader itself has put it),
        `key_conflict`.
        """
        return viewing.answer(self.desk, run, task_name, body=body, key=key)

    def cancel(self, run: Run, names: Sequence[str]) -> Steered:
        """Cancel tasks: one that is pending at once, one with an attempt when that has
        ended. Errors: `usage`, `not_found`, `invalid_state` (one is final), `busy` (the
        attempt is being made by another leader).
        """
        return steer.cancel(self.desk, run, names)

    def skip(self, run: Run, names: Sequence[str]) -> Steered:
        """Count pending tasks as done: what depends on their success may start. Errors:
        `usage`, `not_found`, `invalid_state` (one is not pending).
        """
        return steer.skip(self.desk, run, names)

    def reassign(self, run: Run, names: Sequence[str], mailbox: str) -> Steered:
        """Let other workers have tasks. An attempt that is with a worker is stopped,
        and counts nothing; the next one goes to `mailbox`. Errors: `usage`,
        `not_found`, `invalid_state` (its work is submitted, or it is being cancelled),
        `busy`.
        """
        return steer.reassign(self.desk, run, names, mailbox)

    def retry(
        self,
        run: Run,
        names: Sequence[str],
        *,
        from_attempt: int | None = None,
        force: bool = False,
    ) -> Steered:
        """Make failed and cancelled tasks pending again, with fresh budgets; with
        `force` succeeded ones too. `from_attempt` is the number of an attempt whose
        work the next one goes on with; without it the next one starts anew. Errors:
        `usage`, `not_found` (also such an attempt), `invalid_state`.
        """
        return steer.retry(self.desk, run, names, from_attempt=from_attempt, force=force)

    def adopt(
        self, run: Run, task_name: str, *, number: int | None = None, checks: bool = True
    ) -> dict[str, Any]:
        """Take the commits of attempt `number`, by default of the newest ended attempt
        that has some, as the accepted work of a task. Without `checks` those of the
        task are not run. Errors: `not_found` (the task, the attempt); `invalid_state`
        (the task has accepted work or was skipped, or has no worktree; the run is
        closed or being cancelled; the attempt has not ended); `live_attempt`;
        `work_rejected`, with what was found; `busy` (somebody else is adopting it);
        those of git. SIGINT and SIGTERM leave everything as it was.
        """
        return adopting.adopt(self.desk, run, task_name, number=number, checks=checks)

    def attempt_list(self, run: Run, task_names: Sequence[str] = ()) -> list[Listed]:
        """The attempts of a run, or of certain tasks, oldest first. Error `not_found`."""
        return restore.attempt_list(self.desk, run, task_names)

    def attempt_named(self, name: str, run_name: str | None) -> tuple[Run, Listed]:
        """The attempt with this id, of whichever run, or with this task's key and
        number (`KEY/N`; of the newest with `KEY` alone) in the run. Errors:
        `not_found`, `usage`.
        """
        return restore.attempt_named(self.desk, name, run_name)

    def attempt_show(self, run: Run, listed: Listed) -> Shown:
        """An attempt, and what there is of it. Errors: those of git."""
        return restore.attempt_show(self.desk, run, listed)

    def attempt_restore(self, run: Run, listed: Listed, *, into: str | None = None) -> BroughtBack:
        """Bring back what clean-up has salvaged, into a folder that is new or empty:
        `into`, or one beside the run's worktrees. Changes nothing else, and can be
        repeated. Errors: `not_found` (nothing was salvaged), `file_exists`, `usage`
        (where git or the database keeps its files), and those of git.
        """
        return restore.attempt_restore(self.desk, run, listed, into=into)

    def conflicts(self, run: Run, *, most_pairs: int = DEFAULT_PAIRS) -> Conflicts:
        """Compare each two attempts that are live, or accepted and not integrated yet,
        and each with what was integrated; at most `most_pairs`, those with the
        integration first, then the oldest attempts. Errors: `usage` (a run without a
        repository), those of git.
        """
        return compare.conflicts(self.desk, run, most_pairs=most_pairs)

    def integrate(
        self,
        run: Run,
        *,
        onto: str | None = None,
        checks: Sequence[str] = (),
        dry_run: bool = False,
        within: str | None = None,
    ) -> Integrated:
        """Merge the accepted work of a run, in the order of its dependencies, onto its
        branch `orch/<run>/integration`; with `onto`, let that branch come forward to
        it. Errors: `usage`, `not_found` (no such branch), `busy`, `dirty_repository`
        (the branch of the integration is checked out, and there are changes), and those
        of git.
        """
        return integrating.integrate(
            self.desk, run, onto=onto, checks=checks, dry_run=dry_run, within=within
        )

    def cleanup(
        self,
        run: Run,
        *,
        task_names: Sequence[str] = (),
        force: bool = False,
        dry_run: bool = False,
        within: str | None = None,
    ) -> Cleaned:
        """Take away the worktrees of ended attempts, of all tasks or of those named.
        Errors also: `usage`, `not_found`, and those of git.
        """
        return clean.clean_up(
            self.desk, run, task_names=task_names, force=force, dry_run=dry_run, within=within
        )

    def doctor(self, *, verify: bool = False) -> Examined:
        """Look at git, the repositories, what was begun and not finished, the worktrees
        of live attempts; with `verify` also fold the events and compare the tables with
        them.
        """
        return examining.doctor(self.desk, verify=verify)

    def council(self, name: str | None) -> Run:
        """The run of the council with this name or id, else the only one that is not
        closed. Errors: `not_found`; `usage`, which lists them, when there are several.
        """
        return views.council(self.desk, name)

    def start_council(self, asked: Asked, *, key: str | None = None) -> Answer:
        """Open a council and ask its reviewers. With `key` a repeat gives the first
        result. Errors: `usage`, `key_conflict`, `git_missing`, `invalid_state` (a
        branch `orch`), and those of every write.
        """
        return council_opening.start_council(self.desk, asked, key=key)

    def wait_for_council(self, run: Run, *, wait_seconds: float = DEFAULT_WAIT_SECONDS) -> Sat:
        """Block until the round is closed: every seat is final, or its deadline has
        come. Error `timeout`, with how it stands.
        """
        return sit.wait_for_council(self.desk, run, wait_seconds=wait_seconds)

    def show_council(self, run: Run) -> Sat:
        """A council with its seats, after taking in what has come."""
        return sit.show_council(self.desk, run)

    def councils(self) -> list[CouncilView]:
        """Every council, oldest first, as it is stored."""
        return sit.list_councils(self.desk)

    def tally_of(self, run: Run, *, overrides: bool = True, revision: int | None = None) -> Counted:
        """The same after taking in what has come. Error `not_found`."""
        return count.tally_of(self.desk, run, overrides=overrides, revision=revision)

    def suggestions(self, run: Run) -> dict[str, Any]:
        """Pairs that may be one recommendation, for somebody to decide on: the same
        shape with `decision` filled in is what `orch council apply` takes.
        """
        return count.suggestions(self.desk, run)

    def settle_groups(self, run: Run, wanted: Sequence[Settled]) -> dict[str, Any]:
        """Record what a leader has settled, all of it in one transaction or nothing.
        Errors: `usage`, `not_found` (no such item), `invalid_state` (the round is open,
        or somebody has split what is to be merged), `opposed` (a merge across opposed
        stances without `forced`), `busy` (others settle faster).
        """
        return count.settle_groups(self.desk, run, wanted)

    def open_ballot(self, run: Run, *, deadline_seconds: float | None) -> dict[str, Any]:
        """Ask each reviewer whose reply counts about the groups that it did not raise.
        Errors: `invalid_state` (the first round is open, there was a ballot, nobody has
        anything to vote on, the run is not open).
        """
        return council_opening.open_ballot(self.desk, run, deadline_seconds=deadline_seconds)

    def keep_report(self, counted: Counted, name: str, content: bytes) -> dict[str, Any]:
        """Store a report as an artifact of the run: on a thread of the leader's own
        that is done. The same bytes are stored once. Errors: those of every write.
        """
        return count.keep_report(self.desk, counted, name, content)
