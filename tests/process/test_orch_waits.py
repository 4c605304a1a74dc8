"""`orch wait`: what it ends with, what it tells once, and that it costs nothing while it waits."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch import schemas
from sqlite import outside
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


def wait(project: Enterprise, *arguments: str, code: int = 0, **options: Any) -> dict[str, Any]:
    """`orch wait --json` to its end; the whole value."""
    ended = project.orch("wait", *arguments, "--json", **options)
    assert ended.code == code, ended
    validated("wait", ended.stdout, schemas.COMMANDS)
    return ended.value


def dispatch(project: Enterprise, *keys: str) -> dict[str, dict[str, Any]]:
    with project.scheduler() as scheduler:
        done = scheduler.dispatch(the_run(scheduler), task_names=keys)
        return {item["key"]: item for item in done.items}


def act(project: Enterprise, item: dict[str, Any], verb: str, **options: Any) -> None:
    """A worker claims, and ends."""
    with project.bus("w1") as bus:
        token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
        if verb == "done":
            commit(item["worktree"], "file.txt", item["key"])
        getattr(bus, verb)(item["thread"], str(token), body="body", **options)


def start(project: Enterprise, *arguments: str) -> "subprocess.Popen[bytes]":
    """A wait that goes on."""
    return subprocess.Popen(
        [command_path("orch"), "wait", *arguments, "--json"],
        cwd=project.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def until_armed(project: Enterprise) -> None:
    """Until a bell hangs for the run: the wait has begun."""
    bells = project.path.parent / "bells"
    until(lambda: any(bells.glob("_run-*/*")))


def ended(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    out, error = process.communicate(timeout=PATIENCE_SECONDS)
    assert b"Traceback" not in error
    return json.loads(out)


# -- change ----------------------------------------------------------------------------------


def test_a_change_is_told_once(project: Enterprise):
    project.tasks("a", "b")
    act(project, dispatch(project, "a")["a"], "done")

    told = wait(project, "--wait", "20")["data"]
    assert [c["kind"] for c in told["items"]][-1] == "task_succeeded"
    assert {c["key"] for c in told["items"]} == {"a"}
    assert wait(project, "--wait", "0", code=8)["data"]["next_cursor"] == told["next_cursor"]


def test_each_agent_is_told_and_a_cursor_by_hand_moves_none(project: Enterprise):
    project.tasks("a", "b")
    act(project, dispatch(project, "a")["a"], "done")

    first = wait(project, "--after", "0", "--wait", "20")["data"]
    again = wait(project, "--after", "0", "--wait", "20")["data"]
    assert first["items"] == again["items"]
    assert wait(project, "--wait", "20", "--agent", "helper")["data"]["items"] == first["items"]
    wait(project, "--wait", "0", "--agent", "helper", code=8)
    assert wait(project, "--wait", "20")["data"]["items"] == first["items"]


def test_a_change_that_could_not_be_told_is_told_again(project: Enterprise):
    project.tasks("a", "b")
    act(project, dispatch(project, "a")["a"], "done")

    unread = project.orch("wait", "--wait", "20", "--json", closed=(1,))
    assert unread.code == 1
    assert wait(project, "--wait", "20")["data"]["items"]


@pytest.mark.parametrize("after", ["x", "-1", "1.5", "", "9" * 19])
def test_a_cursor_that_is_none_is_a_wrong_call(project: Enterprise, after: str):
    project.tasks("a")
    assert wait(project, "--after", after, code=2)["error"]["code"] == "usage"


def test_a_settled_run_is_told_at_once_instead_of_waited_for(project: Enterprise):
    project.tasks("a", "b")
    act(project, dispatch(project)["a"], "fail", fatal=True)
    wait(project, "--wait", "20")

    assert wait(project, "--wait", "20", code=11)["data"]["outcome"] == "failed"


def test_at_its_end_it_names_what_could_be_dispatched(project: Enterprise):
    project.tasks("a")

    value = wait(project, "--wait", "0", code=8)
    assert value["error"]["details"]["ready"] == ["a"]
    assert "orch dispatch" in value["error"]["hint"]


# -- blocked, run, task ----------------------------------------------------------------------


def test_blocked_gives_the_questions(project: Enterprise):
    project.asked()
    data = wait(project, "--until", "blocked", "--wait", "20")["data"]
    assert [q["message"]["body"] for q in data["questions"]] == ["which?"]


def test_blocked_with_none_left_is_as_the_run_has_ended(project: Enterprise):
    project.tasks("a")
    item = dispatch(project)["a"]
    wait(project, "--until", "blocked", "--wait", "0", code=8)
    act(project, item, "done")
    data = wait(project, "--until", "blocked", "--wait", "20")["data"]
    assert (data["outcome"], data["questions"]) == ("succeeded", [])


def test_blocked_ends_when_the_run_failed(project: Enterprise):
    project.tasks("a")
    act(project, dispatch(project)["a"], "fail", fatal=True)
    value = wait(project, "--until", "blocked", "--wait", "20", code=11)
    assert value["error"]["code"] == "run_unsuccessful"


@pytest.mark.parametrize("until_what", ["run", "task:a"])
def test_a_question_while_nothing_else_runs_needs_a_decision(project: Enterprise, until_what: str):
    project.asked()
    value = wait(project, "--until", until_what, "--wait", "20", code=11)
    assert value["error"]["code"] == "needs_decision"
    assert value["data"]["questions"][0]["key"] == "a"


@pytest.mark.parametrize("until_what", ["run", "blocked", "change", "task:c"])
def test_work_that_does_not_merge_needs_a_decision_and_names_the_way_out(
    project: Enterprise, until_what: str
):
    name = project.open_run()
    with project.scheduler() as scheduler:
        for key, upstream in (("a", ()), ("b", ()), ("c", ("a", "b"))):
            run = scheduler.run(name)
            add_task(scheduler, run, key_name=key, title=f"Do {key}", depends_on=upstream)
    for item in dispatch(project, "a", "b").values():
        act(project, item, "done")
    project.orch("drive", "--wait", "0")

    driven = project.orch("drive", "--until", until_what, "--json")
    value = wait(project, "--until", until_what, "--wait", "20", code=11)
    assert value["error"]["code"] == "needs_decision"
    assert "orch dispatch TASK --base COMMIT" in value["error"]["hint"]
    assert value["error"]["details"] == {"tasks": ["c"]}
    assert json.loads(driven.stdout.splitlines()[-1])["error"] == value["error"]


@pytest.mark.parametrize("until_what", ["run", "task:a"])
@pytest.mark.parametrize("verb, code", [("done", 0), ("fail", 11)])
def test_the_end_is_the_exit_code(project: Enterprise, until_what: str, verb: str, code: int):
    project.tasks("a")
    item = dispatch(project)["a"]
    wait(project, "--until", until_what, "--wait", "0", code=8)
    act(project, item, verb, **({"fatal": True} if verb == "fail" else {}))

    value = wait(project, "--until", until_what, "--wait", "20", code=code)
    if code:
        assert value["error"]["code"] == "run_unsuccessful"
        assert value["data"]["outcome"] == "failed"


def test_a_task_that_can_never_start_ends_the_wait_for_it(project: Enterprise):
    project.tasks("a", "b")
    act(project, dispatch(project)["a"], "fail", fatal=True)

    value = wait(project, "--until", "task:b", "--wait", "20", code=11)
    assert value["error"]["message"] == "b is unreachable"
    assert value["data"]["unreachable"] == ["b"]


# -- waking ----------------------------------------------------------------------------------


@pytest.mark.parametrize("doorbell", ["on", "off"])
def test_a_wait_wakes_when_a_worker_ends(project: Enterprise, doorbell: str, monkeypatch):
    project.tasks("a")
    item = dispatch(project)["a"]
    monkeypatch.setenv("INBOX_DOORBELL", doorbell)
    waiting = start(project, "--until", "run", "--wait", "inf")
    if doorbell == "on":
        until_armed(project)
    act(project, item, "done")

    assert ended(waiting)["data"]["outcome"] == "succeeded"


def test_a_lease_that_runs_out_wakes_the_wait(project: Enterprise):
    project.tasks("a")
    item = dispatch(project)["a"]
    with project.bus("w1") as bus:
        bus.claim(item["thread"], mailboxes=["workers"], lease_seconds=1)
    with project.scheduler() as scheduler:
        scheduler.reconcile(the_run(scheduler))
    waiting = start(project, "--until", "run", "--wait", "inf")
    # From outside: a look of ours would notice the expiry by itself.
    expired = "SELECT 1 FROM event WHERE kind = 'lease_expired' AND thread_id = ?"
    try:
        until(lambda: outside.rows(project.path, expired, (item["thread"],)))
    finally:
        waiting.kill()
        waiting.communicate(timeout=PATIENCE_SECONDS)


def test_the_end_of_a_cancelled_holders_lease_wakes_the_wait(project: Enterprise):
    """Long before the 60 s of grace: its worker has heard of nothing, and its lease is short."""
    project.tasks("a")
    item = dispatch(project, "a")["a"]
    with project.bus("w1") as bus:
        bus.claim(item["thread"], mailboxes=["workers"], lease_seconds=2)
    with project.bus("leader") as bus:
        bus.cancel(item["thread"])
    begun = time.monotonic()

    value = wait(project, "--until", "task:a", "--wait", "50", code=11)

    assert value["error"]["code"] == "run_unsuccessful"
    assert time.monotonic() - begun < 45


def test_an_idle_wait_costs_nothing_also_with_what_fell_due_long_ago(project: Enterprise):
    project.tasks("a", "b", "c")
    item = dispatch(project, "a")["a"]
    with project.scheduler() as scheduler:  # with nothing to dispatch the question would end it
        add_task(scheduler, the_run(scheduler), key_name="ready", title="To be dispatched")
    with project.bus("w1") as bus:
        token = bus.claim(item["thread"], mailboxes=["workers"], lease_seconds=1).lease.token
        bus.ask(item["thread"], str(token), body="which?")
    wait(project, "--wait", "20")
    waiting = start(project, "--wait", "50")
    until_armed(project)
    until_idle(waiting.pid)
    before = usage(waiting.pid)
    time.sleep(4)  # the measurement itself
    spent = usage(waiting.pid) - before
    waiting.send_signal(signal.SIGINT)
    waiting.communicate(timeout=PATIENCE_SECONDS)

    assert spent.seconds <= 0.1
    assert spent.sleeps <= 60, "about four looks at the clock a second"


@pytest.mark.parametrize(
    "number, code", [(signal.SIGINT, "interrupted"), (signal.SIGTERM, "terminated")]
)
def test_an_interrupted_wait_says_so_and_moves_nothing(project: Enterprise, number: int, code: str):
    project.tasks("a")
    dispatch(project)
    waiting = start(project, "--wait", "inf")
    until_armed(project)
    before = project.contents()
    waiting.send_signal(number)

    assert ended(waiting)["error"]["code"] == code
    assert waiting.returncode == 128 + number
    assert project.contents() == before
    assert list((project.path.parent / "bells").glob("_run-*/*")) == []
