"""Making a database: where it is refused, who may read it, and that it is made once."""

import contextlib
import os
import sqlite3
import stat

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared.store.sqlite import creating
from support.buses import refused
from support.processes import Child, close_all

UNSAFE = ["nfs", "nfs4", "cifs", "smb3", "9p", "virtiofs", "drvfs", "fuse", "fuse.sshfs"]


@pytest.mark.parametrize("kind", UNSAFE)
def test_where_the_log_is_not_safe_nothing_is_made_unless_forced(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(creating, "filesystem_type", lambda path: kind)
    path = tmp_path / ".inbox" / "bus.db"
    with refused("unsafe_filesystem") as failure:
        creating.create(str(path))
    assert failure.value.exit_code == 6
    assert failure.value.details["filesystem"] == kind
    assert "--force" in failure.value.hint
    assert list(tmp_path.iterdir()) == []
    assert creating.create(str(path), forced=True)


@pytest.mark.parametrize(
    "folder, kind",
    [
        ("/home/me/project", "ext4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/project", "nfs4"),
        ("/mnt/shared", "ext4"),
        ("/mnt/two words/project", "cifs"),
        ("/mnt/Größe/project", "9p"),
        (os.fsdecode(b"/mnt/\xff/project"), "virtiofs"),
    ],
)
def test_the_file_system_is_that_of_the_nearest_mount_whatever_its_name(folder, kind):
    mounts = [
        "22 1 8:1 / / rw shared:1 - ext4 /dev/sda1 rw",
        "40 22 0:40 / /mnt/share rw - nfs4 server:/ rw",
        "41 22 0:41 / /mnt/two\\040words rw shared:2 master:3 - cifs //server/x rw",
        "42 22 0:42 / /mnt/Größe rw - 9p share rw",
        os.fsdecode(b"43 22 0:43 / /mnt/\xff rw - virtiofs share rw"),
    ]
    assert creating._type_among(mounts, folder) == kind


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "tmpfs", "overlay", "zfs", None])
def test_on_local_file_systems_and_unknown_ones_it_is_made(tmp_path, monkeypatch, kind):
    monkeypatch.setattr(creating, "filesystem_type", lambda path: kind)
    assert creating.create(str(tmp_path / ".inbox" / "bus.db"))


def test_nobody_else_can_read_it_whatever_the_umask_says(tmp_path):
    path = tmp_path / ".inbox" / "bus.db"
    attached = tmp_path / "report.txt"
    attached.write_text("a secret")
    previous = os.umask(0)
    try:
        creating.create(str(path))
        with Bus.open(path, agent="leader") as leader:
            leader.send(to="w1", subject="task", attach=[str(attached)])
            modes = {p: p.lstat().st_mode for p in (path.parent, *path.parent.rglob("*"))}
    finally:
        os.umask(previous)
    names = {p.name for p in modes}
    assert {"bus.db", "bus.db-wal", "bus.db-shm", "gate", "artifacts", "bells"} <= names
    for found, mode in modes.items():
        expected = 0o700 if stat.S_ISDIR(mode) else 0o600
        assert stat.S_IMODE(mode) == expected, found


def test_of_16_processes_that_make_it_at_once_one_does_and_all_can_use_it(tmp_path):
    code = """
from inbox_orch.inbox import Bus
from inbox_orch.shared.store.sqlite import creating
from support.processes import say
path, agent = sys.argv[1:]
say("ready")
sys.stdin.readline()
made = creating.create(path)
with Bus.open(path, agent=agent) as bus:
    bus.send(to="pool", subject=agent)
    say([made, bus.database.id])
"""
    path = tmp_path / ".inbox" / "bus.db"
    makers = [Child(code, path, f"w{n}") for n in range(16)]
    try:
        for maker in makers:
            assert maker.hear() == "ready"
        for maker in makers:
            maker.tell("go")
        answers = [maker.hear() for maker in makers]
    finally:
        close_all(makers)
    assert sorted(made for made, _ in answers) == [False] * 15 + [True]
    assert len({identifier for _, identifier in answers}) == 1
    with Bus.open(path) as bus:
        assert bus.list(limit=1, count=True).total == 16


def test_a_number_that_was_given_once_is_never_given_again(tmp_path):
    """In no table: without AUTOINCREMENT the number of a row that was the last and is gone (lost
    with the rest of a damaged page, or pruned) is that of the next one."""
    path = tmp_path / "bus.db"
    creating.create(str(path))
    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'")
        ours = {name: sql for name, sql in tables if not name.startswith("_sqlite")}
    numbered = {name: sql for name, sql in ours.items() if "INTEGER PRIMARY KEY" in sql}
    again = {n for n, sql in numbered.items() if "INTEGER PRIMARY KEY AUTOINCREMENT" not in sql}
    assert {"thread", "message", "event", "artifact", "task", "intent"} <= set(numbered)
    assert again == set()
