"""Random runs: tasks and edges, leaders that crash, workers that die, clocks that jump.

After every step no task is without an owner or a reason, and none has two live attempts. At the
end whoever is still there brings the run to its end, however it was left; then the events are
folded and compared with the tables. RANDOM_RUNS=N runs N examples.
"""

import os
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from inbox_orch.orch.attempts import moving
from inbox_orch.orch.attempts import rows as attempts
from inbox_orch.orch.journal import rows as journal_rows
from inbox_orch.orch.leader.drive import Drive
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs import run_rows as runs
from inbox_orch.orch.runs.model import Limits
from inbox_orch.orch.runs.states import TASK_FINAL, WITH_WORKER
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes import processes
from inbox_orch.shared.store.engine import Owner
from support.buses import Office
from support.runs import (
    branches,
    commit,
    git,
    lock_files,
    make_repository,
    run_init,
    task_spec,
    worktree_paths,
)

EXAMPLES = int(os.environ.get("RANDOM_RUNS", "40"))
LEADER = st.sampled_from([0, 0, 1])
CRASH = st.sampled_from([None, None, None, 1, 2, 3, 4])
RECENT = st.sampled_from([0, 0, 0, 1, 1, 2, 3])
CONDITION = st.sampled_from(["success", "success", "finished", "failed"])
LIMITS = st.sampled_from(
    [
        Limits(),
        Limits(),
        Limits(queue_seconds=50, block_seconds=50),
        Limits(run_seconds=50, silent_seconds=40),
    ]
)
REFUSALS = {"invalid_state", "busy", "cycle", "live_attempt", "not_found"}
LOST = {"lease_lost", "cancelled", "invalid_state"}
PATIENCE_ROUNDS = 60


class Crash(BaseException):
    """A leader dies here: nothing on the way may swallow it, and nothing is tidied up."""


class Leader(Scheduler):
    """A scheduler that counts as a process of its own, and can die before any transaction."""

    def __init__(self, office: Office, alive: set[int], number: int) -> None:
        super().__init__(office.bus())
        self.number, self._alive = number, alive
        self._left: int | None = None
        alive.add(number)
        begin = self.database.transaction

        def transaction(*arguments: Any, **options: Any) -> Any:
            if self._left is not None:
                self._left -= 1
                if self._left <= 0:
                    raise Crash
            return begin(*arguments, **options)

        self.database.transaction = transaction  # type: ignore[method-assign]
        self.database.owner = self._owner  # type: ignore[method-assign]
        self.database.runs = self._runs  # type: ignore[method-assign]

    def crash_before(self, transaction: int | None) -> None:
        """Die before the transaction of that number, counted from now."""
        self._left = transaction

    def _owner(self) -> Owner:
        """Not the test's own process, which never dies."""
        boot = self.database.clock.now().boot_id
        return Owner(boot, self.number, 1, processes.namespace())

    def _runs(self, owner: Owner) -> bool:
        """Whether the leader of that number is there; it is not once it has crashed."""
        boot = self.database.clock.now().boot_id
        return owner.boot_id == boot and owner.process in self._alive


class Runs(RuleBasedStateMachine):
    """One run with two leaders and two workers; without git, so that it is quick."""

    with_git = False

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name).resolve()
        self.repository = self.root / "project"
        if self.with_git:
            make_repository(self.repository)
        self.office = Office(self.repository)
        self.clock = self.office.clock
        self.alive: set[int] = set()
        self.leaders = [Leader(self.office, self.alive, n) for n in (1, 2)]
        self.crashes = 2
        self.workers = [self.office.bus("w1"), self.office.bus("w2")]
        self.held: list[tuple[int, str, str]] = []
        self.keys: list[str] = []
        self.commits = 0
        self.run: Any = None

    @initialize(
        policy=st.sampled_from(["continue", "continue", "fail-fast", "abort"]),
        parallel=st.sampled_from([None, 1, 2]),
    )
    def open_run(self, policy: str, parallel: int | None) -> None:
        answer = run_init(
            self.leaders[0],
            title="Random",
            repository=str(self.repository) if self.with_git else None,
            worktree_root=str(self.root / "worktrees"),
            on_failure=policy,
            max_parallel=parallel,
        )
        self.run = self.leaders[0].run(answer.data["run"]["name"])
        for limits in (Limits(), Limits()):
            self._add([], 2, limits)

    def teardown(self) -> None:
        try:
            if self.run is not None:
                self.everything_comes_to_an_end()
                found = self.leaders[0].doctor(verify=True)
                assert not found.problems, [c for c in found.checks if c.status == "problem"]
                if self.with_git:
                    self.git_is_whole()
        finally:
            self.office.close()
            self.folder.cleanup()

    # -- calls -------------------------------------------------------------------------------

    def lead(self, leader: int, verb: str, *arguments: Any, crash: int | None = None, **options):
        """A call of a leader's: its result, or None when it was refused or has crashed."""
        scheduler = self.leaders[leader]
        run = self.present_run()
        scheduler.crash_before(crash)
        try:
            return getattr(scheduler, verb)(run, *arguments, **options)
        except InboxOrchError as error:
            return self.refused(error, REFUSALS)
        except Crash:
            self.restart(leader)
            return None
        finally:
            scheduler.crash_before(None)

    def refused(self, error: InboxOrchError, expected: set[str]) -> None:
        """It may be refused for these reasons, and for no other."""
        if error.code not in expected:
            raise error

    def restart(self, leader: int) -> None:
        """The process is gone; another one comes in its place."""
        self.alive.discard(self.leaders[leader].number)
        self.crashes += 1
        self.leaders[leader] = Leader(self.office, self.alive, self.crashes)

    def work(self, worker: int, verb: str, *arguments: Any, **options: Any) -> str:
        """A call of a worker's: `ok`, or why it was refused."""
        try:
            getattr(self.workers[worker], verb)(*arguments, **options)
            return "ok"
        except InboxOrchError as error:
            self.refused(error, LOST)
            return error.code

    def present_run(self) -> Any:
        with self.leaders[0].database.snapshot() as snapshot:
            return runs.get(snapshot, self.run.id)

    def key(self, recent: int) -> str:
        return self.keys[-1 - recent % len(self.keys)]

    # -- building ----------------------------------------------------------------------------

    @rule(upstream=st.lists(RECENT, max_size=2), most=st.sampled_from([1, 2]), limits=LIMITS)
    def add_task(self, upstream: list[int], most: int, limits: Limits) -> None:
        if len(self.keys) < 8:
            self._add([self.key(n) for n in upstream], most, limits)

    def _add(self, upstream: list[str], most: int, limits: Limits) -> None:
        key = f"t{len(self.keys)}"
        added = self.lead(
            0,
            "add_task",
            task_spec(
                key,
                key,
                depends_on=sorted(set(upstream)),
                max_attempts=most,
                max_infra_attempts=2,
                worktree=self.with_git,
                limits=limits,
            ),
        )
        if added is not None:
            self.keys.append(key)

    @rule(task=RECENT, upstream=RECENT, condition=CONDITION)
    def add_edge(self, task: int, upstream: int, condition: str) -> None:
        if self.key(task) != self.key(upstream):
            self.lead(0, "add_dependency", self.key(task), self.key(upstream), condition)

    # -- leading -----------------------------------------------------------------------------

    @rule(leader=LEADER, crash=CRASH)
    def dispatch(self, leader: int, crash: int | None) -> None:
        self.lead(leader, "dispatch", crash=crash)

    @rule(leader=LEADER, crash=CRASH)
    def reconcile(self, leader: int, crash: int | None) -> None:
        self.lead(leader, "reconcile", crash=crash)
        if crash is None:
            self.attempts_stand_as_their_threads()

    @rule(leader=LEADER, crash=CRASH)
    def drive(self, leader: int, crash: int | None) -> None:
        self._drive(leader, crash)

    def _drive(self, leader: int, crash: int | None = None) -> Any:
        """One look of a drive; how it ended."""
        scheduler, ending = self.leaders[leader], None
        run = self.present_run()
        scheduler.crash_before(crash)
        try:
            for step in scheduler.drive(run, Drive(wait_seconds=0)):
                scheduler.mark_told(step)
                ending = step.ending
        except Crash:
            self.restart(leader)
        finally:
            scheduler.crash_before(None)
        return ending

    @rule(leader=LEADER, what=st.sampled_from(["change", "blocked", "run"]))
    def wait(self, leader: int, what: str) -> None:
        """What it waits for is there, or can still come about."""
        try:
            self.leaders[leader].wait(self.present_run(), until=what, after="0", wait_seconds=0)
        except InboxOrchError as error:
            self.refused(error, {"timeout"})
            standings = {row.standing.state for row in self.status().rows}
            moving = standings & {"active", "blocked", "ready", "backing_off"}
            assert moving or self.present_run().state == "paused" or not standings, standings

    @rule(leader=LEADER, task=RECENT)
    def answer(self, leader: int, task: int) -> None:
        self.lead(leader, "answer", self.key(task), body="this")

    @rule(
        leader=LEADER,
        verb=st.sampled_from(["cancel", "skip", "retry", "retry"]),
        task=RECENT,
        crash=CRASH,
    )
    def steer(self, leader: int, verb: str, task: int, crash: int | None) -> None:
        key = self.key(task)
        done = self.lead(leader, verb, [key], crash=crash)
        if done is not None and verb == "retry":
            self.nothing_is_unreachable_because_of(key)

    @rule(leader=LEADER, task=RECENT, mailbox=st.sampled_from(["workers", "others"]))
    def reassign(self, leader: int, task: int, mailbox: str) -> None:
        self.lead(leader, "reassign", [self.key(task)], mailbox)

    @rule(
        leader=LEADER,
        verb=st.sampled_from(["pause", "resume", "resume", "close", "reopen", "reopen", "cancel"]),
        sure=st.integers(0, 3),
        crash=CRASH,
    )
    def govern(self, leader: int, verb: str, sure: int, crash: int | None) -> None:
        if verb != "cancel" or sure == 0:
            self.lead(leader, f"{verb}_run", crash=crash)

    # -- working -----------------------------------------------------------------------------

    @rule(worker=st.sampled_from([0, 1]), lease=st.sampled_from([20.0, 60.0]))
    def claim(self, worker: int, lease: float) -> None:
        self._claim(worker, lease)

    def _claim(self, worker: int, lease: float) -> bool:
        try:
            claimed = self.workers[worker].claim(
                mailboxes=["workers", "others"], lease_seconds=lease
            )
        except InboxOrchError as error:
            self.refused(error, {"nothing_available"})
            return False
        self.held.append((worker, claimed.thread.id, str(claimed.lease.token)))
        return True

    @rule(held=RECENT, how=st.sampled_from(["good", "good", "good", "dirty", "nothing"]))
    def done(self, held: int, how: str) -> None:
        if self.held:
            self._done(self.held[-1 - held % len(self.held)], how)

    def _done(self, held: tuple[int, str, str], how: str = "good") -> str:
        worker, thread, token = held
        if self.with_git:
            self._change_files(thread, how)
        return self.work(worker, "done", thread, token, body="done")

    def _change_files(self, thread: str, how: str) -> None:
        with self.leaders[0].database.snapshot() as snapshot:
            path, number = snapshot.one(
                "SELECT worktree_path, number FROM attempt WHERE thread_id = ?", (thread,)
            )
        if how == "good":
            # All write the same file, so that some work does not merge.
            self.commits += 1
            name = "same.txt" if number % 2 else f"{thread}.txt"
            commit(path, name, f"{self.commits}\n")
        elif how == "dirty":
            Path(path, "left.txt").write_text("not committed")

    @rule(held=RECENT, fatal=st.booleans(), retry_in=st.sampled_from([None, None, 10.0]))
    def fail(self, held: int, fatal: bool, retry_in: float | None) -> None:
        if self.held:
            worker, thread, token = self.held[-1 - held % len(self.held)]
            again = None if fatal else retry_in
            self.work(worker, "fail", thread, token, body="no", fatal=fatal, retry_in_seconds=again)

    @rule(held=RECENT, deadline=st.sampled_from([None, None, 20.0]))
    def ask(self, held: int, deadline: float | None) -> None:
        if self.held:
            worker, thread, token = self.held[-1 - held % len(self.held)]
            self.work(worker, "ask", thread, token, body="which?", deadline_seconds=deadline)

    @rule(held=RECENT)
    def release(self, held: int) -> None:
        if self.held:
            worker, thread, token = self.held[-1 - held % len(self.held)]
            self.work(worker, "release", thread, token)

    # -- time --------------------------------------------------------------------------------

    @rule(seconds=st.sampled_from([1, 5, 30, 61, 130]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds)

    @rule(seconds=st.sampled_from([-3600, -10, 10, 3600, None]))
    def the_clock_jumps(self, seconds: int | None) -> None:
        if seconds is not None:
            self.clock.jump_wall(seconds)
            return
        self.clock.reboot()
        for leader in range(len(self.leaders)):
            self.restart(leader)

    # -- what must hold ----------------------------------------------------------------------

    def status(self) -> Any:
        return self.leaders[0].status(self.present_run())

    @invariant()
    def no_task_is_without_an_owner_or_a_reason(self) -> None:
        if self.run is None:
            return
        scheduler, run = self.leaders[0], self.present_run()
        with scheduler.database.snapshot() as snapshot:
            picture = moving.picture(scheduler.desk, snapshot, run, self.clock.wall_ms)
            live = attempts.live_of_run(snapshot, run.id)
            begun = {intent.attempt_id for intent in journal_rows.open_intents(snapshot, run.id)}
        owners: dict[str, Any] = {}
        for attempt in live:
            assert attempt.task_id not in owners, "two live attempts of one task"
            owners[attempt.task_id] = attempt
        states = {standing.task.key: standing.state for standing in picture.standings}
        for standing in picture.standings:
            task, owner = standing.task, owners.get(standing.task.id)
            assert (owner is not None) == (task.state in ("active", "blocked")), standing
            if owner is not None:
                assert owner.id in begun or owner.thread_id is not None, "nobody has it"
            elif task.state in TASK_FINAL:
                accepted = task.state == "succeeded" and task.accepted_attempt is not None
                assert accepted or task.reason, f"{task.key} is {task.state} without a reason"
            else:
                _has_a_reason(standing, states)

    def attempts_stand_as_their_threads(self) -> None:
        """After folding, what is with a worker is as its thread is."""
        expected = {"pending": "offered", "claimed": "running", "blocked": "blocked"}
        for row in self.status().rows:
            if row.attempt is not None and row.attempt.state in WITH_WORKER:
                assert row.attempt.state == expected[row.thread.state]

    def nothing_is_unreachable_because_of(self, key: str) -> None:
        """A retry brings back to life what waited for the task."""
        for row in self.status().rows:
            if row.standing.state == "unreachable":
                assert key not in row.standing.because, row.standing

    def everything_comes_to_an_end(self) -> None:
        """However it was left: with a leader that drives and a worker that works, it is over
        soon, or it is told what has to be decided; and no wait for it hangs."""
        for _ in range(PATIENCE_ROUNDS):
            if self.present_run().state == "paused":
                self.lead(0, "resume_run")
            ending = self._drive(0)
            assert ending is not None
            code = None if ending.failure is None else ending.failure.code
            if code != "timeout" and not ending.questions:
                self.a_wait_returns_too(code)
                return
            for question in ending.questions:
                self.lead(0, "answer", question.task.key, body="this")
            self.clock.advance(130)  # leases, graces and back-offs are over
            while self._claim(0, 60.0):
                self._done(self.held[-1])
        standings = [(r.standing.task.key, r.standing.state) for r in self.status().rows]
        raise AssertionError(f"it does not end: {ending.outcome} {standings}")

    def a_wait_returns_too(self, code: str | None) -> None:
        assert code in (None, "run_unsuccessful", "needs_decision"), code
        waited = self.leaders[1].wait(self.present_run(), until="run", wait_seconds=0)
        assert (waited.failure is None) == (code is None), (waited.failure, code)

    def git_is_whole(self) -> None:
        """A branch and a worktree for each attempt that got one, and nothing left behind."""
        with self.leaders[0].database.snapshot() as snapshot:
            rows = snapshot.all(
                "SELECT branch, worktree_path FROM attempt WHERE state <> 'provision_failed'"
            )
        assert branches(self.repository) == {row[0] for row in rows}
        assert worktree_paths(self.repository) == {row[1] for row in rows}
        assert lock_files(self.repository / ".git", self.root / "worktrees") == []
        git(self.repository, "fsck", "--strict")


def _has_a_reason(standing: Any, states: dict[str, str]) -> None:
    """A pending task: it can start, or it says what keeps it."""
    if standing.state == "ready":
        return
    if standing.state == "backing_off":
        assert standing.until is not None
    elif standing.state == "base_conflict":
        assert standing.conflict_paths
    elif standing.state == "waiting":
        assert standing.because
        assert not any(states[key] in TASK_FINAL for key in standing.because)
    else:
        assert standing.state == "unreachable" and standing.because, standing
        assert all(states[key] in TASK_FINAL for key in standing.because)


class RunsOfCode(Runs):
    """The same with a repository, worktrees and commits."""

    with_git = True


TestRuns = Runs.TestCase
TestRuns.settings = settings(
    max_examples=EXAMPLES, stateful_step_count=40, derandomize="RANDOM_RUNS" not in os.environ
)
TestRunsOfCode = RunsOfCode.TestCase
TestRunsOfCode.settings = settings(
    max_examples=max(1, EXAMPLES // 10),
    stateful_step_count=25,
    phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to find a smaller example takes minutes
    derandomize="RANDOM_RUNS" not in os.environ,
)
