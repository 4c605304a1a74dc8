"""`orch cleanup` killed at every step: `reconcile` finishes or undoes it, and nothing is lost.

Before the worktree is in the trash nothing has happened, afterwards everything has; in between,
until somebody reconciles, there is an intent.
"""

import os
import signal
import subprocess
from pathlib import Path

from inbox_orch.inbox import Bus
from inbox_orch.orch.attempts import rows as attempts
from inbox_orch.orch.journal import rows as journal_rows
from inbox_orch.orch.leader.scheduler import Scheduler
from support.commands import command_path
from support.engines import looking
from support.lengths import LONG
from support.predicaments import contents
from support.runs import Site, branches, git, lock_files, worktree_paths
from support.scenes import Scene, apart, kill_everywhere, killed_by_git
from support.timing import PATIENCE_SECONDS

PRECIOUS = b"precious: not committed\n"


class CleanUp(Scene):
    """A run with a merged attempt `a`, and `b`, which has failed and left a file."""

    def make(self) -> None:
        """Everything up to the clean-up."""
        site = Site(self.folder)
        run = site.open_run()
        site.add(run, "a", "b")
        items = site.dispatch(run)
        site.deliver(items["a"], "a.txt")
        Path(items["b"]["worktree"], "left.txt").write_bytes(PRECIOUS)
        site.fail(items["b"], fatal=True)
        site.scheduler.reconcile(run)
        git(self.repository, "merge", "--quiet", items["a"]["branch"])
        site.close()

    def cleanup(self) -> None:
        """In this process."""
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            scheduler.cleanup(scheduler.run(None), force=True)

    def check(self) -> str | None:
        """Reconcile, judge, clean up what is left, judge. What became of the removal that was
        cut short: "done", "undone", or None if there was none."""
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            run = scheduler.run(None)
            cut_short = scheduler.reconcile(run).finished_intents
            self.judge(scheduler, run)
            last = looking(bus.database).all(
                "SELECT outcome FROM intent WHERE kind = 'cleanup' ORDER BY closed_at, number"
            )
            assert scheduler.reconcile(run).finished_intents == 0
            scheduler.cleanup(run, force=True)
            self.judge(scheduler, run)
            assert worktree_paths(self.repository) == set()
            assert branches(self.repository) == set()
            assert scheduler.cleanup(run, force=True).items == ()
            assert scheduler.doctor(verify=True).problems == 0
        git(self.repository, "fsck", "--strict")
        assert git(self.repository, "status", "--porcelain") == ""
        return last[-1][0] if cut_short else None

    def judge(self, scheduler: Scheduler, run) -> None:
        """Each worktree is there, whole, or gone, whole; no lock, no intent; nothing is lost."""
        with scheduler.database.snapshot() as snapshot:
            rows = attempts.of_run(snapshot, run.id)
            assert journal_rows.open_intents(snapshot, run.id) == []
            told = snapshot.one(
                "SELECT count(*) FROM message WHERE kind = 'reply' AND body LIKE '%refs/orch/%'"
            )[0]
        there = {str(row.worktree_path) for row in rows if row.removed_at is None}
        assert worktree_paths(self.repository) == there
        assert {str(path) for path in (self.worktrees / run.name).iterdir()} == there
        for path in there:
            git(path, "status", "--porcelain")
        salvaged = {row.id: row.salvage_commit for row in rows if row.salvage_commit is not None}
        listed = git(
            self.repository,
            *("for-each-ref", "--format=%(refname:lstrip=3) %(objectname)", "refs/orch/salvage"),
        )
        assert dict(line.split(" ") for line in listed.splitlines()) == salvaged
        assert told == len(salvaged)
        trash = self.worktrees / ".trash"
        removed = {row.id for row in rows if row.removed_at is not None}
        assert set(os.listdir(trash) if trash.exists() else ()) == removed
        assert lock_files(self.repository / ".git", self.worktrees) == []
        assert any(PRECIOUS in content for content in contents(self))


def kill_at_every_step(folder: str) -> None:
    """The body of the test, in a process of its own."""
    scene = CleanUp(Path(folder))
    ends = kill_everywhere(scene, scene.cleanup)
    assert ends == {"done", "undone", None}, ends


def test_a_cleanup_killed_at_any_step_is_finished_or_undone(tmp_path: Path):
    steps = int(apart(kill_at_every_step, tmp_path))
    assert steps > 100, f"too few steps: {steps}"


def test_a_cleanup_killed_between_two_calls_of_git_is_finished_or_undone(tmp_path: Path):
    scene, folder, line = CleanUp(tmp_path), tmp_path / "bin", ("cleanup", "--force")
    scene.prepare()
    scene.put_back()
    done = killed_by_git(scene, folder, 0, "never", *line)
    assert done.returncode == 0, done
    calls = len((folder / "count").read_bytes())
    assert calls > 30
    ends = set()
    # In the long form every second one at each of the two moments: the other meets the others.
    stride = 2 if LONG else 18
    before = [("before", number) for number in range(1, calls + 1, stride)]
    after = [("after", number) for number in range(stride // 2 + 1, calls + 1, stride)]
    for moment, number in (*before, *after):
        scene.put_back()
        done = killed_by_git(scene, folder, number, moment, *line)
        assert done.returncode == -signal.SIGKILL, (number, done)
        ends.add(scene.check())
    assert ends == {"done", "undone", None}, ends


def test_two_cleanups_at_once_remove_each_worktree_once(tmp_path: Path):
    site = Site(tmp_path)
    run = site.open_run()
    keys = [f"t{number}" for number in range(8)]
    site.add(run, *keys)
    items = site.dispatch(run)
    for key in keys:
        Path(items[key]["worktree"], "left.txt").write_text(f"{key}\n")
        site.fail(items[key], fatal=True)
    site.scheduler.reconcile(run)
    site.close()

    command = [command_path("orch"), "cleanup", "--force", "--json"]
    running = [
        subprocess.Popen(command, cwd=site.repository, stdout=subprocess.PIPE) for _ in range(3)
    ]
    outputs = [process.communicate(timeout=PATIENCE_SECONDS)[0] for process in running]

    assert [process.returncode for process in running] == [0, 0, 0], outputs
    with Bus.open(site.office.path) as bus:
        kinds = [row[0] for row in looking(bus.database).all("SELECT kind FROM event")]
        assert kinds.count("worktree_removed") == len(keys)
        assert Scheduler(bus).doctor(verify=True).problems == 0
    assert worktree_paths(site.repository) == set()
    assert lock_files(site.repository / ".git", site.worktrees) == []
    assert len(git(site.repository, "for-each-ref", "refs/orch/salvage").splitlines()) == len(keys)
    git(site.repository, "fsck", "--strict")


def test_removing_some_worktrees_disturbs_nobody_who_commits_in_others(tmp_path: Path):
    site = Site(tmp_path)
    run = site.open_run()
    each = 8 if os.environ.get("INBOX_ORCH_LONG") else 4
    ended, live = [f"e{n}" for n in range(each)], [f"l{n}" for n in range(each)]
    site.add(run, *ended, *live)
    items = site.dispatch(run)
    for key in ended:
        site.deliver(items[key], f"{key}.txt")
    site.scheduler.reconcile(run)
    site.close()
    loop = "for n in 1 2 3 4 5 6 7 8; do echo $n >$n; git add $n; git commit -qm $n || exit 1; done"
    workers = [subprocess.Popen(["sh", "-c", loop], cwd=items[key]["worktree"]) for key in live]

    done = subprocess.run(
        [command_path("orch"), "cleanup", "--force", "--json"],
        cwd=site.repository,
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )

    assert done.returncode == 0, done
    assert [worker.wait(PATIENCE_SECONDS) for worker in workers] == [0] * each
    assert worktree_paths(site.repository) == {items[key]["worktree"] for key in live}
    git(site.repository, "fsck", "--strict")
    git(site.repository, "gc", "--quiet", "--prune=now")
    for key in live:
        assert git(items[key]["worktree"], "rev-list", "--count", "HEAD") == "9"
    # What was not merged keeps its branch.
    assert branches(site.repository) == {item["branch"] for item in items.values()}
