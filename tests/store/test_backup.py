"""Backups and the export: whole, consistent, and of no harm to the live database."""

import contextlib
import errno
import hashlib
import json
import os
import sqlite3

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.inbox.services import copying
from inbox_orch.inbox.store import copies
from inbox_orch.shared import processes
from inbox_orch.shared.artifacts import ArtifactStore
from inbox_orch.shared.signals import Signalled
from support.buses import refused

DAY_MS = 24 * 3600 * 1000


@pytest.fixture
def thread(leader, tmp_path):
    """A thread with a file."""
    (tmp_path / "file.txt").write_text("content")
    sent = leader.send(to="w1", subject="task", body="do it", attach=[str(tmp_path / "file.txt")])
    return sent.thread.id


@pytest.fixture
def target(tmp_path):
    return tmp_path / "copies" / "bus-monday.db"


@pytest.fixture(autouse=True)
def folder(target):
    target.parent.mkdir()
    return target.parent


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_backup_opens_as_a_database_and_goes_on(office, leader, thread, target):
    made = leader.backup(target, artifacts=True)

    assert made.path == str(target)
    assert made.sha256 == hashlib.sha256(target.read_bytes()).hexdigest()
    assert made.bytes == target.stat().st_size
    assert str(made.newest_event) == leader.latest_event()
    assert target.stat().st_mode & 0o777 == 0o600
    with Bus.open(target, agent="w1", database_id=made.database_id, clock=office.clock) as copy:
        assert {check.status for check in copy.doctor(verify=True).checks} == {"ok"}
        assert copy.database.connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        with copy.artifact(thread, "file.txt")[1] as content:
            assert content.read() == b"content"
        token = copy.claim(thread).lease.token
        assert copy.done(thread, token, body="in the copy").thread.state == "done"
    assert leader.show(thread).thread.state == "pending"


@pytest.mark.parametrize(
    "name, artifacts", [("project.db", "project.db.artifacts"), ("bus.db", "artifacts")]
)
def test_the_files_of_a_backup_lie_where_its_name_leads_to(leader, thread, folder, name, artifacts):
    made = leader.backup(folder / name, artifacts=True)

    assert made.artifact_folder == str(folder / artifacts)
    assert names(folder) == sorted([name, artifacts])


def test_a_backup_has_what_still_lies_in_the_log_and_leaves_no_other_file(
    leader, thread, target, folder
):
    leader.backup(target)

    assert names(folder) == ["bus-monday.db"]
    with contextlib.closing(sqlite3.connect(target)) as connection:
        assert connection.execute("SELECT count(*) FROM thread").fetchone() == (1,)


def test_a_backup_replaces_a_file_only_when_told_to(leader, thread, target):
    target.write_text("precious")

    with refused("file_exists") as failure:
        leader.backup(target)
    assert "--force" in failure.value.hint
    assert target.read_text() == "precious"

    leader.backup(target, force=True)
    with Bus.open(target) as copy:
        assert copy.list().items[0].id == thread


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_log_beside_the_target_is_never_replayed_into_the_backup(leader, target, folder, suffix):
    (folder / (target.name + suffix)).write_bytes(b"of another database")

    with refused("file_exists"):
        leader.backup(target, force=True)
    assert not target.exists()


def test_a_backup_never_goes_over_the_live_database(office, leader, folder):
    for path in (office.path, office.path.parent / "bus.db-wal", office.path.parent / "gate"):
        with refused("usage"):
            leader.backup(path, force=True)
    alias = folder / "alias.db"
    alias.symlink_to(office.path)
    with refused("usage"):
        leader.backup(alias, force=True)


def test_a_target_that_cannot_be_is_a_wrong_call(leader, folder):
    with refused("usage"):
        leader.backup(folder)
    with refused("usage"):
        leader.backup(folder / "missing" / "copy.db")
    with leader.transaction(), refused("usage"):
        leader.backup(folder / "copy.db")
    assert names(folder) == []


def test_a_backup_that_fails_leaves_nothing(leader, target, folder, monkeypatch):
    monkeypatch.setattr(copies, "check_copy", lambda path: ["Page 3: never used"])

    with refused("corrupt"):
        leader.backup(target)
    assert names(folder) == []


@pytest.mark.parametrize("taken", [True, False])
def test_a_name_that_is_taken_meanwhile_is_not_replaced_also_without_links(
    leader, target, folder, monkeypatch, taken
):
    def check(path):
        if taken:
            target.write_text("precious")
        return []

    def no_links(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(copies, "check_copy", check)
    if taken:
        with refused("file_exists"):
            leader.backup(target)
        assert target.read_text() == "precious"
    else:
        monkeypatch.setattr(os, "link", no_links)
        leader.backup(target)
    assert names(folder) == [target.name]


def test_an_interrupted_backup_leaves_nothing(leader, thread, target, folder, monkeypatch):
    def interrupt(*_: int) -> None:
        raise Signalled(2)

    monkeypatch.setattr(copies, "_hear_signals", interrupt)

    with pytest.raises(Signalled):
        leader.backup(target)
    assert names(folder) == []
    assert leader.list().items[0].id == thread


def part(target, process, started, place, *, written_ms):
    """An unfinished copy as another process has left it, or is writing it."""
    name = f".{target.name}.{process:x}-{started:x}-{place}-0123.part"
    return write_part(target.with_name(name), written_ms)


def write_part(path, written_ms):
    path.write_text("")
    os.utime(path, (written_ms / 1000,) * 2)
    return path


def test_parts_of_killed_backups_are_collected_and_those_of_live_ones_are_not(
    office, leader, target, folder
):
    here, now_ms = copying._place(office.clock.now()), office.clock.wall_ms
    own, began = os.getpid(), processes.start_time(os.getpid())
    dead = part(target, 2**22, 1, here, written_ms=now_ms)
    part(target, own, began - 50, here, written_ms=now_ms)  # the number has been given out again
    live = part(target, own, began, here, written_ms=now_ms - 9 * DAY_MS)
    for end in ("-wal", "-shm", "-journal"):
        (folder / f"{dead.name}{end}").write_text("")

    leader.backup(target)

    assert names(folder) == sorted([target.name, live.name])


@pytest.mark.parametrize("process", [1, 2**22])
def test_of_parts_from_where_no_process_can_be_seen_the_old_ones_are_collected(
    office, leader, target, folder, process
):
    now_ms = office.clock.wall_ms
    part(target, process, 7, "00000000", written_ms=now_ms - 2 * DAY_MS)
    young = part(target, process, 8, "00000000", written_ms=now_ms - DAY_MS // 2)
    # As releases before have named them.
    write_part(folder / f".{target.name}.{process}-00000000.part", now_ms - 2 * DAY_MS)
    known = write_part(folder / f".{target.name}.{process}-0123abcd.part", now_ms - DAY_MS // 2)

    leader.backup(target)

    assert names(folder) == sorted([target.name, young.name, known.name])


def test_nothing_but_parts_of_backups_into_the_same_file_is_collected(leader, target, folder):
    others = [
        f".{target.name}.2026-11-28.{os.getpid()}-0123abcd.part",  # of a backup with a longer name
        f".{target.name}.{2**22}-0123abcd.db.{os.getpid()}-0123abcd.part",
        f".{target.name}.{2**22}-notes.party",
        f".{target.name}.{2**22}-0123abcd.part.txt",
        f".{target.name}.{2**22}-0123abcd.part\n",
        f".{target.name}.{2**22}-notes.part",
    ]
    for name in others:
        (folder / name).write_text("")

    leader.backup(target)

    assert names(folder) == sorted([target.name, *others])


def test_a_backup_sees_one_commit_though_others_write_between_its_batches(
    office, leader, thread, target, monkeypatch
):
    other = office.bus("w9")

    def write(*_: int) -> None:
        other.send(to="w1", subject="meanwhile", body="x" * 5000)

    monkeypatch.setattr(copies, "_PAGES_AT_ONCE", 5)
    monkeypatch.setattr(copies, "_hear_signals", write)
    made = leader.backup(target)

    assert int(leader.latest_event()) > made.newest_event
    with Bus.open(target) as copy:
        assert [t.id for t in copy.list().items] == [thread]


def test_a_missing_content_is_counted_and_the_rest_is_copied(office, leader, thread, target):
    (file,) = office.path.parent.glob("artifacts/??/*")
    file.unlink()

    made = leader.backup(target, artifacts=True)

    assert (made.artifacts, made.missing) == (0, 1)


# -- export --------------------------------------------------------------------------------


def test_a_content_that_cannot_be_looked_at_is_named_not_a_bug(leader, thread, target, monkeypatch):
    def broken(self, sha256):
        return "x" * 300

    monkeypatch.setattr(ArtifactStore, "path", broken)
    with refused("io_error"):
        leader.backup(target, artifacts=True)


def test_the_export_has_everything_but_the_token(office, leader, thread):
    body = "long " * 5000
    leader.send(to="w1", subject="secret", sealed=True, body=body)
    worker = office.bus("w1")
    worker.mark_read(worker.fetch())
    token = worker.claim(thread).lease.token

    lines = list(leader.export())

    kinds = [line["type"] for line in lines]
    assert list(dict.fromkeys(kinds)) == [
        *("meta", "thread", "message", "artifact", "lease", "cursor", "event", "end")
    ]
    counts = {kind: kinds.count(kind) for kind in kinds if kind != "end"}
    assert lines[-1] == {"type": "end", "counts": counts}
    assert lines[0]["newest_event"] == leader.latest_event()
    assert body in [line["body"] for line in lines if line["type"] == "message"]
    assert [line["id"] for line in lines if line["type"] == "event"] == ["1", "2", "3"]
    text = json.dumps(lines)
    assert token not in text
    assert "secret" in text


def test_an_export_that_is_read_slowly_holds_nobody_up(office, leader, thread):
    lines = leader.export()
    next(lines)
    for _ in range(40):
        leader.send(to="w1", subject="meanwhile", body="x" * 200_000)

    # The log starts again at its head: nobody reads an old snapshot.
    assert (office.path.parent / "bus.db-wal").stat().st_size < 8 * 1024 * 1024
    assert sum(line["type"] == "thread" for line in lines) == 1


def test_an_export_leaves_no_copy_behind(leader, thread, tmp_path, monkeypatch):
    monkeypatch.setenv("SQLITE_TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    lines = leader.export()
    next(lines)

    assert list((tmp_path / "temporary").iterdir()) == []
    lines.close()
