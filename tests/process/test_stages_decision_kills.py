"""Decisions whose answers do more than go on, killed at any step: refused work that is let in, and
a task that is split. The next one who answers, and the next leader, come to the same end.
"""

from functools import partial
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.plan import Link, Plan, TaskSpec
from inbox_orch.orch.stages.decide import Answered
from inbox_orch.orch.views import patches as views
from inbox_orch.shared.errors import InboxOrchError
from support import killing
from support.runs import Site, git
from support.scenes import Scene, apart, kill_everywhere
from support.stages import Course, add, agent

PARTS = Plan((TaskSpec("p1", "One"), TaskSpec("p2", "Two", depends_on=(Link("p1"),))))
ANSWERS = {"relax": Answered("relax", "so"), "split": Answered("split", parts=PARTS)}
ENDS = {
    "relax": {"a": "succeeded", "after": "ready"},
    "split": {"a": "skipped", "after": "waiting", "p1": "ready", "p2": "waiting"},
}


class Asked(Scene):
    """A task whose work was refused, and another that waits for it."""

    def __init__(self, folder: Path, answer: str) -> None:
        super().__init__(folder)
        self.answer = answer

    def make(self) -> None:
        site = Site(self.folder)
        run = site.open_run(config=Config(policy={"forbid_paths": ["no.txt"]}))
        add(site, run, "a", agent("write"))
        site.add(run, "after", depends_on=["a"])
        site.dispatch(run)
        Course(site, run).work(no_txt="no\n")
        site.close()

    def act(self) -> None:
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus, "boss")
            run = scheduler.run(None)
            scheduler.answer(run, "a", body="", decided=ANSWERS[self.answer])
            scheduler.reconcile(run)

    def check(self) -> None:
        try:
            self.act()
        except InboxOrchError as error:
            if error.code != "invalid_state":  # it was taken before the kill
                raise
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            run = scheduler.run(None)
            scheduler.reconcile(run)
            rows = scheduler.status(run).rows
            ends = {row.standing.task.key: row.standing.state for row in rows}
            assert ends == ENDS[self.answer]
            found = sorted(each.state for each in views.listed(scheduler.desk, run))
            came_in = ["committed"] if self.answer == "relax" else []
            assert found == [*came_in, "quarantined"]
            assert scheduler.doctor(verify=True).problems == 0
            with scheduler.database.snapshot() as snapshot:
                assert snapshot.all("SELECT kind FROM intent WHERE closed_at IS NULL") == []
                (head,) = snapshot.only("SELECT accepted_head FROM task WHERE key = 'a'")
        if self.answer == "relax":
            assert git(self.repository, "show", f"{head}:no.txt") == "no"


def kill_at_every_step(folder: str, answer: str) -> None:
    """The body of the test, in a process of its own."""
    scene = Asked(Path(folder), answer)
    kill_everywhere(scene, partial(Asked.act, scene), every=killing.RARELY)


@pytest.mark.parametrize("answer", ANSWERS)
def test_what_is_killed_at_any_step_comes_to_the_same_end(tmp_path: Path, answer: str):
    steps = int(apart(kill_at_every_step, tmp_path, answer))
    assert steps > killing.KILL_EVERY, f"too few steps: {steps}"
