"""A process killed while it brings in a change that was handed in as text, alone or with its git,
at any step; a full disk; several at once: it is brought in once, and nothing stays behind."""

import json
import subprocess
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.attempts import submit
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.patches import ledger
from inbox_orch.orch.patches import rows as patches
from inbox_orch.shared.errors import InboxOrchError
from support import killing
from support.commands import command_path, run
from support.deaths import INDEX_WRITTEN, KILLED, PREPARED, Death, locks
from support.disks import small_disk
from support.processes import until
from support.runs import Site, git, lock_files
from support.scenes import Scene, apart
from support.sweeps import sweep
from support.timing import PATIENCE_SECONDS

EDITS = [
    {"path": "README.md", "old": "A project", "new": "A better project"},
    {"path": "deep/in/new.txt", "content": "new\n"},
]
TEXT = json.dumps({"edits": EDITS}).encode()


def answered(site: Site, *keys: str):
    """Attempts whose workers have no files, and have answered; their run."""
    opened = site.open_run()
    site.add(opened, *keys, hands_in="text")
    for item in site.dispatch(opened, *keys).values():
        payload = TEXT.decode()
        site.worker.done(item["thread"], site.claim(item), body="Better.", payload=payload)
    return opened


def judge(repository: Path, scheduler: Scheduler, key: str) -> None:
    """It is accepted, in one commit, with one patch; its worktree is as that has it."""
    opened = scheduler.run(None)
    shown = scheduler.show_task(opened, key)
    (attempt,) = shown.attempts
    assert attempt.state == "succeeded"
    ahead = f"{attempt.base_commit}..{attempt.branch}"
    assert git(repository, "rev-list", "--count", ahead) == "1"
    assert git(repository, "show", f"{attempt.head_commit}:README.md") == "A better project."
    assert git(str(attempt.worktree_path), "status", "--porcelain") == ""
    assert (Path(str(attempt.worktree_path)) / "deep/in/new.txt").read_text() == "new\n"
    with scheduler.database.snapshot() as snapshot:
        (patch,) = patches.of_attempt(snapshot, attempt.id)
        assert (patch.way, ledger.state(snapshot, patch, attempt)) == ("edits", "committed")
    assert scheduler.bus.artifacts.length(str(patch.text)) == len(TEXT)


class Handed(Scene):
    """One attempt whose worker has answered; or a task for which somebody hands in a change."""

    with_user = True

    def __init__(self, folder: Path, key: str) -> None:
        super().__init__(folder)
        self.key = key

    def make(self) -> None:
        """Everything up to that."""
        site = Site(self.folder)
        if self.key == "asked":
            answered(site, self.key)
        else:
            site.add(site.open_run(), self.key)
        site.close()

    def act(self) -> None:
        """What a leader does, or somebody who hands in a change, in this process."""
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            opened = scheduler.run(None)
            if self.key == "unasked":
                submit.submit(scheduler.desk, opened, self.key, TEXT, key="once")
            scheduler.reconcile(opened)

    def check(self) -> None:
        """The next one does the same, and all is well."""
        self.act()
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            assert scheduler.doctor(verify=True).problems == 0
            judge(self.repository, scheduler, self.key)
        until(lambda: lock_files(self.repository / ".git", self.worktrees) == [])
        git(self.repository, "fsck", "--strict")


def killed(folder: str, *keys: str) -> None:
    """The body of the test, in a process of its own."""
    for key in keys:
        place = Path(folder, key)
        place.mkdir()
        scene = Handed(place, key)
        sweep(scene, scene.act, 6, name=f"text {key}")


EACH = [("asked",), ("unasked",)] if killing.KILL_EVERY == 1 else [("asked", "unasked")]


@pytest.mark.parametrize("keys", EACH)
def test_what_is_killed_at_any_step_comes_to_the_same_end(tmp_path: Path, keys: tuple[str, ...]):
    apart(killed, tmp_path, *keys)


def is_brought_in_once(site: Site) -> None:
    assert locks(site.repository) == []
    judge(site.repository, site.scheduler, "a")
    git(site.repository, "fsck", "--strict")


@pytest.mark.parametrize(
    "hook, words", [(PREPARED, "prepared*refs/heads/orch/*/a/1"), (INDEX_WRITTEN, "")]
)
def test_a_worktree_that_was_coming_forward_comes_forward(
    site: Site, tmp_path: Path, hook: str, words: str
):
    answered(site, "a")
    death = Death(tmp_path / "death").at(hook, words)

    assert death.of(site.repository, "reconcile") == KILLED
    assert run("reconcile", folder=site.repository, program="orch").code == 0
    is_brought_in_once(site)


def test_a_file_that_was_being_written_is_written(site: Site, tmp_path: Path):
    answered(site, "a")
    death = Death(tmp_path / "death").while_writing(site.repository, "new.txt")

    assert death.of(site.repository, "reconcile") == KILLED
    death.over(site.repository)
    assert run("reconcile", folder=site.repository, program="orch").code == 0
    is_brought_in_once(site)


def test_several_at_once_bring_it_in_once(site: Site):
    answered(site, "a")
    line = [command_path("orch"), "reconcile", "--json"]
    running = [
        subprocess.Popen(line, cwd=site.repository, stdout=subprocess.PIPE) for _ in range(4)
    ]
    answers = [json.loads(process.communicate(timeout=PATIENCE_SECONDS)[0]) for process in running]

    assert [process.returncode for process in running] == [0] * 4
    assert sum(answer["data"]["verified"] for answer in answers) == 1
    is_brought_in_once(site)


def test_a_full_disk_loses_nothing_and_leaves_nothing(tmp_path: Path):
    with small_disk(tmp_path / "disk") as disk:
        site = Site(disk.path)
        opened = answered(site, "a")
        with disk.full():
            done = run("reconcile", "--json", folder=site.repository, program="orch")
            assert done.value["error"]["code"] == "disk_full"
        (attempt,) = site.attempts(opened, "a")
        assert attempt.state == "submitted"
        assert git(str(attempt.worktree_path), "status", "--porcelain") == ""

        assert run("reconcile", folder=site.repository, program="orch").code == 0
        is_brought_in_once(site)
        site.close()


def test_nothing_is_submitted_to_a_full_disk(tmp_path: Path):
    with small_disk(tmp_path / "disk") as disk:
        site = Site(disk.path)
        opened = site.open_run()
        site.add(opened, "a")
        with disk.full(), pytest.raises(InboxOrchError) as failure:
            submit.submit(site.scheduler.desk, opened, "a", TEXT, key="once")
        assert failure.value.code == "disk_full"
        submit.submit(site.scheduler.desk, opened, "a", TEXT, key="once")
        is_brought_in_once(site)
        site.close()
