"""`doctor`, `backup`, `export` and `prune` as commands."""

import json
import re

import pytest

from sqlite import outside
from support.commands import run


@pytest.fixture
def damaged(project):
    """A project in which a message is not what its event says."""
    project.send()
    outside.written(project.path, "UPDATE message SET body = 'changed'")
    return project


def test_doctor_on_a_sound_database_is_0_with_every_check(project):
    project.send()

    data = project.json("doctor", "--verify").data

    assert (data["verified"], data["problems"], data["warnings"]) == (True, 0, 0)
    assert data["newest_event"] == "1"
    assert {check["status"] for check in data["items"]} == {"ok"}
    assert len({check["name"] for check in data["items"]}) == len(data["items"])


def test_doctor_says_what_a_report_of_a_fault_needs(project):
    project.send()

    checks = {check["name"]: check["text"] for check in project.json("doctor").data["items"]}

    assert f"SQLite {outside.VERSION}" in checks["sqlite"]
    assert checks["gate"] == "free"
    assert re.fullmatch(r"the write-ahead log has \d+ bytes; oldest reader: .+", checks["log"])
    assert checks["filesystem"]
    assert checks["leases"] == "0 live"


def test_doctor_with_problems_is_11_with_the_whole_result_beside_the_error(damaged):
    outcome = damaged.json("doctor", "--verify")

    assert outcome.code == 11
    assert outcome.error["code"] == "problems_found"
    found = {check["name"]: check for check in outcome.value["data"]["items"]}
    assert found["log_messages"]["status"] == "problem"
    assert found["log_messages"]["total"] == 1


def test_doctor_tells_people_the_same(damaged):
    outcome = damaged.run("doctor", "--verify")

    assert outcome.code == 11
    assert b"log_messages\tproblem\t1 found\n" in outcome.stdout
    assert b"does not match its digest" in outcome.stdout
    assert b"1 of 23 checks found a problem" in outcome.stderr


def test_doctor_on_a_terminal_fits_80_columns(damaged):
    outcome = damaged.run("doctor", "--verify", FORCE_COLOR="1", NO_COLOR="1", COLUMNS="80")

    assert max(len(line) for line in outcome.stdout.decode().splitlines()) <= 80


def test_doctor_of_a_file_that_is_no_database_says_how_to_read_it_out(tmp_path):
    (tmp_path / "bus.db").write_bytes(b"SQLite format 3\0" + b"\xff" * 5000)

    outcome = run("--json", "doctor", "--db", str(tmp_path / "bus.db"))

    assert (outcome.code, outcome.error["code"]) == (6, "corrupt")
    assert ".recover" in outcome.error["hint"]
    assert outcome.error["details"]["findings"]


def test_backup_writes_the_file_and_refuses_to_replace_it(project, tmp_path):
    thread = project.send()
    target = str(tmp_path / "copy.db")

    data = project.json("backup", target).data
    again = project.json("backup", target)

    assert (data["path"], data["newest_event"], data["artifacts"]) == (target, "1", None)
    assert (again.code, again.error["code"]) == (9, "file_exists")
    assert "--force" in again.error["hint"]
    assert project.json("backup", "--force", target).data["path"] == target
    listed = run("--json", "list", "--db", target).data["items"]
    assert [item["id"] for item in listed] == [thread]


def test_backup_tells_a_pipe_path_bytes_digest_and_event(project, tmp_path):
    target = str(tmp_path / "copy.db")
    path, size, digest, event = project.run("backup", target).text.rstrip("\n").split("\t")

    assert (path, event) == (target, "0")
    assert int(size) == (tmp_path / "copy.db").stat().st_size
    assert len(digest) == 64


@pytest.mark.parametrize("flags", [(), ("--json",)])
def test_export_is_json_lines_that_end_with_the_counts(project, flags):
    project.send(body="x" * 10_000)

    lines = [json.loads(line) for line in project.run("export", *flags).text.splitlines()]

    assert lines[-1] == {
        "type": "end",
        "counts": {"meta": 1, "thread": 1, "message": 1, "event": 1},
    }
    assert lines[2]["body"] == "x" * 10_000


def test_prune_takes_decimal_days_and_says_what_went(project):
    project.claim()
    with project.bus("leader") as bus:
        bus.cancel(bus.list().items[0].id, body="enough")

    assert project.json("prune", "--older-than", "0.5").data["threads"] == 0
    assert project.json("prune", "--older-than", "0", "--dry-run").data["threads"] == 1
    data = project.json("prune", "--older-than", "0").data
    assert (data["dry_run"], data["threads"], data["messages"]) == (False, 1, 2)
    assert "threads\t0\n" in project.run("prune", "--older-than", "0").text


def test_prune_without_an_age_is_a_wrong_call(project):
    assert project.json("prune").error["code"] == "usage"


def test_hot_commands_do_not_load_what_looks_after_the_database(project):
    code = (
        "import sys; from inbox_orch.inbox import Bus; Bus.open(sys.argv[1]).close();"
        "print([m for m in sys.modules if m.rpartition('.')[2] in"
        " ('care', 'copies', 'copying', 'examining', 'pruning', 'verifying', 'sqlite_utils')])"
    )
    import subprocess
    import sys

    ended = subprocess.run(
        [sys.executable, "-P", "-c", code, str(project.path)], capture_output=True, text=True
    )
    assert ended.stdout == "[]\n", ended.stderr
