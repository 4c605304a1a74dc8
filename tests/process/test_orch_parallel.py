"""Many leaders at once on one repository, beside tools that know nothing of our lock."""

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from support.commands import command_path
from support.processes import start_json
from support.runs import Site, add_task, branches, commit, git, lock_files, run_init, worktree_paths
from support.timing import PATIENCE_SECONDS
from support.warm import Forked


def start(site: Site, *arguments: str) -> Forked:
    """An `orch --json` in the repository."""
    orch = command_path("orch")
    return start_json(orch, *arguments, cwd=site.repository, stderr=subprocess.PIPE)


def results(processes: Sequence[Forked]) -> list[dict]:
    """What they say, once all have ended well."""
    ended = [(p, *p.communicate(timeout=PATIENCE_SECONDS)) for p in processes]
    for process, out, error in ended:
        assert process.returncode == 0, (process.args, out, error)
    return [json.loads(out)["data"] for _, out, _ in ended]


def add_origin(site: Site) -> None:
    """A remote with `main`, as most repositories have one."""
    git(site.folder, "clone", "-q", "--bare", str(site.repository), "origin.git")
    git(site.repository, "remote", "add", "origin", str(site.folder / "origin.git"))
    git(site.repository, "fetch", "-q", "origin")


def assert_whole(site: Site, expected: int) -> None:
    """That many worktrees, each with its branch, and nothing else."""
    assert len(branches(site.repository)) == expected
    assert len(worktree_paths(site.repository)) == expected
    assert lock_files(site.repository / ".git") == []
    git(site.repository, "fsck", "--strict")


@pytest.fixture
def real(site: Site, monkeypatch: pytest.MonkeyPatch) -> Site:
    """The site for commands, which go by the real clock."""
    site.close()
    # How long writers queue on a loaded machine is not what is tried here.
    monkeypatch.setenv("INBOX_BUSY_TIMEOUT", "120")
    return site


def test_eight_leaders_dispatch_one_run_and_each_task_has_one_attempt(real: Site):
    run = open_run(real, tasks=12)

    done = results([start(real, "dispatch", "--run", run) for _ in range(8)])

    made = [item["id"] for data in done for item in data["items"]]
    assert len(made) == len(set(made)) == 12
    assert {item["state"] for data in done for item in data["items"]} == {"offered"}
    status = results([start(real, "status", "--run", run)])[0]
    assert [row["attempts"] for row in status["items"]] == [1] * 12
    assert_whole(real, 12)


def test_eight_leaders_reconcile_at_once_and_each_attempt_is_decided_once(real: Site):
    run = open_run(real, tasks=6)
    items = results([start(real, "dispatch", "--run", run)])[0]["items"]
    finish_all(real, items)

    done = results([start(real, "reconcile", "--run", run) for _ in range(8)])

    assert sum(data["verified"] for data in done) == 6
    status = results([start(real, "status", "--run", run)])[0]
    assert status["counts"] == {"succeeded": 6}
    verified = results([start(real, "doctor", "--verify")])[0]
    assert verified["problems"] == 0


def test_eight_leaders_finish_what_a_killed_one_has_begun_once(real: Site):
    run = open_run(real, tasks=6)
    killed = start(real, "dispatch", "--run", run)
    wait_for_an_intent(real)
    killed.kill()
    killed.communicate()

    results([start(real, "reconcile", "--run", run) for _ in range(8)])

    status = results([start(real, "status", "--run", run)])[0]
    begun = [row for row in status["items"] if row["attempt"] is not None]
    assert {row["attempt"]["state"] for row in begun} == {"offered"}
    assert_whole(real, len(begun))
    listed = json.loads(
        subprocess.check_output([command_path("inbox"), "list", "--json"], cwd=real.repository)
    )
    assert len(listed["data"]["items"]) == len(begun)


def test_eight_leaders_with_one_key_choose_once(real: Site):
    run = open_run(real, tasks=3)

    done = results([start(real, "dispatch", "--run", run, "--key", "k") for _ in range(8)])

    assert sum(data["replayed"] is False for data in done) == 1
    assert len({tuple(i["id"] for i in data["items"]) for data in done}) == 1


def test_sixteen_tasks_from_a_remote_branch_round_after_round(real: Site):
    add_origin(real)
    config = (real.repository / ".git" / "config").read_bytes()
    for number in range(1, 4):
        run = open_run(real, tasks=16)
        items = results([start(real, "dispatch", "--run", run, "--base", "origin/main")])
        assert {i["state"] for i in items[0]["items"]} == {"offered"}
        assert_whole(real, 16 * number)
    assert (real.repository / ".git" / "config").read_bytes() == config


def test_dispatches_succeed_beside_tools_that_take_no_lock(real: Site):
    add_origin(real)
    config = (real.repository / ".git" / "config").read_bytes()
    runs = [open_run(real, tasks=8) for _ in range(4)]

    with others_at_work(real):
        done = results(
            [start(real, "dispatch", "--run", run, "--base", "origin/main") for run in runs]
        )

    assert {item["state"] for data in done for item in data["items"]} == {"offered"}
    assert_whole(real, 32)
    assert (real.repository / ".git" / "config").read_bytes() == config


# -- helpers ---------------------------------------------------------------------------------


def open_run(site: Site, *, tasks: int) -> str:
    """A run with that many tasks; its name."""
    with Bus.open(site.office.path) as bus:
        scheduler = Scheduler(bus)
        answer = run_init(
            scheduler,
            title="A run",
            repository=str(site.repository),
            worktree_root=str(site.worktrees),
        )
        name = answer.data["run"]["name"]
        for number in range(tasks):
            add_task(scheduler, scheduler.run(name), key_name=f"t{number}", title="T")
        return name


def finish_all(site: Site, items: Sequence[dict]) -> None:
    """Every attempt is done, with a commit."""
    with Bus.open(site.office.path, agent="w1") as bus:
        for item in items:
            claimed = bus.claim(item["thread"], mailboxes=[item["mailbox"]])
            commit(item["worktree"], f"{item['key']}.txt", "text")
            bus.done(item["thread"], claimed.lease.token)


def wait_for_an_intent(site: Site) -> None:
    """Until the dispatch has chosen."""
    with Bus.open(site.office.path) as bus:
        for _ in bus.watch(after="0", kinds=["attempt_allocating"], wait_seconds=60):
            return
    raise AssertionError("nothing was chosen")


@contextmanager
def others_at_work(site: Site) -> Iterator[None]:
    """Somebody fetches, somebody else adds and removes worktrees, in a loop."""
    stop = threading.Event()

    def fetch() -> None:
        while not stop.is_set():
            quiet(site, "fetch", "-q", "origin")

    def shuffle(name: str) -> None:
        place = str(site.folder / name)
        while not stop.is_set():
            quiet(site, "worktree", "add", "-q", "--detach", place)
            quiet(site, "worktree", "remove", "--force", place)

    threads = [threading.Thread(target=fetch)]
    threads += [threading.Thread(target=shuffle, args=(f"foreign{i}",)) for i in range(2)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        for name in ("foreign0", "foreign1"):
            quiet(site, "worktree", "remove", "--force", str(site.folder / name))


def quiet(site: Site, *arguments: str) -> None:
    """Git of somebody who does not mind a failure: without our lock there are some."""
    subprocess.run(["git", *arguments], cwd=site.repository, capture_output=True, env=os.environ)


def test_the_helper_finds_a_lock_that_is_left(tmp_path: Path):
    (tmp_path / "index.lock").touch()
    (tmp_path / "inbox-orch.lock").touch()
    assert lock_files(tmp_path) == [str(tmp_path / "index.lock")]
