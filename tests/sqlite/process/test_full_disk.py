"""A disk without any room on which nothing has the database open: what is there can be seen."""

import contextlib
import os
import sqlite3
import subprocess

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.layout import layout_of
from inbox_orch.shared.store.sqlite import creating
from inbox_orch.shared.store.sqlite.reserve import give_up_reserve, keep_reserve
from support.commands import run
from support.runs import Site

BUS = [
    ("list",),
    ("stats",),
    ("where",),
    ("doctor",),
    ("show", "THREAD"),
    ("fetch", "--peek"),
    ("prime",),
    ("init",),
    ("prune", "--older-than", "0", "--dry-run"),
    (),
]
RUNS = [
    ("status",),
    ("ready",),
    ("blocked",),
    ("report",),
    ("graph",),
    ("timeline",),
    ("run", "list"),
    ("attempt", "list"),
    ("gate", "list"),
    ("task", "show", "t"),
    ("plan", "export"),
    ("doctor",),
    ("conflicts",),
    ("cleanup", "--dry-run"),
]


@pytest.fixture
def full(tmp_path):
    """A project with a failed attempt, on a disk that takes not one more byte."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        site = Site(place / "site")
        one = site.open_run()
        site.add(one, "t", max_attempts=1)
        item = site.dispatch(one, "t")["t"]
        site.fail(item, fatal=True)
        site.scheduler.reconcile(one)
        site.close()
        keep_reserve(layout_of(str(site.office.path)))
        fill_up(place)
        yield site
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def fill_up(place):
    """Not one more byte can be written."""
    with contextlib.suppress(OSError), open(place / "filler", "wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


def test_everything_that_looks_works(full):
    path = full.office.path
    thread = None
    for words in BUS:
        line = [str(thread) if word == "THREAD" else word for word in words]
        outcome = run("--json", "--db", str(path), *line, INBOX_AGENT="leader")
        assert outcome.code == 0, (words, outcome)
        if words == ("list",):
            thread = outcome.data["items"][0]["id"]
    for words in RUNS:
        outcome = run("--json", *words, "--db", str(path), program="orch")
        assert outcome.code in (0, 11), (words, outcome)


def test_what_writes_or_waits_is_refused_and_keeps_nobody_out(full):
    path = str(full.office.path)
    for words in (
        ("send", "--to", "w", "--subject", "s"),
        ("fetch", "--peek", "--wait", "inf"),
        ("watch", "--wait", "inf"),
    ):
        outcome = run("--json", "--db", path, *words, INBOX_AGENT="leader")
        assert (outcome.code, outcome.error["code"]) == (6, "disk_full"), words


def test_a_clean_up_works_in_the_room_that_was_kept_for_it(full):
    path = full.office.path
    assert path.with_name("reserve").exists()
    outcome = run("--json", "cleanup", "--db", str(path), program="orch")
    assert [item["action"] for item in outcome.data["items"]] == ["removed"]


def test_a_prune_works_in_the_room_that_was_kept_for_it_and_keeps_it_again(full):
    path = full.office.path
    with Bus.open(path, clock=full.office.clock, perhaps_alone=True) as bus:
        assert bus.database.alone is not None
        assert not path.with_name("reserve").exists()
        assert bus.prune(0, unread=True).threads == 1
        (path.parents[3] / "filler").unlink()
    assert path.with_name("reserve").exists()
    with Bus.open(path) as bus:
        assert not bus.doctor(verify=True).problems


def test_what_only_has_the_name_of_the_room_that_is_kept_stays(full):
    path = full.office.path
    path.with_name("reserve").write_bytes(b"somebody else's")
    fill_up(path.parents[3])
    with Bus.open(path, perhaps_alone=True) as bus:
        assert bus.database.alone is not None
    assert path.with_name("reserve").read_bytes() == b"somebody else's"


def test_beside_the_database_of_another_program_nothing_is_given_up(full):
    (full.office.path.parents[3] / "filler").unlink()
    layout = layout_of(str(full.office.path.with_name("other.db")))
    full.office.path.rename(layout.database)
    full.office.path.with_name("reserve").rename(layout.reserve)
    with contextlib.closing(sqlite3.connect(layout.database)) as other:
        other.execute("PRAGMA application_id=7")
    fill_up(full.office.path.parents[3])
    with pytest.raises(InboxOrchError, match="not a database of inbox"):
        Bus.open(layout.database, perhaps_alone=True)
    assert os.path.exists(layout.reserve)


def test_a_new_database_has_room_kept_for_it(tmp_path):
    creating.create(str(tmp_path / "bus.db"))
    reserve = tmp_path / "reserve"
    assert reserve.stat().st_blocks > 0
    assert reserve.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("written", [0, 20, 4096])
def test_room_that_was_not_kept_to_its_end_is_kept_the_next_time(tmp_path, written):
    """A process was killed while it wrote it, or the disk was full."""
    creating.create(str(tmp_path / "bus.db"))
    layout, reserve = layout_of(str(tmp_path / "bus.db")), tmp_path / "reserve"
    whole = reserve.stat().st_size
    os.truncate(reserve, written)

    keep_reserve(layout)

    assert reserve.stat().st_size == whole
    give_up_reserve(layout)
    assert not reserve.exists()


def test_a_small_file_with_the_name_of_the_room_that_is_kept_stays(tmp_path):
    creating.create(str(tmp_path / "bus.db"))
    reserve = tmp_path / "reserve"
    reserve.write_bytes(b"somebody else's")

    keep_reserve(layout_of(str(tmp_path / "bus.db")))

    assert reserve.read_bytes() == b"somebody else's"
