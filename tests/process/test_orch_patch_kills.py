"""A leader killed while it judges what was handed in, lets it in or refuses it, and somebody killed
who approves, refuses, releases or drops: the next one comes to the same end, nothing that was
handed in is lost, and what is the user's is as it was. KILL_EVERY=1 kills at every step.
"""

import os
from pathlib import Path
from typing import NamedTuple

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader import patches as deeds
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.views import patches as views
from inbox_orch.shared.errors import InboxOrchError
from support import killing, stages
from support.processes import until
from support.runs import Site, commit, git, lock_files
from support.scenes import Scene, apart
from support.sweeps import sweep

POLICY = {"ask_paths": ["ci.yml"], "forbid_paths": ["no.txt"]}
LEFT = "left by its worker\n"
WRITE = stages.agent("write", on_failure="write", max_visits=2)


class Act(NamedTuple):
    """What is handed in, and what is done to it once it is judged (None: it is judged); what that
    comes to."""

    name: str
    does: str | None
    state: str
    patches: list[str]
    options: dict[str, object] = {}  # noqa: RUF012 - never changed


ACTS = {
    "allow": Act("yes.txt", None, "succeeded", ["committed"]),
    "ask": Act("ci.yml", None, "succeeded", ["committed"]),
    "ask with a check": Act(
        "ci.yml", None, "succeeded", ["committed"], {"checks": ["test -s ci.yml"]}
    ),
    "deny": Act("no.txt", None, "failed", ["quarantined"]),
    "deny what is left": Act("no.txt", None, "failed", ["quarantined"], {"harvest": True}),
    "deny in a stage": Act("no.txt", None, "active", ["quarantined"], {"staged": True}),
    "approve": Act("ci.yml", "approve", "succeeded", ["committed"]),
    "refuse": Act("ci.yml", "refuse", "failed", ["quarantined"]),
    "release": Act("no.txt", "release", "succeeded", ["committed", "quarantined"]),
    "drop": Act("no.txt", "drop", "failed", ["dropped"]),
}
"""Hand-in and apply; quarantine; what people say of either."""


class Judgement(Scene):
    """One submitted attempt."""

    with_user = True

    def __init__(self, folder: Path, name: str) -> None:
        super().__init__(folder)
        self.does = ACTS[name]

    def make(self) -> None:
        site = Site(self.folder)
        run = site.open_run(config=Config(policy=POLICY, finds=()))
        if "staged" in self.does.options:
            stages.add(site, run, "a", WRITE, mailbox="workers", max_attempts=1)
        else:
            site.add(run, "a", max_attempts=1, **self.does.options)
        site.dispatch(run)
        site.scheduler.reconcile(run)
        (attempt,) = site.attempts(run, "a")
        self.worktree = Path(str(attempt.worktree_path))
        commit(self.worktree, "first.txt", "first\n")
        item = {"thread": attempt.thread_id, "mailbox": "workers", "worktree": self.worktree}
        if self.does.options.keys() & {"harvest", "staged"}:
            Path(self.worktree, self.does.name).write_text(LEFT)
            site.done(item)
        else:
            site.deliver(item, self.does.name)
        self.head = git(self.worktree, "rev-parse", "HEAD")
        if self.does.does is not None:
            site.scheduler.reconcile(run)
        site.close()

    def act(self) -> None:
        """What is done, in this process; the leader looks afterwards."""
        with Bus.open(self.database) as bus:
            caller, leader = Scheduler(bus, "boss"), Scheduler(bus)
            if self.does.does is not None:
                say(caller, self.does.does)
            leader.reconcile(leader.run(None))

    def check(self) -> None:
        """The next one does the rest, and all is as if nobody had been killed."""
        self.act()
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            run = scheduler.run(None)
            if self.does.patches == ["committed"]:
                say(Scheduler(bus, "boss"), "approve")
                scheduler.reconcile(run)
            (row,) = scheduler.status(run).rows
            found = views.listed(scheduler.desk, run)
            assert row.standing.state == self.does.state
            assert sorted(each.state for each in found) == self.does.patches
            assert scheduler.doctor(verify=True).problems == 0
            with scheduler.database.snapshot() as snapshot:
                assert snapshot.all("SELECT kind FROM intent WHERE closed_at IS NULL") == []
        self._git_is_right(row.standing.task.accepted_head, found)

    def _git_is_right(self, accepted: str | None, found: list[views.Listed]) -> None:
        if accepted is not None:
            assert len(git(self.repository, "rev-list", f"main..{accepted}").split()) == 1
            tree = git(self.repository, "rev-parse", f"{accepted}^{{tree}}")
            assert tree in [each.patch.tree for each in found if each.state == "committed"]
        kept = git(self.repository, "rev-list", "--objects", "--glob=refs/orch/attempts/*")
        assert self.head in kept
        if "staged" in self.does.options:
            assert sorted(os.listdir(self.worktree)) == [".git", "README.md"]
            assert git(self.worktree, "status", "--porcelain") == ""
        if self.does.options.keys() & {"harvest", "staged"}:
            blob = git(self.repository, "rev-parse", f"{found[0].patch.head}:no.txt")
            assert blob in kept and git(self.repository, "cat-file", "-p", blob) + "\n" == LEFT
        until(lambda: lock_files(self.repository / ".git", self.worktrees) == [])
        git(self.repository, "fsck", "--strict")


def say(caller: Scheduler, word: str) -> None:
    """Of the patch of which it may be said; where that was done before the kill, nothing."""
    run = caller.run(None)
    state = "queued" if word in ("approve", "refuse") else "quarantined"
    for each in views.listed(caller.desk, run):
        if each.state != state:
            continue
        if word == "release":
            deeds.release(caller.desk, run, each.patch, "forbid_paths", "so")
            adopt(caller)
        else:
            deed = {"approve": deeds.approve, "refuse": deeds.refuse, "drop": deeds.drop}[word]
            deed(caller.desk, run, each.patch)


def adopt(caller: Scheduler) -> None:
    """Unless it was adopted before the kill."""
    try:
        caller.adopt(caller.run(None), "a")
    except InboxOrchError as error:
        if error.code != "invalid_state":
            raise


def killed(folder: str, *names: str) -> None:
    """The body of the test, in a process of its own."""
    for name in names:
        place = Path(folder, name.replace(" ", "-"))
        place.mkdir()
        scene = Judgement(place, name)
        sweep(scene, scene.act, 2, name=name)


EACH = [(name,) for name in ACTS] if killing.KILL_EVERY == 1 else [tuple(ACTS)]


@pytest.mark.parametrize("names", EACH, ids=" ".join)
def test_what_is_killed_at_any_step_comes_to_the_same_end(tmp_path: Path, names: tuple[str, ...]):
    apart(killed, tmp_path, *names)
