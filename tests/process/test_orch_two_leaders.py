"""Two leaders drive one run at once, and one of them is killed at a moment of no choosing.

Whatever it was doing, the other brings the run to its end: one accepted attempt for each task,
and nothing left behind. LEADER_ROUNDS=N plays N rounds.
"""

import contextlib
import json
import os
import random
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.states import ATTEMPT_ENDED
from inbox_orch.shared.store import events
from sqlite import outside
from support.commands import command_path
from support.orch_matrix import Enterprise
from support.processes import until
from support.runs import add_task, branches, git, lock_files, worktree_paths
from support.timing import PATIENCE_SECONDS

ROUNDS = int(os.environ.get("LEADER_ROUNDS", "3"))
MOST_EVENTS = 84  # of a whole round, from the moment when its tasks are there
TASKS: dict[str, tuple[str, ...]] = {
    "a": (),
    "b": (),
    "flaky": (),
    "report": (),
    "merged": ("a", "b"),
    "last": ("merged", "flaky", "report"),
}
WORKER = """
key=$(head -n 1 "$INBOX_TASK_FILE")
case $key in
Report) exit 0 ;;
esac
case $INBOX_WORKTREE in
*flaky-1) exit 1 ;;
esac
echo "$key" > "$key.txt"
git add --all
git commit --quiet --message "$key"
"""


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Enterprise]:
    """A repository with a database, and two workers."""
    made = Enterprise(tmp_path / "project")
    with contextlib.ExitStack() as stack:
        for name in ("w1", "w2"):
            stack.enter_context(worker(made, name))
        yield made


@contextlib.contextmanager
def worker(project: Enterprise, name: str) -> Iterator[None]:
    """`inbox work` with two slots."""
    line = [command_path(), "work", "--agent", name, "--mailbox", "workers", "--slots", "2"]
    process = subprocess.Popen(
        [*line, "--", "sh", "-eu", "-c", WORKER],
        cwd=project.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(PATIENCE_SECONDS)


def test_a_killed_leader_loses_nothing_and_does_nothing_twice(project: Enterprise):
    for number in range(ROUNDS):
        try:
            play(project, number)
        except BaseException as error:
            error.add_note(f"in round {number}")
            raise


def play(project: Enterprise, number: int) -> None:
    """One run, from its first task to its end."""
    chance = random.Random(number)
    run = open_run(project)
    leaders = [start(project, run), start(project, run)]
    killed, survivor = leaders if chance.random() < 0.5 else leaders[::-1]
    before = newest_event(project)
    moment = before + chance.randrange(MOST_EVENTS)
    until(lambda: newest_event(project) >= moment or survivor.poll() is not None)
    killed.kill()
    killed.communicate()
    out, error = survivor.communicate(timeout=PATIENCE_SECONDS)
    assert survivor.returncode == 0, (out, error)
    last = json.loads(out.splitlines()[-1])
    assert (last["type"], last["ok"]) == ("outcome", True)
    assert last["data"]["counts"] == {"succeeded": len(TASKS)}
    judge(project, run)


def open_run(project: Enterprise) -> str:
    """A run with the tasks; its name."""
    name = project.open_run()
    with project.scheduler() as scheduler:
        for key, upstream in TASKS.items():
            add_task(
                scheduler,
                scheduler.run(name),
                key_name=key,
                title=key.capitalize(),
                depends_on=upstream,
                worktree=key != "report",
            )
    return name


def start(project: Enterprise, run: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [command_path("orch"), "drive", "--run", run, "--json"],
        cwd=project.folder,
        env={**os.environ, "XDG_STATE_HOME": str(project.state)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def newest_event(project: Enterprise) -> int:
    """Looked up without taking part: nothing is noticed on the way."""
    return int(outside.value(project.path, "SELECT max(seq) FROM event"))


# -- what must hold --------------------------------------------------------------------------


def judge(project: Enterprise, run: str) -> None:
    """By the event log, by git, and by what is on the disk."""
    with Bus.open(project.path, agent="leader") as bus:
        scheduler = Scheduler(bus)
        assert scheduler.doctor(verify=True).problems == 0
        assert bus.doctor(verify=True).problems == 0
        judge_events(scheduler, scheduler.run(run).id)
        judge_git(project, scheduler, run)


def judge_events(scheduler: Scheduler, run_id: str) -> None:
    """Each task was accepted once, tried no more often than it failed, and never twice at once."""
    with scheduler.database.snapshot() as snapshot:
        log = [event for event in events.every(snapshot) if event.run_id == run_id]
        keys = {row[0]: row[1] for row in snapshot.stream("SELECT id, key FROM task")}
    accepted = Counter(keys[str(e.task_id)] for e in log if e.kind == "attempt_succeeded")
    assert accepted == Counter(TASKS.keys())
    made = Counter(keys[str(e.task_id)] for e in log if e.kind == "attempt_allocating")
    assert made == Counter(TASKS.keys()) + Counter(["flaky"])
    live: dict[str, str] = {}
    for event in log:
        task, attempt = keys.get(str(event.task_id)), str(event.attempt_id)
        if event.kind == "attempt_allocating":
            assert task not in live, f"{task} has two live attempts"
            live[str(task)] = attempt
        elif event.kind.startswith("attempt_") and event.data["to"] in ATTEMPT_ENDED:
            assert live.pop(str(task)) == attempt
    assert live == {}
    sent = [e for e in log if e.kind == "attempt_offered" and e.data["from"] == "provisioned"]
    assert len(sent) == sum(made.values()), "one thread for each attempt"


def judge_git(project: Enterprise, scheduler: Scheduler, run: str) -> None:
    """A branch and a worktree for each code attempt, and nothing else; git is whole."""
    rows = attempts_of(scheduler, run)
    repository = project.folder
    assert branches(repository, f"orch/{run}/") == {row["branch"] for row in rows}
    mine = {path for path in worktree_paths(repository) if f"/{run}/" in path}
    assert mine == {os.path.realpath(row["worktree_path"]) for row in rows}
    assert lock_files(repository / ".git", project.state) == []
    assert git(repository, "fsck", "--strict", "--no-dangling") == ""
    assert git(repository, "status", "--porcelain") == ""
    with scheduler.database.snapshot() as snapshot:
        begun = snapshot.all("SELECT count(*) FROM intent WHERE closed_at IS NULL")
        assert begun[0][0] == 0
    merged = next(row for row in rows if row["key"] == "merged")
    for name in ("A.txt", "B.txt"):
        git(repository, "cat-file", "-e", f"{merged['base_commit']}:{name}")


def attempts_of(scheduler: Scheduler, run: str) -> list[dict[str, Any]]:
    """The code attempts of a run."""
    columns = ("key", "branch", "worktree_path", "base_commit")
    with scheduler.database.snapshot() as snapshot:
        rows = snapshot.all(
            f"SELECT {', '.join(columns)} FROM attempt JOIN task ON task.id = task_id"
            " WHERE attempt.run_id = ? AND branch IS NOT NULL",
            (scheduler.run(run).id,),
        )
    return [dict(zip(columns, row, strict=True)) for row in rows]
