"""One claimed thread, from the start of its command to the end of its lease.

A job is driven by the loop: it says when it wants to be called next, and never waits. Each of
its steps on the bus may be refused for the moment (busy, disk full) and is then tried again,
until the lease is lost. Whatever else goes wrong fails this thread, so that its tries are counted,
and no other.
"""

import shutil
from collections.abc import Callable

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes.children import Child
from inbox_orch.shared.processes.endings import Ending
from inbox_orch.shared.store.temporary import make_temporary_folder

from ..bus import Bus
from ..domain.working import Hold, Standing, Verdict, verdict
from ..services import working
from ..services.claiming import Claimed
from . import handover, happenings, sessions, starting
from .ends import Ends
from .faults import alone, reason_of
from .handover import Handover, NotYet, Remains
from .happenings import Happening
from .phase import Phase
from .plan import Plan
from .task import BadTask, Terms, environment, terms_of

RETRY_MS = 500
_SOON_MS = 20
PASSING = frozenset({"busy", "disk_full", "io_error", "outcome_unknown", "read_only"})

Tell = Callable[[Happening], None]
Notice = Callable[[str], None]


class Job:
    """See the module. `child` is set while the command runs."""

    def __init__(self, bus: Bus, plan: Plan, claimed: Claimed, tell: Tell, notice: Notice) -> None:
        self._bus, self._plan = bus, plan
        self._tell, self._notice = tell, notice
        assert claimed.lease.token is not None
        self._thread, self._token = claimed.thread, claimed.lease.token
        self._ends = Ends(bus, plan, self._thread, self._token)
        self._payload = claimed.messages[0].payload
        self._last_message = claimed.messages[-1].id
        self.phase = Phase.STARTING
        self.child: Child | None = None
        self.standing: Standing | None = None
        self._worker_stops = False
        self._cut_short = False  # the command, because the worker was told to end
        self._terms = Terms("", None)
        self._question: str | None = None  # to its agent, beside the task
        self._refusal: str | None = None  # of its first answer, once it was asked for another
        self._folder: str | None = None
        self._renews = True
        self._claimed_at = self._now()
        lease_ms = int(plan.lease_seconds * 1000)
        self._renew_at = self._claimed_at + lease_ms // 3
        self._renew_not_before = 0
        self._expires_at = self._claimed_at + lease_ms
        self._limit_at: int | None = None
        self._kill_at: int | None = None
        self._timed_out = False
        self._runs = 0
        self._last_ending: Ending | None = None
        self._remains: Remains | None = None
        self._handover: Handover | None = None
        self._step: Callable[[], None] | None = self._prepare
        self._step_at = 0
        self._complained = False
        self._broken: Exception | None = None
        self._failing = False  # because of that

    # -- what the loop calls -----------------------------------------------------------------

    @property
    def thread_id(self) -> str:
        """The thread that this is about."""
        return self._thread.id

    @property
    def folder(self) -> str | None:
        """The private folder of its command, once there is one."""
        return self._folder

    @alone
    def begin(self) -> None:
        """Say that the thread is claimed, and start its command."""
        self._tell(happenings.claimed(self._thread, self._plan.lease_seconds))
        self._try()

    def due(self) -> int:
        """When `tick` wants to be called, in monotonic milliseconds."""
        times = [self._now() + 3_600_000, self._question_due()]
        times += [t for t in (self._limit_at, self._kill_at) if t is not None]
        if self._renews:
            times.append(max(self._renew_at, self._renew_not_before))
        if self._step is not None:
            times.append(self._step_at)
        return min(times)

    @alone
    def tick(self) -> None:
        """Do what has fallen due."""
        now = self._now()
        if self._limit_at is not None and now >= self._limit_at:
            self._limit_at, self._timed_out = None, True
            self.stop()
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            self.kill()
        if self._renews and now >= max(self._renew_at, self._renew_not_before):
            self._renew(now)
        if self._step is not None and now >= self._step_at:
            self._try()
        if now >= self._question_due():
            self.look()

    def _question_due(self) -> int:
        """When the deadline of the open question that is waited for has come."""
        now = self._bus.database.now()
        if self.phase is Phase.WAITING and self.standing is not None:
            deadline = self.standing.thread.question_deadline
            if deadline is not None:
                return max(now.monotonic_ms + deadline - now.wall_ms, self._renew_not_before)
        return now.monotonic_ms + 3_600_000

    @alone
    def look(self) -> None:
        """See how the lease stands, and act on it."""
        if self._broken is not None:
            return  # looking may be what breaks; that the lease is lost is told by the refusal
        try:
            self._act_on(working.standing(self._bus.desk, self.thread_id, self._token))
        except InboxOrchError as error:
            self._put_off(error)

    @alone
    def look_if_lapsed(self) -> None:
        """After the process was stopped (SIGSTOP, a debugger) for longer than the lease: look
        before anything else is done in its name."""
        if self._renews and self.phase is not Phase.OVER and self._now() >= self._expires_at:
            self.look()

    @alone
    def command_ended(self, ending: Ending, *, cut_short: bool = False) -> None:
        """The command has ended: find out what that means for the thread. `cut_short`: by the
        signal that tells the worker to end."""
        assert self.child is not None and self._folder is not None
        self._cut_short = self._cut_short or cut_short
        child, self.child = self.child, None
        child.drain()
        self._limit_at = self._kill_at = None
        if self._timed_out:
            ending = ending._replace(timed_out=self._terms.timeout_seconds)
        self._last_ending = ending
        self._remains = handover.remains_of(self._plan, ending, child, self._folder)
        sessions.tell(self._thread, self._remains, self._notice)
        if self._broken is not None:
            self._fail_broken(self._broken)
            return
        self.phase, self._step = Phase.ENDED, self._settle
        self._try()

    def stop(self) -> None:
        """TERM to the command's group, KILL after the grace."""
        if self.child is not None and self.phase is Phase.RUNNING:
            self.phase = Phase.STOPPING
            self._kill_at = self._now() + int(self._plan.grace_seconds * 1000)
            self.child.terminate()

    def kill(self) -> None:
        """KILL to the command's group, at once."""
        if self.child is not None:
            self.phase = Phase.STOPPING
            self.child.kill()

    @alone
    def release_soon(self) -> None:
        """The worker is told to end: stop the command, then hand the thread back."""
        self._worker_stops = True
        if self.child is not None:
            self._cut_short = True
            self.stop()
        elif self.phase in (Phase.WAITING, Phase.STARTING):
            self._hand_over(self._ends.given_back(self.standing, None))

    def give_up(self, reason: str) -> None:
        """Nothing more can be written; what there is stays where it can be found."""
        if self.phase is not Phase.OVER:
            self._keep_remains(reason)
            self._over("abandoned")

    def break_off(self, error: Exception) -> None:
        """Fail the thread, once its command has ended, because of an unforeseen fault.
        One that cannot be failed either is left to its lease, whose end counts the try as well."""
        first = self._broken is None
        if first:
            self._broken = error
            self._notice(f"thread {self.thread_id}: {reason_of(error)}")
        if self.phase is Phase.OVER:
            return
        # While the command is being ended no other agent may have the thread, unless it is renewing
        # that breaks.
        self._renews = first and self.child is not None
        self._limit_at = self._step = None
        if self.child is not None:
            if self._kill_at is None:
                self.phase = Phase.RUNNING  # it may have broken before that was said
                self.stop()
        elif not self._failing:
            self._fail_broken(self._broken or error)
        else:
            self._notice(f"thread {self.thread_id} is left to its lease: {reason_of(error)}")
            self.give_up("it could not be failed")

    @alone
    def _fail_broken(self, error: Exception) -> None:
        self._failing = True
        self._keep_remains(reason_of(error))
        # It may be a fault of this worker, which must not cost its threads all their tries at once.
        asked = self._plan.retry_in_seconds
        retry_in = self._ends.backoff_seconds() if asked is None else asked
        self._hand_over(self._ends.not_started(reason_of(error), retry_in))

    # -- starting ----------------------------------------------------------------------------

    def _prepare(self) -> None:
        try:
            terms = terms_of(self._payload, self._plan.timeout_seconds)
        except BadTask as error:
            self._hand_over(self._ends.not_started(str(error), None))
            return
        about = (self._bus, self._plan, self._thread)
        self._terms = sessions.chosen(*about, terms, self._notice)
        self._step = self._run
        self._run()

    def _run(self) -> None:
        """Write the task file, note that all of it counts as read, and start the command."""
        try:
            self._remains = None
            if self._folder is None:
                self._folder = make_temporary_folder("inbox-work-")
            last = self._write_task(self._folder)
        except OSError as error:
            self._could_not_start(error)
            return
        if last > self._last_message:
            working.note_given(self._bus.desk, self._token, last)
            self._last_message = last
        try:
            told = environment(self._bus, self._thread, self._token, self._terms, self._folder)
            self.child = starting.start(self._plan.command, self._terms, told, self._folder)
        except OSError as error:
            self._could_not_start(error)
            return
        self._started()

    def _write_task(self, folder: str) -> int:
        return starting.prepare(self._bus, self._thread, folder, self._question)

    def _started(self) -> None:
        assert self.child is not None
        self.phase, self._step, self._timed_out = Phase.RUNNING, None, False
        self._question = None
        self._runs += 1
        if self._terms.timeout_seconds is not None:
            self._limit_at = self._now() + int(self._terms.timeout_seconds * 1000)
        pid, folder = self.child.group, self._terms.folder
        self._tell(happenings.started(self._thread, self._runs, pid, folder))
        if self._worker_stops:
            self.release_soon()

    def _could_not_start(self, error: OSError) -> None:
        """A fault of this machine, now: another try, elsewhere or later, may do better."""
        reason = f"The command could not be started: {error.strerror or error}."
        self._hand_over(self._ends.not_started(reason, self._ends.backoff_seconds()))

    # -- the lease ---------------------------------------------------------------------------

    def _renew(self, now: int) -> None:
        """Look first: the command may have renewed, and of a cancelled thread the bus is told
        only once the command has ended."""
        self._renew_not_before = now + RETRY_MS
        if self._broken is None:
            self.look()
        elif working.standing(self._bus.desk, self.thread_id, self._token).hold is not Hold.LIVE:
            self._renews = False
        if not self._renews or self._renew_at > now:
            return
        try:
            written = self._bus.renew(self.thread_id, self._token)
        except InboxOrchError as error:
            self._put_off(error)
            return
        assert written.lease is not None
        self._renew_at = now + written.lease.lease_ms // 3
        self._expires_at = now + written.lease.lease_ms
        self._renew_not_before, self._complained = 0, False

    def _act_on(self, seen: Standing) -> None:
        self.standing = seen
        if seen.hold is Hold.LIVE:
            self._renew_at, self._expires_at = seen.renew_at, seen.expires_at
            if self.phase is Phase.WAITING and not seen.question_open:
                self.phase, self._step = Phase.STARTING, self._run
                self._try()
            return
        self._renews = False
        if self.child is not None:
            if seen.hold is not Hold.ENDED or seen.taken_over:
                self.stop()
        elif self.phase in (Phase.WAITING, Phase.STARTING):
            self._write_nothing(seen)

    # -- after the command -------------------------------------------------------------------

    def _settle(self) -> None:
        """Decide by the table what becomes of the thread, and begin to do it."""
        assert self._remains is not None
        seen = working.standing(self._bus.desk, self.thread_id, self._token)
        self.standing = seen
        decision = verdict(self._remains.ending, seen, stopping=self._cut_short)
        if decision is Verdict.WRITE_NOTHING:
            self._write_nothing(seen)
        elif decision is Verdict.LEAVE:
            attached = self._ends.attached(self._remains)
            self._hand_over(Handover(handover.without_us(seen), [attached]))
        elif decision is Verdict.WAIT:
            self._hand_over(Handover("waiting", [self._ends.attached(self._remains)]))
        elif decision is Verdict.FAIL and self._refusal is not None:
            self._hand_over(self._ends.not_accepted(self._remains, self._refusal, again=True))
        else:
            again = self._terms.retry_failed
            self._hand_over(self._ends.of(decision, seen, self._remains, again=again))

    def _hand_over(self, planned: Handover) -> None:
        self.phase, self._handover, self._step = Phase.ENDED, planned, self._go_on
        self._try()

    def _go_on(self) -> None:
        """Make the calls that are left, and go where they lead."""
        assert self._handover is not None
        outcome, calls = self._handover
        thread = None
        try:
            while calls:
                thread = calls[0]()
                del calls[0]
        except handover.Refused as refused:
            self._refused_result(str(refused))
            return
        self._handover = None
        if outcome == "waiting":
            self._wait()
        elif outcome == "asked_again":
            self.phase, self._step = Phase.STARTING, self._run
            self._run()
        else:
            self._over(handover.outcome_of(outcome, thread))

    def _refused_result(self, reason: str) -> None:
        """The thread's schema does not accept the result: an agent that can is asked once more."""
        assert self._remains is not None
        first = self._refusal is None and not self._worker_stops
        about = (self._bus, self._plan, self._thread, self._remains, reason)
        question = sessions.once_more(*about) if first and self._terms.retry_refused else None
        if question is None:
            again = self._terms.retry_refused
            self._hand_over(self._ends.not_accepted(self._remains, reason, again=again))
            return
        self._refusal, self._question = reason, question.text
        self._terms = self._terms._replace(session=question.session)
        self._hand_over(Handover("asked_again", [self._ends.attached(self._remains)]))

    def _wait(self) -> None:
        assert self.standing is not None and self._last_ending is not None
        self.phase, self._step = Phase.WAITING, None
        self._tell(happenings.waiting(self.standing.thread, self._last_ending))
        if self._worker_stops:
            self.release_soon()
        else:
            self.look()

    def _write_nothing(self, seen: Standing) -> None:
        def end() -> None:
            if seen.hold is Hold.CANCELLED:
                handover.acknowledge_cancel(self._bus, self.thread_id, self._token)
            self._over(handover.without_us(seen))

        # The step, so that it is tried again when it is refused for the moment.
        self._step = end
        end()

    # -- trying again ------------------------------------------------------------------------

    def _try(self) -> None:
        assert self._step is not None
        try:
            self._step()
        except NotYet:
            self._step_at = self._now() + _SOON_MS
        except InboxOrchError as error:
            self._put_off(error)

    def _put_off(self, error: InboxOrchError) -> None:
        """Another try soon, or the end of the job when its token serves no more."""
        if error.code in handover.TOKEN_SERVES_NO_MORE:
            self._refused(error)
        elif error.code in PASSING:
            self._step_at = self._now() + RETRY_MS
            if not self._complained:
                self._complained = True
                self._notice(f"thread {self.thread_id}: {error.message}; trying again")
        else:
            raise error

    def _refused(self, error: InboxOrchError) -> None:
        self._renews = False
        if self.child is not None:
            self.stop()
        elif self.phase is not Phase.OVER:
            if self._handover is not None and self._handover.outcome in ("done", "failed"):
                self._keep_remains(error.message)
            self.standing = working.standing(self._bus.desk, self.thread_id, self._token)
            self._over(handover.without_us(self.standing))

    def _keep_remains(self, reason: str) -> None:
        """A result that could not be handed in is left on the disk, and its place is told."""
        remains, folder = self._remains, self._folder
        if remains is None or folder is None:
            return
        reason += remains.keep_output(folder)
        self._notice(f"thread {self.thread_id}: {reason}; its result and output are in {folder}")
        self._folder = None

    def _over(self, outcome: str) -> None:
        self.phase, self._step, self._renews = Phase.OVER, None, False
        self._limit_at = self._kill_at = None
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
        by_command = self.standing is not None and self.standing.hold is Hold.ENDED
        end = happenings.End(outcome, by_command, self._last_ending)
        seconds = round((self._now() - self._claimed_at) / 1000, 3)
        self._tell(happenings.finished(self._thread, end, self._runs, seconds))

    def _now(self) -> int:
        return self._bus.database.now().monotonic_ms
