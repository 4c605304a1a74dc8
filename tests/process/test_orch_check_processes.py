"""Checks as real processes of real leaders: run once, ended with their leader, taken over."""

import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch.attempts import stop
from inbox_orch.orch.gates.running import GRACE_SECONDS
from inbox_orch.orch.runs.model import Limits
from inbox_orch.shared.processes import processes
from support.commands import command_path
from support.orch_matrix import Enterprise, the_run
from support.processes import linger, until
from support.runs import add_task, commit
from support.timing import PATIENCE_SECONDS, promptly

# Of a wait that is to end while a check runs; a busy machine may need the longer ones to begin it.
SHORT_SECONDS = (3, 3, 3, 30)


class Gate:
    """A check that tells when it begins and goes on when it is let through."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.began, self.go, self.together = folder / "began", folder / "go", folder / "together"

    @property
    def command(self) -> str:
        """Notes the number of its shell, and whether one that began before still lives: the
        command line of a zombie is empty (proc_pid_cmdline(5))."""
        return (
            f"for other in $(cat '{self.began}' 2>/dev/null); do"
            f' test -z "$(tr -d "\\0" 2>/dev/null </proc/$other/cmdline)"'
            f" || echo two >>'{self.together}'; done; "
            f"echo $$ >>'{self.began}'; while ! test -e '{self.go}'; do sleep 0.02; done"
        )

    @property
    def beginnings(self) -> list[int]:
        """The shells that have begun."""
        return [int(word) for word in self.began.read_text().split()] if self.is_begun else []

    @property
    def is_begun(self) -> bool:
        """Whether any has."""
        return self.began.exists() and self.began.read_text().endswith("\n")

    def open(self) -> None:
        """Let everyone through."""
        self.go.touch()


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    """A repository with a database."""
    return Enterprise(tmp_path / "project")


@pytest.fixture
def gate(tmp_path: Path) -> Iterator[Gate]:
    """A gate that never stays shut."""
    made = Gate(tmp_path / "gate")
    yield made
    made.open()


def submit(project: Enterprise, *checks: str, keys: tuple[str, ...] = ("a",), **options: Any):
    """Tasks with these checks, done with a commit."""
    name = project.open_run()
    with project.scheduler() as scheduler:
        run = scheduler.run(name)
        for key in keys:
            add_task(scheduler, run, key_name=key, title="T", checks=checks, **options)
        items = scheduler.dispatch(run).items
    with project.bus("w1") as bus:
        for item in items:
            token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
            commit(item["worktree"], f"{item['key']}.txt", "text")
            bus.done(item["thread"], str(token), body="done")


def start(project: Enterprise, *arguments: str) -> "subprocess.Popen[bytes]":
    """An `orch --json` that goes on."""
    return subprocess.Popen(
        [command_path("orch"), *arguments, "--json"],
        cwd=project.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def ended(process: "subprocess.Popen[bytes]", code: int = 0) -> dict[str, Any]:
    """Its one JSON value."""
    out, error = process.communicate(timeout=PATIENCE_SECONDS)
    assert process.returncode == code, (process.args, process.returncode, out, error)
    assert b"Traceback" not in error
    value: dict[str, Any] = json.loads(out)
    return value


def wait_that_checks(project: Enterprise, gate: Gate) -> tuple["subprocess.Popen[bytes]", float]:
    """A short wait whose check has begun, and how long it is."""
    for seconds in SHORT_SECONDS:
        waiting = start(project, "wait", "--until", "task:a", "--wait", str(seconds))
        until(lambda waiting=waiting: gate.is_begun or waiting.poll() is not None)
        if gate.is_begun:
            return waiting, seconds
        waiting.communicate()
    raise AssertionError("the check never began before the end of the wait")


def attempt(project: Enterprise, key: str = "a") -> Any:
    """The newest attempt of a task, as it is stored."""
    with project.scheduler() as scheduler:
        rows = scheduler.status(the_run(scheduler)).rows
        return next(row.attempt for row in rows if row.standing.task.key == key)


def task(project: Enterprise) -> Any:
    """Task `a` as it is stored."""
    with project.scheduler() as scheduler:
        return scheduler.status(the_run(scheduler)).rows[0].standing.task


def is_gone(group: int) -> bool:
    return processes.start_time(group) is None


def problems(project: Enterprise) -> int:
    with project.scheduler() as scheduler:
        return scheduler.doctor(verify=True).problems


def test_eight_leaders_at_once_run_each_check_once(project: Enterprise, tmp_path: Path):
    submit(project, f"echo $ORCH_TASK >>'{tmp_path}/ran'", keys=("a", "b", "c"))

    done = [ended(p)["data"] for p in [start(project, "reconcile") for _ in range(8)]]

    assert sorted((tmp_path / "ran").read_text().split()) == ["a", "b", "c"]
    assert sum(data["verified"] for data in done) == 3
    assert problems(project) == 0


def test_while_one_leader_runs_a_check_another_neither_blocks_nor_spins(
    project: Enterprise, gate: Gate
):
    submit(project, gate.command)
    verifier = start(project, "reconcile")
    until(lambda: gate.is_begun)

    other = start(project, "wait", "--until", "task:a", "--wait", "3")
    out = other.stdout.read()
    _, status, usage = os.wait4(other.pid, 0)
    other.returncode = os.waitstatus_to_exitcode(status)
    other.stdout.close()
    other.stderr.close()
    assert (other.returncode, json.loads(out)["error"]["code"]) == (8, "timeout")
    looking = start(project, "reconcile")
    assert ended(looking)["data"]["verified"] == 0
    patient = start(project, "wait", "--until", "task:a", "--wait", "60")
    gate.open()

    assert ended(verifier)["data"]["verified"] == 1
    assert ended(patient)["ok"] is True
    assert len(gate.beginnings) == 1
    assert usage.ru_utime + usage.ru_stime < 2, "most of that is the start of the command"


def test_a_check_ends_when_its_leader_is_killed_and_another_leader_takes_over(
    project: Enterprise, gate: Gate
):
    submit(project, gate.command)
    verifier = start(project, "reconcile")
    until(lambda: gate.is_begun)
    (first,) = gate.beginnings
    patient = start(project, "wait", "--until", "task:a", "--wait", "60")
    verifier.kill()
    verifier.communicate()

    until(lambda: is_gone(first))
    until(lambda: len(gate.beginnings) == 2)
    gate.open()

    assert ended(patient)["ok"] is True
    assert not gate.together.exists(), "never two in one worktree"
    assert attempt(project).state == "succeeded"
    assert (task(project).work_failures, task(project).attempts) == (0, 1)
    assert problems(project) == 0


def test_checks_that_have_passed_before_a_kill_are_not_run_again(
    project: Enterprise, gate: Gate, tmp_path: Path
):
    submit(project, f"echo ran >>'{tmp_path}/first'; echo dirt >dirt.txt", gate.command)
    verifier = start(project, "reconcile")
    until(lambda: gate.is_begun)
    verifier.kill()
    verifier.communicate()
    gate.open()

    assert ended(start(project, "reconcile"))["data"]["verified"] == 1

    assert (tmp_path / "first").read_text() == "ran\n"
    assert attempt(project).state == "succeeded", "the check's dirt is not the worker's"


@pytest.mark.parametrize(
    "number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"]
)
@pytest.mark.parametrize("command", ["reconcile", "wait"])
def test_a_signal_ends_the_check_and_puts_the_attempt_back(
    project: Enterprise, gate: Gate, number: signal.Signals, code: int, command: str
):
    submit(project, gate.command)
    arguments = ("wait", "--until", "run") if command == "wait" else ("reconcile",)
    verifier = start(project, *arguments)
    until(lambda: gate.is_begun)
    (first,) = gate.beginnings

    verifier.send_signal(number)

    ended(verifier, code)
    assert is_gone(first)
    stored = attempt(project)
    assert stored.state == "submitted"
    assert (task(project).state, task(project).work_failures) == ("active", 0)
    gate.open()
    assert ended(start(project, "reconcile"))["data"]["verified"] == 1
    assert problems(project) == 0


def test_a_check_that_ignores_the_end_is_killed_at_the_second_signal(
    project: Enterprise, gate: Gate
):
    submit(project, f"trap '' TERM; echo $$ >'{gate.began}'; sleep 600")

    def trial() -> float:
        gate.began.unlink(missing_ok=True)
        verifier = start(project, "reconcile")
        until(lambda: gate.is_begun)
        (first,) = gate.beginnings
        began = time.monotonic()
        # Two different ones: the same one twice may be heard as one (signal(7)).
        verifier.send_signal(signal.SIGINT)
        verifier.send_signal(signal.SIGTERM)
        verifier.communicate(timeout=PATIENCE_SECONDS)
        seconds = time.monotonic() - began
        assert verifier.returncode in (130, 143)
        assert is_gone(first)
        assert attempt(project).state == "submitted"
        return seconds

    promptly(trial, within=GRACE_SECONDS - 1)


def test_a_check_that_has_begun_is_not_cut_by_the_wait(project: Enterprise, gate: Gate):
    submit(project, gate.command)
    waiting, seconds = wait_that_checks(project, gate)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(seconds + 0.5)
    gate.open()

    value = ended(waiting)

    assert value["data"]["overrun_seconds"] > 0.3
    assert attempt(project).state == "succeeded"


def test_no_other_check_starts_once_the_wait_is_over(
    project: Enterprise, gate: Gate, tmp_path: Path
):
    submit(project, gate.command, f"echo ran >>'{tmp_path}/second'")
    waiting, seconds = wait_that_checks(project, gate)
    with pytest.raises(subprocess.TimeoutExpired):
        waiting.wait(seconds + 0.5)
    gate.open()

    value = ended(waiting, 8)

    assert value["data"]["overrun_seconds"] > 0
    assert not (tmp_path / "second").exists()
    assert attempt(project).state == "submitted"
    assert ended(start(project, "wait", "--until", "task:a"))["ok"] is True
    assert len(gate.beginnings) == 1, "what has passed is not run again"
    assert (tmp_path / "second").read_text() == "ran\n"


def test_a_check_reaches_its_own_limit_whatever_the_wait_says(project: Enterprise, gate: Gate):
    limits = Limits(check_seconds=SHORT_SECONDS[0] + 1)
    command = f"echo $$ >>'{gate.began}'; sleep 600"
    submit(project, command, limits=limits, max_attempts=1)

    value = ended(wait_that_checks(project, gate)[0], 11)

    assert value["data"]["overrun_seconds"] > 0.3
    assert "its time limit" in attempt(project).reason


@pytest.mark.parametrize("command", [("wait", "--wait", "0.2", "--until", "run"), ("reconcile",)])
def test_no_verify_leaves_the_checks_to_others(
    project: Enterprise, gate: Gate, command: tuple[str, ...]
):
    submit(project, gate.command)

    ended(start(project, *command, "--no-verify"), 8 if "wait" in command else 0)

    assert not gate.is_begun
    assert attempt(project).state == "submitted"


def test_a_cancelled_attempt_does_not_go_on_being_checked(project: Enterprise, gate: Gate):
    submit(project, gate.command)
    verifier = start(project, "reconcile")
    until(lambda: gate.is_begun)
    (first,) = gate.beginnings
    with project.scheduler() as scheduler, scheduler.database.transaction() as tx:
        run = the_run(scheduler)
        stop.stop(
            scheduler.desk,
            tx,
            run,
            scheduler.status(run).rows[0].attempt,
            stop.Stop("cancelled", "not wanted"),
        )

    assert ended(verifier)["data"]["verified"] == 0
    assert is_gone(first)
    assert ended(start(project, "reconcile"))["ok"] is True
    assert attempt(project).state == "cancelled"
    assert problems(project) == 0


@pytest.mark.parametrize("seed", range(3))
def test_two_leaders_verify_one_run_while_one_after_the_other_is_killed(
    project: Enterprise, tmp_path: Path, seed: int
):
    chance, keys = random.Random(seed), ("a", "b", "c", "d")
    ran = tmp_path / "ran"
    submit(
        project, f"echo $ORCH_TASK >>'{ran}'; sleep 0.2; echo end-$ORCH_TASK >>'{ran}'", keys=keys
    )
    arguments = ("wait", "--until", "run", "--wait", "60")
    leaders = [start(project, *arguments) for _ in range(2)]
    for _ in range(4):
        linger(chance.uniform(0.3, 1.0))
        killed = leaders.pop(0)
        killed.kill()
        killed.communicate()
        leaders.append(start(project, *arguments))

    assert all(ended(leader)["ok"] for leader in leaders)

    with project.scheduler() as scheduler:
        rows = scheduler.status(the_run(scheduler)).rows
        tasks = [row.standing.task for row in rows]
    assert {t.state for t in tasks} == {"succeeded"}
    assert [(t.attempts, t.work_failures, t.infra_failures) for t in tasks] == [(1, 0, 0)] * 4
    assert {row.attempt.id for row in rows} == {t.accepted_attempt for t in tasks}
    words = ran.read_text().split()
    assert {word for word in words if word.startswith("end-")} == {f"end-{key}" for key in keys}
    assert problems(project) == 0


@pytest.mark.parametrize("terminal", ["", "1"], ids=["pipe", "terminal"])
def test_a_person_sees_which_check_failed_and_how(project: Enterprise, terminal: str):
    submit(project, "true", r"printf 'one\n\033[31mtwo\n'; exit 7")
    ended(start(project, "reconcile"))

    text = project.orch("attempt", "show", "a", FORCE_COLOR=terminal, COLUMNS="200").text

    assert "ended with exit status 0" in text
    assert "exit 7` ended with exit status 7" in text
    assert "one" in text
    assert "two" in text
    assert "\033[31mtwo" not in text, "escape sequences of a check are not passed on"


def test_an_adoption_that_is_killed_leaves_nothing_behind(project: Enterprise, gate: Gate):
    submit(project, f"test -e '{gate.go}'", gate.command, max_attempts=1)
    ended(start(project, "reconcile"))
    stored = attempt(project)
    assert stored.state == "rejected"
    subprocess.run(
        ["git", "worktree", "remove", "-f", "-f", stored.worktree_path],
        cwd=project.folder,
        check=True,
    )
    gate.open()
    until_begun = f"touch '{gate.go}.open'; sleep 600"
    with project.scheduler() as scheduler, scheduler.database.transaction() as tx:
        checks = json.dumps([f"echo $$ >'{gate.began}'; {until_begun}"])
        tx.run("UPDATE task SET checks = ?", (checks,))
    adopting = start(project, "adopt", "a")
    until(lambda: gate.is_begun)
    (shell,) = gate.beginnings
    assert Path(f"{stored.worktree_path}.adopt").is_dir()
    adopting.kill()
    adopting.communicate()

    assert ended(start(project, "reconcile"))["data"]["finished_intents"] == 1

    assert is_gone(shell)
    assert not Path(f"{stored.worktree_path}.adopt").exists()
    listed = subprocess.check_output(["git", "worktree", "list"], cwd=project.folder)
    assert len(listed.splitlines()) == 1
    assert task(project).state == "failed"
    assert ended(start(project, "adopt", "a", "--no-checks"))["ok"] is True
    assert problems(project) == 0
