"""Cancelling, clocks and edges with real processes: who learns of it, and when."""

import subprocess
from pathlib import Path

import pytest

from support.commands import command_path
from support.orch_matrix import Enterprise
from support.processes import until
from support.timing import PATIENCE_SECONDS


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    """A repository with a database."""
    return Enterprise(tmp_path / "project")


def orch(project: Enterprise, *arguments: str, code: int = 0):
    ended = project.orch(*arguments, "--json")
    assert ended.code == code, ended
    return ended.value


def worker(project: Enterprise, script: str) -> "subprocess.Popen[bytes]":
    """`inbox work` with a shell command, once."""
    return subprocess.Popen(
        [
            *(command_path("inbox"), "work", "--agent", "w1", "--mailbox", "workers", "--once"),
            *("--", "sh", "-c", script),
        ],
        cwd=project.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def test_a_cancelled_worker_that_ignores_term_is_killed_and_its_slot_is_free(
    project: Enterprise, tmp_path: Path
):
    orch(project, "run", "init", "--title", "T", "--max-parallel", "1")
    for key in ("a", "b"):
        orch(project, "task", "add", "--task", key, "--title", key)
    orch(project, "dispatch")
    begun = tmp_path / "begun"
    working = worker(project, f"trap '' TERM; echo $$ > '{begun}'; while :; do sleep 1; done")
    try:
        until(lambda: begun.exists() and begun.read_text().strip())

        orch(project, "cancel", "a")
        value = orch(project, "wait", "--until", "task:a", "--wait", "50", code=11)

        assert value["error"]["code"] == "run_unsuccessful"
        items = orch(project, "dispatch")["data"]["items"]
        assert [item["key"] for item in items] == ["b"]
        working.wait(PATIENCE_SECONDS)
        group = int(begun.read_text())
        until(lambda: not Path(f"/proc/{group}").exists())
    finally:
        working.kill()
        working.communicate(timeout=PATIENCE_SECONDS)


def test_a_wait_wakes_when_a_clock_runs_out(project: Enterprise):
    orch(project, "run", "init", "--title", "T")
    line = ("task", "add", "--task", "a", "--title", "A", "--max-attempts", "1")
    orch(project, *line, "--queue-timeout", "2")
    orch(project, "dispatch")

    value = orch(project, "wait", "--until", "run", "--wait", "inf", code=11)

    assert value["data"]["outcome"] == "failed"
    [attempt] = orch(project, "task", "show", "a")["data"]["attempts"]
    assert (attempt["state"], attempt["clock"]) == ("timed_out", "queue")


def test_of_two_halves_of_a_cycle_added_at_once_one_wins(project: Enterprise):
    orch(project, "run", "init", "--title", "T")
    for key in ("a", "b"):
        orch(project, "task", "add", "--task", key, "--title", key)

    for _ in range(3):
        halves = [
            subprocess.Popen(
                [command_path("orch"), "dep", "add", task, "--on", upstream],
                cwd=project.folder,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for task, upstream in (("a", "b"), ("b", "a"))
        ]
        codes = [half.wait(PATIENCE_SECONDS) for half in halves]

        assert sorted(codes) == [0, 4]
        won = ("a", "b") if codes[0] == 0 else ("b", "a")
        orch(project, "dep", "remove", won[0], "--on", won[1])
    orch(project, "doctor", "--verify")


def test_the_status_says_why_an_attempt_is_ending(project: Enterprise):
    project.running()
    orch(project, "cancel", "a")

    [row] = [line.split("\t") for line in project.orch("status").text.splitlines()[1:]]

    assert (row[0], row[1], row[-1]) == ("a", "ending", "cancelled by the leader")
