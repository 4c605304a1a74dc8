"""A leader of a council killed at any step: the next look at it makes it whole."""

import json
import shutil
import sys
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.council import take_in, views
from inbox_orch.orch.council.ask import CouncilSpec, check_asked
from inbox_orch.orch.council.count import rendered
from inbox_orch.orch.leader.hearing import open_hearing
from inbox_orch.orch.leader.scheduler import Scheduler
from support import killing
from support.chambers import BRIEF, REVIEWERS, WAL, Chamber
from support.scenes import apart

KEY = "the-key"


def start(scheduler: Scheduler) -> str:
    """Open it, as a leader does that may have to repeat the call."""
    asked = check_asked(CouncilSpec(brief=BRIEF, reviewers=REVIEWERS))
    return str(scheduler.start_council(asked, key=KEY).data["council"]["id"])


def threads(scheduler: Scheduler) -> dict[str, int]:
    """How many requests every reviewer has."""
    with scheduler.database.snapshot() as snapshot:
        rows = snapshot.all("SELECT mailbox, count(*) FROM thread GROUP BY mailbox")
        return {row[0]: row[1] for row in rows if row[0] != "leader"}


class Starting:
    """Nothing is there; a leader opens a council."""

    def prepare(self, chamber: Chamber) -> None:
        """Only the database."""

    def act(self, scheduler: Scheduler) -> None:
        start(scheduler)

    def check(self, scheduler: Scheduler) -> None:
        for view in scheduler.councils():
            take_in.refresh(scheduler.desk, view.run)
        start(scheduler)
        assert len(scheduler.councils()) == 1
        assert threads(scheduler) == dict.fromkeys(REVIEWERS, 1)


class Asking:
    """Nothing is there; `orch council ask` opens a council in mailboxes of its own."""

    def prepare(self, chamber: Chamber) -> None:
        """Only the database."""

    def act(self, scheduler: Scheduler) -> None:
        asked = check_asked(CouncilSpec(brief=BRIEF, reviewers=REVIEWERS))
        self.hearing = open_hearing(scheduler.desk, asked)

    def check(self, scheduler: Scheduler) -> None:
        self.act(scheduler)
        assert len(scheduler.councils()) == 1
        assert threads(scheduler) == dict.fromkeys(self.hearing.mailboxes.values(), 1)


class Settling:
    """One reply is whole, one is broken, one was left behind by a stopped command."""

    def prepare(self, chamber: Chamber) -> None:
        run = chamber.start()
        chamber.answer(run, "ada", WAL)
        chamber.hand_in("bob", body='{"broken')
        chamber.fail("eve", "stopped", result=json.dumps(chamber.reply(run)))

    def act(self, scheduler: Scheduler) -> None:
        scheduler.tally_of(scheduler.council(None))

    def check(self, scheduler: Scheduler) -> None:
        run = scheduler.council(None)
        take_in.refresh(scheduler.desk, run)
        seats = {s.seat.reviewer: s.stands.state for s in views.view(scheduler.desk, run).seats}
        assert seats == {"ada": "valid", "bob": "pending", "eve": "valid_after_kill"}
        assert threads(scheduler) == {"ada": 1, "bob": 2, "eve": 1}
        with scheduler.database.snapshot() as snapshot:
            kept = snapshot.all("SELECT raw FROM council_reply WHERE state = 'invalid'")
            assert [bytes(row[0]) for row in kept] == [b'{"broken']
            open_intents = snapshot.all("SELECT count(*) FROM intent WHERE closed_at IS NULL")
            assert open_intents[0][0] == 0


class Closing:
    """Three replies are there; a leader takes them in, and stores the report."""

    def prepare(self, chamber: Chamber) -> None:
        run = chamber.start()
        for reviewer in REVIEWERS:
            chamber.answer(run, reviewer, WAL)

    def act(self, scheduler: Scheduler) -> None:
        counted = scheduler.tally_of(scheduler.council(None))
        scheduler.keep_report(counted, "report.md", rendered(counted, "md"))

    def check(self, scheduler: Scheduler) -> None:
        run = scheduler.council(None)
        self.act(scheduler)
        sat = scheduler.show_council(run)
        assert (sat.view.status, sat.view.revision, len(sat.reports)) == ("complete", 1, 1)
        with scheduler.database.snapshot() as snapshot:
            sealed = snapshot.all("SELECT count(*) FROM thread WHERE sealed = 1")
            assert sealed[0][0] == 0
            events = snapshot.all("SELECT count(*) FROM event WHERE kind = 'round_closed'")
            assert events[0][0] == 1


SCENES = {scene.__name__.lower(): scene for scene in (Starting, Asking, Settling, Closing)}


def open_scheduler(folder: Path) -> Bus:
    return Bus.open(folder / ".inbox" / "bus.db")


def act_in(folder: Path, scene) -> None:
    with open_scheduler(folder) as bus:
        scene.act(Scheduler(bus))


def kill_at_every_step(name: str, folder: str) -> None:
    """The body of the test, in a process of its own."""
    scene, aside, here = SCENES[name](), Path(folder, "aside"), Path(folder, "here")
    aside.mkdir()
    chamber = Chamber(aside)
    scene.prepare(chamber)
    chamber.close()
    killing.settle()
    step, killed = 1, True
    while killed:
        shutil.copytree(aside, here)
        killed = killing.killed_before(step, lambda: act_in(here, scene))
        try:
            with open_scheduler(here) as bus:
                scheduler = Scheduler(bus)
                scene.check(scheduler)
                assert scheduler.doctor(verify=True).problems == 0
                assert bus.doctor(verify=True).problems == 0
        except BaseException as error:
            error.add_note(f"killed before step {step}")
            raise
        shutil.rmtree(here)
        # Every step at first, then one in 23, which has no part in how the steps repeat.
        step += 1 if step < 12 else 23 if killing.KILL_EVERY > 1 else 1
    sys.stdout.write(str(step))


@pytest.mark.parametrize("name", SCENES)
def test_a_leader_killed_at_any_step_leaves_a_council_that_goes_on(name: str, tmp_path: Path):
    steps = int(apart(kill_at_every_step, name, tmp_path))
    assert steps > 60, f"too few steps: {steps}"
