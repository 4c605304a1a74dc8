"""`orch patch rollback` killed at every step, and at every call of git: the next command makes it
whole, or as if it had never been begun; the same again comes to the end; and what is the user's is
as it was. KILL_EVERY=1 kills at every step."""

import contextlib
from pathlib import Path

from inbox_orch.inbox import Bus
from inbox_orch.orch.integration.rules import branch_of
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.patches import ledger
from inbox_orch.orch.patches import rows as patches
from support.accepted import recorded
from support.buses import refused
from support.processes import until
from support.runs import Site, git, lock_files
from support.scenes import Scene, apart
from support.sweeps import sweep


class Undoing(Scene):
    """A run whose tasks `a` and `b` were integrated; the patch of `a` is to be undone."""

    with_user = True

    def make(self) -> None:
        site = Site(self.folder)
        run = site.open_run()
        site.add(run, "a", "b")
        for key, item in site.dispatch(run).items():
            site.deliver(item, f"{key}.txt", f"{key}\n")
        site.scheduler.reconcile(run)
        recorded(site.scheduler, run, "a")
        site.scheduler.integrate(run)
        site.close()

    def act(self) -> None:
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            scheduler.patch_rollback(scheduler.run(None), "a/1/1", reason="why not")

    def check(self) -> bool:
        """Whether it was undone before it was tried again."""
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            run = scheduler.run(None)
            scheduler.reconcile(run)
            done = self.judged(scheduler)
            with refused("invalid_state") if done else contextlib.nullcontext():
                scheduler.patch_rollback(run, "a/1/1", reason="why not")
            assert self.judged(scheduler)
        return done

    def judged(self, scheduler: Scheduler) -> bool:
        """The branch and the ledger say the same, once; whether that is that it is undone."""
        run = scheduler.run(None)
        with scheduler.database.snapshot() as snapshot:
            intents = snapshot.all("SELECT count(*) FROM intent WHERE closed_at IS NULL")
            assert intents[0][0] == 0, "an intent is open"
            patch = ledger.named(snapshot, run, "a/1/1")
            every = patches.of_attempt(snapshot, patch.attempt_id)
            states = [ledger.said_of(snapshot, each) for each in every]
        listed = git(self.repository, "ls-tree", "-r", "--name-only", branch_of(run)).split()
        undone = "a.txt" not in listed
        assert "b.txt" in listed
        assert states[0] == ("rolled_back" if undone else "committed")
        assert states[1:] in ([["committed"]] if undone else [[], ["created"], ["validated"]])
        git(self.repository, "fsck", "--strict")
        until(lambda: lock_files(self.repository / ".git") == [])
        assert scheduler.doctor(verify=True).problems == 0
        return undone


def killed(folder: str) -> None:
    """The body of the test, in a process of its own."""
    scene = Undoing(Path(folder))
    sweep(scene, scene.act, 8, name="rollback")


def test_a_rollback_killed_at_any_step_is_made_whole(tmp_path: Path):
    apart(killed, tmp_path)
