"""The disk of the torture does run full, and does refuse writing, where one can be mounted."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.disks import small_disk

FULL, READ_ONLY = os.strerror(errno.ENOSPC), os.strerror(errno.EROFS)


@pytest.fixture
def disk(tmp_path) -> Iterator[Any]:
    with small_disk(tmp_path / "disk") as made:
        yield made


def test_a_full_disk_takes_no_more_until_it_has_room_again(disk):
    (disk.path / "before").write_bytes(b"x" * 300_000)

    with disk.full(), pytest.raises(OSError, match=FULL):
        (disk.path / "more").write_bytes(b"x" * 10_000_000)

    (disk.path / "more").write_bytes(b"x" * 1_000_000)
    assert (disk.path / "before").read_bytes() == b"x" * 300_000


def test_a_read_only_disk_opens_nothing_for_writing_until_it_is_writable_again(disk):
    path = disk.path / "file"
    path.write_text("before")

    with disk.read_only(), pytest.raises(OSError, match=READ_ONLY):
        path.write_text("meanwhile")
    assert path.read_text() == "before"

    path.write_text("after")
    assert path.read_text() == "after"


def test_a_disk_becomes_read_only_while_a_file_is_open_for_writing(disk):
    with open(disk.path / "file", "w") as held:
        with disk.read_only(), pytest.raises(OSError, match=READ_ONLY):
            (disk.path / "file").write_text("lost")
        held.write("goes on")
    assert (disk.path / "file").read_text() == "goes on"


def test_nothing_stays_mounted(tmp_path):
    with small_disk(tmp_path / "disk") as made, made.read_only():
        pass

    assert str(tmp_path) not in Path("/proc/self/mounts").read_text()
