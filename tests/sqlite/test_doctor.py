"""What the doctor finds, what it repairs, and what it leaves alone."""

import contextlib
import os
import shutil
import sqlite3
import subprocess
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.inbox.store import care
from inbox_orch.shared.processes.signals import Signalled
from inbox_orch.shared.store.sqlite import beside
from inbox_orch.shared.store.sqlite import care as sqlite_care
from support.buses import refused

EVENT_TRIGGERS = ("event_never_changes", "event_never_goes")


@pytest.fixture
def path(office, tmp_path):
    """A database with a finished thread that has a file, and a held one; closed."""
    (tmp_path / "file.txt").write_text("content")
    leader, worker = office.bus("leader"), office.bus("w1")
    for _ in range(2):
        leader.send(to="w1", subject="task", body="do it", payload='{"a": 1}')
    first = worker.claim()
    worker.done(first.thread.id, first.lease.token, body="ok", attach=[str(tmp_path / "file.txt")])
    worker.claim(lease_seconds=60)
    office.close()
    return office.path


@pytest.fixture
def doctor(path, office):
    """Examine the database: the checks that are not ok, by name."""

    def examine(**options):
        with Bus.open(path, clock=office.clock) as bus:
            found = bus.doctor(**options)
        return {check.name: check for check in found.checks if check.status != "ok"}

    return examine


def tamper(path: Path, *statements: str) -> None:
    """Change the file behind the program's back, the append-only triggers notwithstanding."""
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        triggers = connection.execute(
            "SELECT name, sql FROM sqlite_master WHERE type = 'trigger'"
        ).fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("PRAGMA ignore_check_constraints = ON")
        for statement in statements:
            connection.execute(statement)
        for _, sql in triggers:
            connection.execute(sql)


@pytest.mark.parametrize("kind", ["nfs4", "fuse.sshfs", "9p"])
def test_a_file_system_on_which_the_log_is_not_safe_is_named(doctor, monkeypatch, kind):
    """The database may have been moved there, or was made with --force."""
    assert doctor() == {}
    monkeypatch.setattr(beside, "filesystem_type", lambda path: kind)

    found = doctor()

    assert set(found) == {"filesystem"}
    assert found["filesystem"].status == "warning"
    assert found["filesystem"].text == f"{kind}: a write-ahead log is not safe on it"


def test_a_sound_database_is_clean(doctor):
    assert doctor(verify=True) == {}


def test_the_doctor_changes_nothing(path, doctor):
    def everything():
        return {p: p.lstat().st_mtime_ns for p in path.parent.rglob("*") if p.is_file()}

    with contextlib.closing(sqlite3.connect(path)) as other:
        before = other.execute("PRAGMA data_version").fetchone(), everything()
        doctor(verify=True)
        assert (other.execute("PRAGMA data_version").fetchone(), everything()) == before


@pytest.mark.parametrize(
    "statement, check, said",
    [
        ("UPDATE thread SET deliveries = 2", "log_threads", "deliveries is 2, events say 1"),
        ("UPDATE thread SET epoch = 7", "log_threads", "epoch is 7, events say 1"),
        (
            "UPDATE thread SET state = 'failed' WHERE state = 'done'",
            "log_threads",
            "state is failed, events say done",
        ),
        (
            "UPDATE thread SET holder = 'w2' WHERE holder = 'w1'",
            "log_threads",
            "holder is w2, events say w1",
        ),
        ("UPDATE lease SET holder = 'w2'", "log_leases", "w2, done, events say w1, done"),
        (
            "UPDATE lease SET ended_by = 'done', ended_at = 5 WHERE ended_at IS NULL",
            "log_leases",
            "w1, done, events say w1, live",
        ),
        ("DELETE FROM lease WHERE ended_at IS NULL", "log_leases", "no lease, events say w1, live"),
        (
            "UPDATE message SET body = 'another' WHERE kind = 'result'",
            "log_messages",
            "does not match its digest",
        ),
        (
            "UPDATE message SET body = NULL WHERE kind = 'result'",
            "log_messages",
            "was not pruned",
        ),
        (
            (
                "UPDATE message SET body = 'x', body_bytes = 1, body_sha256 ="
                " '2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881'"
            ),
            "log_messages",
            "not what its event says",
        ),
        (
            (
                "INSERT INTO message (thread_id, kind, sender, body, body_sha256, body_bytes,"
                " created_at) SELECT id, 'reply', 'x', '', 'e3b0', 0, 1 FROM thread LIMIT 1"
            ),
            "log_messages",
            "no event tells of it",
        ),
        ("DELETE FROM artifact", "log_artifacts", "'file.txt' of thread"),
        ("UPDATE artifact SET name = 'other'", "log_artifacts", "no event tells of it"),
        ("UPDATE artifact SET pruned = 1", "log_artifacts", "marked pruned"),
        ("DELETE FROM event WHERE kind = 'thread_sent'", "log_events", "it was None"),
        (
            "UPDATE event SET data = replace(data, '\"epoch\":1', '\"epoch\":2')",
            "log_events",
            "says epoch 2; it follows 1",
        ),
        ("UPDATE event SET data = '[]'", "log_events", "its data cannot be read"),
        (
            "UPDATE event SET kind = 'thread_failed' WHERE kind = 'thread_done'",
            "log_events",
            "from claimed to done is no transition",
        ),
    ],
)
def test_verify_notices_a_difference_between_tables_and_events(
    path, doctor, statement, check, said
):
    tamper(path, statement)

    found = doctor(verify=True)

    assert found[check].status == "problem"
    assert any(said in item for item in found[check].items), found[check].items
    assert found[check].total >= len(found[check].items)


@pytest.mark.parametrize(
    "statement, check, said",
    [
        ("UPDATE message SET payload = 'no' WHERE id = 1", "rows", "message 1: payload"),
        ("UPDATE message SET options = '{}' WHERE id = 1", "rows", "message 1: options"),
        ("UPDATE thread SET progress = 500 WHERE number = 2", "rows", "thread 2: CHECK"),
        ("DROP INDEX thread_claimable", "schema", "index thread_claimable: is missing"),
        ("CREATE TABLE extra (x)", "schema", "table extra: does not belong here"),
        (
            "UPDATE message SET thread_id = '01ARZ3NDEKTSV4RRFFQ69G5FAV' WHERE id = 1",
            "foreign_keys",
            "message row 1: no such thread",
        ),
    ],
)
def test_rows_that_break_a_rule_are_listed(path, doctor, statement, check, said):
    tamper(path, statement)

    found = doctor()

    assert found[check].status == "problem"
    assert any(said in item for item in found[check].items), found[check].items


def test_a_text_that_is_not_utf8_is_listed_and_the_rest_is_checked(path, doctor):
    tamper(
        path,
        "UPDATE thread SET subject = CAST(x'61ff' AS TEXT), deliveries = 2 WHERE number = 1",
    )

    found = doctor(verify=True)

    assert found["rows"].items == ("thread 1: a text is not UTF-8",)
    assert found["log_threads"].total == 1


def test_of_many_differences_the_first_are_listed_and_all_are_counted(office, path, doctor):
    with Bus.open(path, agent="leader", clock=office.clock) as bus:
        for _ in range(30):
            bus.send(to="workers", subject="task")
    tamper(path, "UPDATE thread SET epoch = 9")

    found = doctor(verify=True)

    assert len(found["log_threads"].items) == 20
    assert found["log_threads"].total == 32


# -- files ---------------------------------------------------------------------------------


def artifact_file(path: Path) -> Path:
    (file,) = path.parent.glob("artifacts/??/*")
    return file


@pytest.mark.parametrize("verify", [False, True])
def test_a_missing_artifact_is_a_problem(path, doctor, verify):
    artifact_file(path).unlink()

    assert "is missing" in doctor(verify=verify)["artifact_files"].items[0]


def test_an_artifact_of_another_length_is_a_problem(path, doctor):
    artifact_file(path).write_text("longer content")

    assert "14 bytes instead of 7" in doctor()["artifact_files"].items[0]


def test_an_artifact_with_another_content_is_noticed_by_verify(path, doctor):
    artifact_file(path).write_text("CONTENT")

    assert doctor() == {}
    assert "has changed" in doctor(verify=True)["artifact_files"].items[0]


def test_fix_takes_dead_bells_and_old_unfinished_copies_away(path, office, doctor):
    bell = path.parent / "bells" / "workers" / "1-aa"
    bell.parent.mkdir()
    os.mkfifo(bell)
    old, new = (
        path.parent / "artifacts" / "incoming" / name for name in (f"1-{'0' * 16}", f"1-{'1' * 16}")
    )
    for file, age in ((old, 2 * 24 * 3600), (new, 3600)):
        file.write_text("part")
        os.utime(file, (office.clock.wall_ms / 1000 - age,) * 2)

    found = doctor()
    assert {name: (c.status, c.fixable) for name, c in found.items()} == {
        "bells": ("warning", True),
        "unfinished_copies": ("warning", True),
    }
    assert doctor(fix=True) == {}
    assert not bell.exists()
    assert not old.exists()
    assert new.exists()


def test_fix_takes_our_files_back_from_others(path, doctor):
    for loose in (path, path.parent, path.parent / "bells"):
        loose.chmod(0o755)

    assert {str(path), str(path.parent), str(path.parent / "bells")} <= set(doctor()["modes"].items)
    assert doctor(fix=True) == {}
    assert path.stat().st_mode & 0o777 == 0o700
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_link_in_the_place_of_the_gate_is_a_problem_and_is_left_alone(path, doctor, tmp_path):
    gate = path.parent / "gate"
    gate.unlink()
    gate.symlink_to(tmp_path / "elsewhere")

    found = doctor(fix=True)

    assert found["gate"].status == "problem"
    assert gate.is_symlink()


def test_fix_turns_the_write_ahead_log_on(path, doctor):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE").fetchall()

    assert doctor()["journal"].fixable
    assert doctor(fix=True) == {}
    assert doctor() == {}


def test_a_log_that_was_set_aside_is_told_and_kept(path, doctor):
    orphan = path.parent / "bus.db-wal.orphan-17"
    orphan.write_bytes(b"commits")

    assert doctor(fix=True)["orphans"].items == (str(orphan),)
    assert orphan.exists()


def test_an_expired_lease_that_nobody_noticed_is_a_warning(office, doctor):
    office.clock.advance(61)

    leases = doctor()["leases"]

    assert (leases.status, leases.total) == ("warning", 1)
    assert "1 never renewed" in leases.text


# -- damage --------------------------------------------------------------------------------


def fill_and_damage(path: Path) -> bytes:
    """Overwrite a page in the middle; returns the bytes as they are then."""
    with Bus.open(path, agent="leader") as bus:
        for number in range(200):
            bus.send(to="workers", subject=f"task {number}", body="x" * 3000)
    content = bytearray(path.read_bytes())
    middle = len(content) // 2 // 4096 * 4096
    content[middle : middle + 4096] = b"\xa5" * 4096
    path.write_bytes(content)
    return bytes(content)


def test_a_damaged_file_is_corrupt_and_is_left_alone(path, doctor):
    content = fill_and_damage(path)

    with refused("corrupt") as failure:
        doctor()

    error = failure.value
    assert error.details["findings"]
    assert f"sqlite3 '{path}' .recover" in error.hint
    assert path.read_bytes() == content


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="needs SQLite's own command line")
def test_what_the_hint_says_reads_out_what_lies_on_sound_pages(path, tmp_path):
    fill_and_damage(path)

    # Some distributions build it without .recover; the hint names .dump for them.
    for command in (".recover", ".dump"):
        read_out = subprocess.run(["sqlite3", str(path), command], capture_output=True, text=True)
        if "thread" in read_out.stdout:
            break

    assert sum("task 1" in line for line in read_out.stdout.splitlines()) >= 100


@pytest.mark.parametrize("content", [b"SQLite format 3\0" + b"\xff" * 8000, b"no database" * 500])
def test_a_file_that_sqlite_refuses_is_corrupt_and_nothing_appears(tmp_path, content):
    path = tmp_path / "bus.db"
    path.write_bytes(content)

    with refused("corrupt"), Bus.open(path) as bus:
        bus.doctor()

    assert path.read_bytes() == content
    assert [p.name for p in tmp_path.iterdir()] == ["bus.db"]


@pytest.mark.parametrize("module, place", [(sqlite_care, "_is_utf8"), (care, "_sha256")])
def test_a_signal_at_any_text_ends_the_examination(path, monkeypatch, module, place):
    """It neither becomes an error of SQLite's nor a finding."""

    def signalled(content):
        raise Signalled(2)

    monkeypatch.setattr(module, place, signalled)
    with Bus.open(path) as bus, pytest.raises(Signalled):
        bus.doctor(verify=True)
