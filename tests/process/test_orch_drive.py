"""`orch drive` as a process: its stream, its waking, its end; leaders that die beside others."""

import contextlib
import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch import schemas
from inbox_orch.orch.runs.config import Config, Setup
from support.commands import command_path
from support.contracts import validated
from support.orch_matrix import Enterprise, the_run
from support.processes import until, until_idle, usage
from support.runs import add_task, commit
from support.timing import PATIENCE_SECONDS


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    """A repository with a database."""
    return Enterprise(tmp_path / "project")


class Drive:
    """A drive that goes on, line by line."""

    def __init__(self, project: Enterprise, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [command_path("orch"), "drive", "--json", *arguments],
            cwd=project.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._heard = b""

    def next(self) -> dict[str, Any]:
        """Its next line, held against the models."""
        assert self.process.stdout is not None
        deadline = time.monotonic() + PATIENCE_SECONDS
        while b"\n" not in self._heard:
            left = max(0.0, deadline - time.monotonic())
            assert select.select([self.process.stdout], [], [], left)[0], "it says nothing"
            chunk = os.read(self.process.stdout.fileno(), 65536)
            assert chunk, self.process.communicate()
            self._heard += chunk
        line, self._heard = self._heard.split(b"\n", 1)
        validated("drive", line, schemas.COMMANDS)
        value = json.loads(line)
        assert isinstance(value, dict)
        return value

    def until(self, kind: str, key: str | None = None) -> dict[str, Any]:
        """The next line of that type, or change of that kind."""
        while True:
            line = self.next()
            if kind in (line["type"], line.get("kind")) and key in (None, line.get("key")):
                return line

    def stop(self, number: int = signal.SIGINT) -> tuple[int, bytes]:
        """Send it a signal; its exit code, and what it said last."""
        self.process.send_signal(number)
        _, error = self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode, error

    def end(self) -> int:
        """Its exit code, once it has ended."""
        self.process.communicate(timeout=PATIENCE_SECONDS)
        return self.process.returncode


@contextlib.contextmanager
def driving(project: Enterprise, *arguments: str) -> Iterator[Drive]:
    """A drive that is gone at the end of the block."""
    drive = Drive(project, *arguments)
    try:
        yield drive
    finally:
        if drive.process.poll() is None:
            drive.process.kill()
        drive.process.communicate()


def act(project: Enterprise, item: dict[str, Any], verb: str, **options: Any) -> None:
    """A worker claims, and ends."""
    with project.bus("w1") as bus:
        token = bus.claim(item["thread"], mailboxes=[item["mailbox"]]).lease.token
        if verb == "done" and item["worktree"] is not None:
            commit(item["worktree"], f"{item['key']}.txt", item["key"])
        getattr(bus, verb)(item["thread"], str(token), **{"body": "body", **options})


def facts(project: Enterprise, query: str) -> list[Any]:
    """The first column of what a query gives."""
    with project.scheduler() as scheduler, scheduler.database.snapshot() as snapshot:
        return [row[0] for row in snapshot.all(query)]


# -- the stream ------------------------------------------------------------------------------


def test_each_line_comes_as_it_happens_and_the_last_is_the_outcome(project: Enterprise):
    project.tasks("a", "b")
    with driving(project) as drive:
        first = drive.until("dispatched")
        assert first["key"] == "a"
        act(project, first, "ask", options=["this"])
        assert drive.until("question")["message"]["options"] == ["this"]
        last = drive.until("outcome")
        assert (last["ok"], last["error"]["code"]) == (False, "needs_decision")
        assert drive.end() == 11


def test_the_last_line_has_how_every_task_ended(project: Enterprise):
    project.tasks("a", "b")
    with driving(project, "--wait", "50") as drive:
        act(project, drive.until("dispatched", "a"), "done")
        act(project, drive.until("dispatched", "b"), "done")
        last = drive.until("outcome")
        assert (last["ok"], last["data"]["counts"]) == (True, {"succeeded": 2})
        assert drive.end() == 0


def test_a_failure_half_way_is_the_last_line_too(project: Enterprise):
    project.tasks("a")
    with driving(project, "--wait", "50") as drive:
        item = drive.until("dispatched", "a")
        (project.folder / "README.md").write_text("changed")
        with project.scheduler() as scheduler:
            add_task(scheduler, the_run(scheduler), key_name="b", title="B")
        assert drive.until("notice")["code"] == "dirty_repository"
        act(project, item, "done")
        last = drive.until("outcome")
        assert last["error"]["code"] == "dirty_repository"
        assert drive.end() == 9


def test_a_pipe_gets_a_short_line_for_each_thing_that_happened(project: Enterprise):
    project.tasks("a")
    project.orch("task", "add", "--task", "b", "--title", "Do b", "--max-attempts", "1")
    worker = "case $PWD in *a-1) echo 1 > one ;; *) echo Boom >&2; exit 1 ;; esac"

    ended = project.orch("drive", "--worker", worker, "--to", "w", "--slots", "2")

    assert ended.code == 11, ended
    lines = [line.split("\t") for line in ended.stdout.decode().splitlines()]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line[0]) for line in lines)
    assert [tuple(line[1:]) for line in lines if line[1] == "a"] == [
        ("a", "dispatched", "attempt 1 is with `w`"),
        ("a", "attempt_submitted", "attempt 1 was handed in"),
        ("a", "task_succeeded", "succeeded"),
    ]
    begun, failed = [tuple(line[2:]) for line in lines if line[1] == "b"]
    assert begun == ("dispatched", "attempt 1 is with `w`")
    assert failed[0] == "task_failed", "that its attempt failed is told with it"
    assert failed[1].startswith("failed for good: attempt 1 failed: ")
    (last,) = (line for line in lines if line[1] == "")
    assert last == lines[-1]
    assert (last[2], last[3].split(": ")[1]) == ("outcome", "partial. 1 succeeded, 1 failed")
    assert max(map(len, ended.stdout.splitlines())) < 400
    assert b"hint: `orch status` shows" in ended.stderr


def test_a_failure_in_a_pipe_is_told_where_every_failure_is(project: Enterprise):
    project.tasks("a")
    (project.folder / "README.md").write_text("changed")

    ended = project.orch("drive")

    assert (ended.code, ended.stdout.count(b"\n")) == (9, 1)
    assert b"\toutcome\t" in ended.stdout
    assert b"hint: commit them" in ended.stderr


# -- waking ----------------------------------------------------------------------------------


def test_it_wakes_when_a_back_off_is_over(project: Enterprise):
    project.tasks("a")
    with driving(project, "--wait", "50") as drive:
        act(project, drive.until("dispatched"), "fail")
        again = drive.until("dispatched")
    assert again["number"] == 2
    due, begun = facts(
        project,
        "SELECT at FROM event WHERE kind IN ('task_pending', 'attempt_allocating')"
        " ORDER BY seq DESC LIMIT 2",
    )[::-1]
    assert 900 <= begun - due <= 45_000, "a back-off of 1 to 2 seconds, and not the end of the wait"


def test_it_takes_up_what_a_leader_that_was_killed_had_begun(project: Enterprise):
    """Nobody tells of a death: the other leader has to look by itself."""
    started = project.folder.parent / "started"
    endless_at_first = f"[ -e '{started}' ] || {{ touch '{started}'; exec sleep 600; }}"
    name = project.open_run(config=Config(setup=Setup(endless_at_first)))
    with project.scheduler() as scheduler:
        add_task(scheduler, scheduler.run(name), key_name="a", title="Do a")
    with driving(project) as killed, driving(project) as other:
        until(started.exists)
        until(lambda: list((project.path.parent / "bells").glob("_run-*/*")))
        (owner,) = facts(project, "SELECT owner_process FROM intent WHERE closed_at IS NULL")
        dying, left = (killed, other) if killed.process.pid == owner else (other, killed)
        dying.stop(signal.SIGKILL)
        item = left.until("dispatched")
        act(project, item, "done")
        assert left.until("outcome")["ok"]
        assert left.end() == 0


def test_an_idle_drive_costs_nothing(project: Enterprise):
    project.tasks("a", "b")
    with driving(project) as drive:
        drive.until("dispatched")
        until(lambda: list((project.path.parent / "bells").glob("_run-*/*")))
        until_idle(drive.process.pid)
        before = usage(drive.process.pid)
        time.sleep(4)  # the measurement itself
        spent = usage(drive.process.pid) - before
    assert spent.seconds <= 0.15
    assert spent.sleeps <= 60


# -- stopping --------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopping_it_changes_nothing_and_the_next_one_goes_on(project: Enterprise, number: int):
    project.tasks("a", "b")
    with driving(project) as drive:
        item = drive.until("dispatched")
        until(lambda: list((project.path.parent / "bells").glob("_run-*/*")))
        before = project.contents()
        code, error = drive.stop(number)
        assert (code, b"Traceback" in error) == (128 + number, False)
    assert project.contents() == before
    assert list((project.path.parent / "bells").glob("_run-*/*")) == []

    act(project, item, "done")
    with driving(project) as drive:
        assert drive.until("task_succeeded")["key"] == "a"
        act(project, drive.until("dispatched"), "done")
        assert drive.until("outcome")["ok"]


def test_where_nobody_reads_any_more_the_check_is_ended_and_put_back(project: Enterprise):
    name = project.open_run()
    with project.scheduler() as scheduler:
        for key in ("a", "b"):
            add_task(
                scheduler,
                scheduler.run(name),
                key_name=key,
                title=f"Do {key}",
                checks=(f"touch {project.folder}/begun; sleep 600",),
            )
    with driving(project) as drive:
        first, second = drive.until("dispatched"), drive.until("dispatched")
        act(project, first, "done")
        until((project.folder / "begun").exists)
        assert drive.process.stdout is not None
        drive.process.stdout.close()
        act(project, second, "done")  # there is something to tell again
        assert drive.process.wait(PATIENCE_SECONDS) == 141
        assert drive.process.stderr is not None
        assert drive.process.stderr.read() == b""
        drive.process.stdout = None
    assert facts(project, "SELECT DISTINCT state FROM attempt") == ["submitted"]


# -- a terminal ------------------------------------------------------------------------------


def watched(project: Enterprise, **environment: str) -> str:
    """What a drive of two tasks sends to a terminal."""
    project.tasks("a", "b")
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [command_path("orch"), "drive", "--wait", "50"],
        cwd=project.folder,
        env={**os.environ, "TERM": "xterm-256color", **environment},
        stdin=slave,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    for key in ("a", "b"):
        query = f"SELECT thread_id FROM attempt JOIN task ON task.id = task_id WHERE key = '{key}'"
        until(lambda query=query: any(facts(project, query)))
        thread = facts(project, query)[0]
        path = facts(project, f"SELECT worktree_path FROM attempt WHERE thread_id = '{thread}'")[0]
        item = {"thread": thread, "mailbox": "workers", "worktree": path, "key": key}
        act(project, item, "done")
    text = b""
    with contextlib.suppress(OSError):  # how Linux says that the last writer has gone
        while chunk := os.read(master, 65536):
            text += chunk
    os.close(master)
    assert process.wait(PATIENCE_SECONDS) == 0
    return text.decode()


def test_a_terminal_shows_lines_above_a_picture_that_is_drawn_anew(project: Enterprise):
    text = watched(project)

    assert "\x1b[F\x1b[2K" in text
    assert "\x1b[J" not in text, "a terminal may keep a screen that is erased whole"
    assert "of 2 finished" in text
    assert text.index("a  succeeded") < text.rindex("2 succeeded")
    assert "\x1b[?25l" not in text, "the cursor stays, also when it is killed"
    assert "{" not in text


def test_a_terminal_that_knows_no_more_gets_plain_lines(project: Enterprise):
    text = watched(project, TERM="dumb")

    assert "\x1b" not in text
    assert "attempt 1 is with `workers`" in text
    assert "2 succeeded" in text


def test_whoever_refuses_colours_gets_no_escape_sequence_at_all(project: Enterprise):
    text = watched(project, NO_COLOR="1")

    assert "\x1b" not in text
    assert "attempt 1 is with `workers`" in text
