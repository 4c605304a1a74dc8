"""The judgement of what was handed in killed at any step, and so the answer of whoever was asked:
the next leader comes to the same end, and nothing that was handed in is lost.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader import patches as deeds
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.views import patches as views
from inbox_orch.shared.errors import InboxOrchError
from support import killing
from support.runs import Site, commit, git, lock_files
from support.scenes import Scene, apart, kill_everywhere

POLICY = {"ask_paths": ["ci.yml"], "forbid_paths": ["no.txt"]}
HANDED_IN = {"fine": "yes.txt", "asked": "ci.yml", "denied": "no.txt", "checked": "ci.yml"}
ENDS = {
    "fine": ("succeeded", ["committed"]),
    "asked": ("succeeded", ["committed"]),
    "denied": ("succeeded", ["committed", "quarantined"]),
    "checked": ("succeeded", ["committed"]),
}


class Judgement(Scene):
    """Four submitted attempts: one that may come in, two that are asked about, one that may not."""

    def __init__(self, folder: Path, judged: bool) -> None:
        super().__init__(folder)
        self.judged = judged

    def make(self) -> None:
        site = Site(self.folder)
        run = site.open_run(config=Config(policy=POLICY))
        for key in HANDED_IN:
            checks = ["test -s ci.yml"] if key == "checked" else []
            site.add(run, key, checks=checks, max_attempts=1)
        items = site.dispatch(run)
        for key, name in HANDED_IN.items():
            commit(items[key]["worktree"], "first.txt", "first\n")
            site.deliver(items[key], name)
        self.heads = [git(item["worktree"], "rev-parse", "HEAD") for item in items.values()]
        if self.judged:
            site.scheduler.reconcile(run)
        site.close()

    def check(self) -> None:
        """The next leader does the rest, and all is as if nobody had been killed."""
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            lead(scheduler)
            answer(scheduler)
            run = scheduler.run(None)
            found = views.listed(scheduler.desk, run)
            rows = scheduler.status(run).rows
            ends = {row.standing.task.key: row.standing.state for row in rows}
            assert ends == {key: state for key, (state, _) in ENDS.items()}
            states = {
                key: sorted(each.state for each in found if each.where.key == key)
                for key in HANDED_IN
            }
            assert states == {key: wanted for key, (_, wanted) in ENDS.items()}
            assert scheduler.doctor(verify=True).problems == 0
            with scheduler.database.snapshot() as snapshot:
                left = snapshot.all("SELECT kind FROM intent WHERE closed_at IS NULL")
                heads = snapshot.all("SELECT accepted_head FROM task")
        assert left == []
        for (head,) in heads:
            assert len(git(self.repository, "rev-list", f"main..{head}").split()) == 1
        assert lock_files(self.repository / ".git", self.worktrees) == []
        git(self.repository, "fsck", "--strict")
        refs = ("--glob=refs/orch/attempts/*",)
        assert set(self.heads) <= set(git(self.repository, "rev-list", *refs).split())


def lead(scheduler: Scheduler) -> None:
    """What is submitted."""
    scheduler.reconcile(scheduler.run(None))


def answer(scheduler: Scheduler) -> None:
    """What is asked about is approved, and what was refused is released and taken in."""
    caller, run = Scheduler(scheduler.bus, "boss"), scheduler.run(None)
    for each in views.listed(caller.desk, run):
        if each.state == "queued":
            deeds.approve(caller.desk, run, each.patch)
        if each.state == "quarantined":
            deeds.release(caller.desk, run, each.patch, "forbid_paths", "so")
    lead(scheduler)
    try:
        scheduler.adopt(run, "denied")
    except InboxOrchError as error:
        if error.code != "invalid_state":  # it was adopted before the kill
            raise


def play(scene: Scene, act: Callable[[Scheduler], None]) -> None:
    """What a leader does, in this process."""
    with Bus.open(scene.database) as bus:
        act(Scheduler(bus))


def kill_at_every_step(folder: str, name: str) -> None:
    """The body of the test, in a process of its own."""
    scene = Judgement(Path(folder), judged=name == "answer")
    act = partial(play, scene, {"lead": lead, "answer": answer}[name])
    kill_everywhere(scene, act, every=killing.RARELY)


@pytest.mark.parametrize("act", ["lead", "answer"])
def test_what_is_killed_at_any_step_comes_to_the_same_end(tmp_path: Path, act: str):
    steps = int(apart(kill_at_every_step, tmp_path, act))
    assert steps > 10 * killing.KILL_EVERY, f"too few steps: {steps}"
