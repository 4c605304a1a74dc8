"""Several leaders at one council at once: everything happens once."""

import json
from pathlib import Path

import pytest

from inbox_orch.orch.council import count as council_counting
from support.chambers import BRIEF
from support.commands import command_path
from support.engines import looking
from support.orch_matrix import Enterprise, orch_cells_council
from support.processes import finish, start_json
from support.timing import PATIENCE_SECONDS

LEADERS = 6


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    return Enterprise(tmp_path / "project")


def at_once(project: Enterprise, *arguments: str) -> list[tuple[int, dict]]:
    """Exit codes and values of the same call by several processes."""
    processes = [
        start_json(command_path("orch"), *arguments, cwd=project.folder) for _ in range(LEADERS)
    ]
    ended = [process.communicate(timeout=PATIENCE_SECONDS)[0] for process in processes]
    return [(p.returncode, json.loads(out)) for p, out in zip(processes, ended, strict=True)]


def hand_in(project: Enterprise, reviewer: str, body: str) -> None:
    with project.bus(reviewer) as bus:
        claimed = bus.claim()
        bus.done(claimed.thread.id, str(claimed.lease.token), body=body)


def count(project: Enterprise, query: str) -> int:
    with project.bus("leader") as bus:
        return int(looking(bus.database).only(query)[0])


def test_leaders_that_look_at_once_send_one_repair_and_close_once(project: Enterprise):
    orch_cells_council.opened(project)
    for reviewer in ("ada", "bob"):
        hand_in(project, reviewer, "- [do] Enable WAL mode :: wal, sqlite, journal mode")
    hand_in(project, "eve", "{")

    looked = at_once(project, "council", "tally")

    assert {code for code, _ in looked} == {8}
    assert count(project, "SELECT count(*) FROM council_reply") == 3
    assert count(project, "SELECT count(*) FROM thread WHERE mailbox = 'eve'") == 2

    hand_in(project, "eve", "- [do] Turn WAL on :: wal, sqlite, journal mode")
    waited = at_once(project, "council", "wait", "--wait", "30")

    assert {code for code, _ in waited} == {0}
    assert count(project, "SELECT count(*) FROM event WHERE kind = 'round_closed'") == 1
    reported = at_once(project, "council", "report")
    assert len({value["data"]["artifact"]["thread"] for _, value in reported}) == 1
    assert len({value["data"]["text"] for _, value in reported}) == 1
    with project.scheduler() as scheduler:
        assert scheduler.doctor(verify=True).problems == 0


def test_a_start_that_is_called_at_once_with_one_key_asks_once(project: Enterprise):
    (project.folder / "brief.md").write_text(BRIEF)

    started = at_once(project, "council", "start", "--brief-file", "brief.md", "--key", "k")

    assert {code for code, _ in started} == {0}
    assert len({value["data"]["council"]["id"] for _, value in started}) == 1
    assert count(project, "SELECT count(*) FROM thread") == 3
    assert count(project, "SELECT count(*) FROM council") == 1


def test_settling_at_once_loses_none(project: Enterprise):
    orch_cells_council.counted(project)
    line = ("council", "group", "note", "ada/wal", "--body")
    processes = [
        start_json(command_path("orch"), *line, f"note {n}", cwd=project.folder)
        for n in range(LEADERS)
    ]
    assert [finish(process).exit_code for process in processes] == [0] * LEADERS

    with project.scheduler() as scheduler:
        overrides = council_counting.count(scheduler.desk, scheduler.council(None)).tally.overrides
    assert [o.number for o in overrides] == list(range(1, LEADERS + 1))
    assert {o.text for o in overrides} == {f"note {n}" for n in range(LEADERS)}
