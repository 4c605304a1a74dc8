"""Leaders that are processes of their own as far as one process can have several: each dies where a
test says, or lets another one act in between, and none tidies up once it is dead.

Where that may be is a `Moment`: at the begin of a transaction, before something is written in one,
before and after its commit, before and after a call of git.
"""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from inbox_orch.orch.attempts import keep
from inbox_orch.orch.git import commands, worktrees
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.shared.processes import processes
from inbox_orch.shared.store.engine import Owner, Transaction
from support.runs import Site

OUTSIDE = ("begin", "committed", "git", "after git")
"""Where somebody else may act: no transaction is open."""
PLACES = (*OUTSIDE, "write", "commit")


class Crash(BaseException):
    """A leader dies here: nothing on the way may swallow it."""


class Moment(NamedTuple):
    """The step with this number, from 1, of those at one of `PLACES`."""

    place: str
    number: int


class Fate:
    """What becomes of one leader: at its moment `meet` is called; None: it dies."""

    def __init__(self, moment: Moment | None, meet: Callable[[], None] | None = None) -> None:
        self.moment, self.meet = moment, meet
        self.dead, self.met, self._passed = False, False, 0

    def step(self, place: str) -> None:
        """It comes by such a place."""
        if self.dead:
            raise Crash
        if self.moment is None or place != self.moment.place:
            return
        self._passed += 1
        if self._passed != self.moment.number:
            return
        self.met = True
        if self.meet is not None:
            self.meet()
            return
        self.dead = True
        raise Crash


class Leaders:
    """The leaders of a site, one for each call."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self._alive: set[int] = set()
        self._number = 0
        self._acting: list[Fate] = []
        self._execute = commands._execute
        commands._execute = self._git  # type: ignore[assignment]

    def close(self) -> None:
        """Git is called as before."""
        commands._execute = self._execute

    def act(self, act: Callable[[Scheduler], Any], fate: Fate, who: str | None = None) -> Any:
        """What a new leader comes to; None when it has died."""
        self._number += 1
        number = self._number
        leader = self._made(fate, number, who)
        self._alive.add(number)
        self._acting.append(fate)
        at_work, seconds = set(keep.AT_WORK), worktrees.LOCK_SECONDS
        if len(self._acting) > 1:
            # Another process knows nothing of what this one is at, and its locks are not given up
            # while it waits for them.
            keep.AT_WORK.clear()
            worktrees.LOCK_SECONDS = 0.0
        try:
            return act(leader)
        except Crash:
            assert fate.dead
            return None
        finally:
            worktrees.LOCK_SECONDS = seconds
            keep.AT_WORK.clear()
            keep.AT_WORK.update(at_work)
            self._acting.pop()
            self._alive.discard(number)
            leader.bus.close()

    def _made(self, fate: Fate, number: int, who: str | None) -> Scheduler:
        leader = self.site.leader(who)
        database: Any = leader.database
        begin = database.transaction

        @contextlib.contextmanager
        def transaction(*arguments: Any, **options: Any) -> Iterator[Transaction]:
            if not database.in_transaction:
                fate.step("begin")
            with begin(*arguments, **options) as tx:
                _watch(tx, fate)
                yield tx
                fate.step("commit")
            if not database.in_transaction:
                fate.step("committed")

        database.transaction = transaction
        boot = self.site.clock.boot_id
        database.owner = lambda: Owner(boot, number, 1, processes.namespace())
        database.runs = lambda owner: owner.process in self._alive
        return leader

    def _git(self, call: Any, *arguments: Any) -> Any:
        if not self._acting:
            return self._execute(call, *arguments)
        fate = self._acting[-1]
        fate.step("git")
        done = self._execute(call, *arguments)
        fate.step("after git")
        return done


def _watch(tx: Any, fate: Fate) -> None:
    if "run" in vars(tx):
        return  # a transaction that has joined another is the same
    for name in ("run", "run_many", "add"):
        setattr(tx, name, _stepping(getattr(tx, name), fate))


def _stepping(call: Callable[..., Any], fate: Fate) -> Callable[..., Any]:
    def stepped(*arguments: Any, **options: Any) -> Any:
        fate.step("write")
        return call(*arguments, **options)

    return stepped
