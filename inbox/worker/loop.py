"""The event loop of `inbox work`: one thread of execution for all the slots.

It sleeps until a command writes or ends, a bell rings, a signal arrives, or something falls due,
and holds no transaction meanwhile. Whatever ends it, no process of a command is left behind.
"""

import selectors
import time
from collections import deque
from collections.abc import Callable
from typing import NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import plain_number
from inbox_orch.shared.processes.children import Child
from inbox_orch.shared.processes.groups import Leftovers
from inbox_orch.shared.processes.guardian import Guardian
from inbox_orch.shared.processes.noting import Signals
from inbox_orch.shared.processes.signals import Signalled
from inbox_orch.shared.store import events, waits
from inbox_orch.shared.store.engine import Bells
from inbox_orch.shared.store.waits import doorbell_off

from ..bus import Bus
from ..services import working
from ..services.claiming import Claimed
from .happenings import Happening, Summary
from .job import PASSING, RETRY_MS, Job, Notice, Tell
from .phase import Phase
from .plan import Plan
from .rest import Rest

_FAR_MS = 3_600_000
_MOST_UNTOLD = 1000  # happenings; nothing more is claimed for a reader that stands still
_SHUTDOWN_MS = 10_000  # beyond the grace; then what cannot be written stays unwritten


class Finished(NamedTuple):
    """How the worker ended. `signal` is set when it was told to by one."""

    summary: Summary
    signal: int | None


class Worker:
    """Runs a command for each thread that it claims, until there is a reason to end."""

    def __init__(
        self,
        bus: Bus,
        plan: Plan,
        *,
        tell: Tell,
        notice: Notice,
        listens: Callable[[], bool] = lambda: True,
    ) -> None:
        """`tell` is called with each happening, `notice` with what a person should know.

        `listens` says whether `tell` would return at once: a reader that stands still must not
        cost the leases.
        """
        self._bus, self._plan, self._notice = bus, plan, notice
        self._tell_caller, self._listens = tell, listens
        self._summary = Summary()
        self._jobs: list[Job] = []
        self._told: deque[Happening] = deque()
        self._selector = selectors.DefaultSelector()
        self._bells: dict[str, Bells] = {}
        self._guardian = Guardian(notice)
        self._leftovers = Leftovers(plan.grace_seconds, self._guardian.end)
        self._quiet = False
        self._stops_handled = 0
        self._stopping_until: int | None = None
        self._claim_at = 0
        self._idle_since = self._now()
        self._glance_at = 0
        self._pause = waits.Pause(armed=True)
        self._version = -1
        self._rest = Rest(plan.adapter)

    def run(self) -> Finished:
        """Work until told to end, or until `once` or `idle_exit_seconds` ends it.

        Errors: `usage`; `nothing_available` when `once` found nothing in time; `not_logged_in`;
        those of the environment. A `Signalled` is raised only on insistence (the third signal).
        """
        reads = working.note_worker(self._bus.desk, self._plan.mailboxes)
        with Signals() as signals, self._selector:
            self._selector.register(signals.descriptor, selectors.EVENT_READ, signals.drain)
            try:
                self._guardian.start()
                self._arm(reads)
                self._loop(signals)
            except BaseException:
                self._shut_down(signals)
                raise
            finally:
                for job in self._jobs:
                    job.give_up("the worker ends")
                for bells in self._bells.values():
                    bells.disarm()
                self._guardian.close()
        # Back under the caller's signals: a reader that stands still can be interrupted.
        self._pass_on(wait=True)
        if self._plan.once and not self._summary.claimed and signals.number is None:
            seconds = plain_number(self._plan.idle_exit_seconds or 0)
            raise InboxOrchError(
                "nothing_available",
                f"nothing came to {', '.join(reads)} within {seconds} s",
                hint="call again to go on waiting",
                data=self._summary.as_json(),
            )
        if self._rest.for_good and signals.number is None:
            raise self._rest.error()
        return Finished(self._summary, signals.number)

    # -- the loop ----------------------------------------------------------------------------

    def _loop(self, signals: Signals) -> None:
        while True:
            for job in self._jobs:
                job.look_if_lapsed()
            self._notice_ended_commands(signals)
            self._obey(signals)
            self._glance()
            for job in self._jobs:
                job.tick()
            self._leftovers.tick(self._now())
            self._forget_finished()
            self._claim()
            self._pass_on(wait=False)
            if self._is_over():
                return
            self._sleep()

    def _notice_ended_commands(self, signals: Signals) -> None:
        """What a signal has ended when one has told the worker to end was ended by the same: until
        a command has its own group, it is in that of the worker."""
        stops = signals.stops > self._stops_handled
        for job in self._jobs:
            child = job.child
            ending = None if child is None else child.poll()
            if child is not None and ending is not None:
                self._unwatch(child)
                # First of all: what it left behind must not write the result any further.
                self._leftovers.add(child.group, self._now())
                job.command_ended(ending, cut_short=stops and ending.signal is not None)

    def _obey(self, signals: Signals) -> None:
        """The first signal ends the worker gently, the second one at once."""
        if signals.stops == self._stops_handled:
            return
        self._stops_handled = signals.stops
        if self._stopping_until is None:
            self._begin_to_stop()
        if signals.stops > 1:
            self._leftovers.kill()
            for job in self._jobs:
                job.kill()

    def _begin_to_stop(self) -> None:
        grace_ms = int(self._plan.grace_seconds * 1000)
        self._stopping_until = self._now() + grace_ms + _SHUTDOWN_MS
        for job in self._jobs:
            job.release_soon()

    def _glance(self) -> None:
        """The truth behind the bells: has any other connection committed?"""
        now = self._now()
        if now < self._glance_at:
            return
        if self._pause.armed == self._polls:
            self._pause = waits.Pause(armed=not self._polls)
        self._glance_at = now + int(1000 * self._pause.next())
        if self._quiet:
            return
        self._bus.database.check_in_place()
        version = self._bus.database.version()
        if version != self._version:
            self._version = version
            self._pause.reset()
            self._claim_at = 0
            for job in self._jobs:
                job.look()

    @property
    def _polls(self) -> bool:
        return doorbell_off() or not all(bells.armed for bells in self._bells.values())

    def _forget_finished(self) -> None:
        over = [job for job in self._jobs if job.phase is Phase.OVER]
        for job in over:
            self._jobs.remove(job)
            self._disarm(job.thread_id)
            self._claim_at, self._idle_since = 0, self._now()

    def _is_over(self) -> bool:
        if self._stopping_until is not None:
            done = not self._jobs and not self._leftovers
            return done or self._now() >= self._stopping_until
        if self._jobs or self._leftovers:
            return False
        if self._rest.for_good:
            return True
        if self._plan.once and self._summary.claimed:
            return True
        idle_exit = self._plan.idle_exit_seconds
        return idle_exit is not None and self._now() >= self._idle_since + int(idle_exit * 1000)

    # -- claiming ----------------------------------------------------------------------------

    def _claim(self) -> None:
        """Fill the free slots with what there is."""
        while self._wants_more() and self._now() >= max(self._claim_at, self._rest.until_ms):
            found = self._claim_one()
            if isinstance(found, Claimed):
                self._begin(found)
            else:
                self._claim_at = found

    def _wants_more(self) -> bool:
        if self._stopping_until is not None or self._rest.for_good:
            return False
        if self._plan.once and self._summary.claimed:
            return False
        return len(self._jobs) < self._plan.slots and len(self._told) < _MOST_UNTOLD

    def _claim_one(self) -> Claimed | int:
        """A thread, or when to look for one again (monotonic milliseconds)."""
        try:
            found = working.claim_if_any(
                self._bus.desk, self._plan.mailboxes, lease_seconds=self._plan.lease_seconds
            )
        except InboxOrchError as error:
            # Commands that run are worth more than an end at once.
            if error.code != "busy" and not self._jobs:
                raise
            if error.code not in PASSING:
                raise
            return self._now() + RETRY_MS
        if isinstance(found, Claimed):
            return found
        now = self._bus.database.now()
        times = [now.monotonic_ms + _FAR_MS]
        if found.due_wall_ms is not None:
            times.append(now.monotonic_ms + found.due_wall_ms - now.wall_ms)
        if found.due_monotonic_ms is not None:
            times.append(found.due_monotonic_ms)
        return max(min(times), now.monotonic_ms + 1)

    def _begin(self, claimed: Claimed) -> None:
        job = Job(self._bus, self._plan, claimed, self._tell, self._notice)
        self._jobs.append(job)
        self._arm((events.thread_topic(job.thread_id),), key=job.thread_id)
        job.begin()

    def _tell(self, happening: Happening) -> None:
        self._summary.count(happening)
        rests = self._rest.note(happening, self._now())
        if rests is not None:
            self._notice(rests)
        if happening.type == "started":
            folders = [job.folder for job in self._jobs if job.thread_id == happening.thread]
            self._guardian.begin(happening.facts["pid"], folders[0] if folders else None)
        self._told.append(happening)

    def _pass_on(self, *, wait: bool) -> None:
        """Tell the caller what has happened, as far as it listens now."""
        while self._told and not self._quiet and (wait or self._listens()):
            self._tell_caller(self._told.popleft())

    # -- sleeping ----------------------------------------------------------------------------

    def _sleep(self) -> None:
        """Until something happens or falls due; then take note of what has happened."""
        self._watch_commands()
        now = self._now()
        due = [self._glance_at, *(job.due() for job in self._jobs)]
        if self._wants_more():
            due.append(max(self._claim_at, self._rest.until_ms))
        if self._leftovers:
            due.append(self._leftovers.due(now))
        if self._plan.idle_exit_seconds is not None and not self._jobs:
            due.append(self._idle_since + int(self._plan.idle_exit_seconds * 1000))
        for key, _ in self._selector.select(max(0.001, (min(due) - now) / 1000)):
            callback: Callable[[], None] = key.data
            callback()

    def _watch_commands(self) -> None:
        """Listen to the pipes of commands that have been started since."""
        for job in self._jobs:
            if job.child is not None and not job.child.watched:
                job.child.watched = True
                for descriptor in job.child.pipes:
                    self._selector.register(
                        descriptor, selectors.EVENT_READ, self._reader(job.child, descriptor)
                    )

    def _reader(self, child: Child, descriptor: int) -> Callable[[], None]:
        def read() -> None:
            if not child.read(descriptor):
                self._selector.unregister(descriptor)

        return read

    def _unwatch(self, child: Child) -> None:
        for descriptor in child.pipes:
            if descriptor in self._selector.get_map():
                self._selector.unregister(descriptor)

    # -- bells -------------------------------------------------------------------------------

    def _arm(self, topics: tuple[str, ...], key: str = "") -> None:
        """Listen for a thread (`key`), or for mailboxes."""
        if doorbell_off():
            return
        bells = self._bus.database.bells(topics)
        self._bells[key] = bells
        for descriptor in bells.descriptors:
            self._selector.register(descriptor, selectors.EVENT_READ, self._ringer(key, bells))

    def _ringer(self, key: str, bells: Bells) -> Callable[[], None]:
        def rung() -> None:
            bells.drain()
            if not key:
                self._claim_at = 0
            for job in self._jobs:
                if job.thread_id == key:
                    job.look()

        return rung

    def _disarm(self, key: str) -> None:
        bells = self._bells.pop(key, None)
        if bells is not None:
            for descriptor in bells.descriptors:
                self._selector.unregister(descriptor)
            bells.disarm()

    # -- ending by force ---------------------------------------------------------------------

    def _shut_down(self, signals: Signals) -> None:
        """Something went wrong: stop the commands and release what is held, as far as can be.
        Never raises: what went wrong first is what the caller is told."""
        self._quiet = True
        try:
            if self._stopping_until is None:
                self._begin_to_stop()
            self._loop(signals)
        except (Exception, Signalled) as error:  # noqa: BLE001 - the last line of defence
            self._notice(f"while the worker was ending: {error}")
            self._kill_everything()
        finally:
            self._leftovers.kill()

    def _kill_everything(self) -> None:
        """The last resort, without the bus."""
        for job in self._jobs:
            job.kill()
        deadline = time.monotonic() + 1
        for job in self._jobs:
            while job.child is not None and job.child.poll() is None:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.01)

    def _now(self) -> int:
        return self._bus.database.now().monotonic_ms
