"""`orch events`: what has happened in a run, from any point on, and as it happens."""

import json
import subprocess

import pytest

from inbox_orch.orch.leader.follow import events_of
from support.commands import command_path
from support.orch_matrix import Enterprise, orch_cells_council, the_run
from support.timing import PATIENCE_SECONDS


@pytest.fixture
def project(tmp_path) -> Enterprise:
    return Enterprise(tmp_path / "project").asked()


def told(project: Enterprise, *arguments: str) -> list[dict]:
    done = project.orch("events", *arguments, "--json")
    assert done.code == 0, done
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_event_of_the_run_is_told_and_the_rest_after_a_cursor(project: Enterprise):
    *lines, last = told(project)

    kinds = [line["kind"] for line in lines]
    assert kinds[0] == "run_open"
    assert kinds[-1] == "task_blocked"
    assert {line["key"] for line in lines} == {None, "a"}
    assert told(project, "--after", last["data"]["next_cursor"])[:-1] == []
    assert told(project, "--after", lines[-2]["id"])[:-1] == lines[-1:]
    assert [e["kind"] for e in told(project, "--kind", "task_blocked")[:-1]] == ["task_blocked"]

    line = project.orch("events", "--kind", "task_blocked").text.split("\t")
    assert line[2:5] == ["task_blocked", "a", "leader"]


def test_following_tells_what_comes_until_the_run_is_closed(project: Enterprise):
    line = [command_path("orch"), "events", "--follow", "--kind", "run_paused", "--json"]
    with subprocess.Popen(line, cwd=project.folder, stdout=subprocess.PIPE) as following:
        assert following.stdout is not None
        assert project.orch("run", "pause").code == 0
        assert json.loads(following.stdout.readline())["kind"] == "run_paused"
        with project.scheduler() as scheduler:
            scheduler.cancel_run(the_run(scheduler))
        (last,) = map(json.loads, ending(project, following))

    assert (last["type"], last["ok"]) == ("outcome", True)


def ending(project: Enterprise, following: subprocess.Popen[bytes]) -> list[bytes]:
    """Close the run once its attempt is gone; what is told after that."""
    with project.bus("w1") as bus:
        (thread,) = bus.list(states_wanted=["cancelled"]).items
        lease = bus.last_lease(thread.id)
        assert lease is not None
        with pytest.raises(Exception, match="cancelled"):
            bus.renew(thread.id, lease.token)
    assert project.orch("reconcile", "--run", "a-run").code == 0
    assert following.stdout is not None
    lines = following.stdout.readlines()
    assert following.wait(PATIENCE_SECONDS) == 0
    return lines


def test_a_bounded_follow_ends_with_its_cursor(project: Enterprise):
    *_, last = told(project, "--follow", "--wait", "0.05")

    assert last["data"]["next_cursor"] == told(project)[-1]["data"]["next_cursor"]


def test_a_reviewer_is_told_nothing_of_what_is_sealed_to_it(tmp_path):
    project = Enterprise(tmp_path / "project")
    orch_cells_council.opened(project)
    with project.scheduler() as scheduler:
        desk, run = scheduler.desk, scheduler.council(None)
        ((_, every),) = list(events_of(desk, run, after=None, kinds=(), seconds=0))
        desk.caller = "bob"
        ((_, seen),) = list(events_of(desk, run, after=None, kinds=(), seconds=0))

    def of_attempts(events):
        return [e for e in events if e.attempt_id is not None]

    assert len(of_attempts(seen)) < len(of_attempts(every))
