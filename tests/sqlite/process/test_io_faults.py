"""Out of room at any point: the call is refused with a name, and is done wholly or not at all."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from inbox_orch.shared.errors import InboxOrchError
from support.runs import Site, git
from support.shortage import little_room
from support.timing import PATIENCE_SECONDS

_TESTS = str(Path(__file__).resolve().parents[2])
_DRIVER = f"import sys; sys.path.insert(0, {_TESTS!r}); from support.shortage import main; main()"
OPERATIONS = ("send", "claim", "update", "done", "backup", "prune", "init", "migration")


def shortages(kind: str, operation: str, folder: Path) -> dict[str, int]:
    ended = subprocess.run(
        [sys.executable, "-P", "-c", _DRIVER, kind, operation, str(folder)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )
    assert ended.returncode == 0, ended.stderr
    found = json.loads(ended.stdout)
    sys.stdout.write(f"{operation}: refused {found}\n")
    return found


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 8 MiB."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small file system")
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", str(place)]
    if subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_with_any_limit_on_the_size_of_files_it_is_done_or_refused(operation, tmp_path):
    found = shortages("files", operation, tmp_path)
    assert sum(found.values()) >= 1


@pytest.mark.parametrize("operation", OPERATIONS)
def test_with_any_little_room_on_the_disk_it_is_done_or_refused(operation, disk):
    found = shortages("disk", operation, disk)
    assert sum(found.values()) >= 1


def test_clean_up_with_any_little_room_takes_nothing_away_that_is_not_kept(disk: Path):
    """The disk of the repository fills up while what is in no commit is being kept."""
    site = Site(disk / "site")
    try:
        run = site.open_run()
        content = os.urandom(300_000)
        refused, codes = 0, set()
        for number, room in enumerate(range(0, 1_200_000, 120_000)):
            key = f"t{number}"
            site.add(run, key, max_attempts=1)
            item = site.dispatch(run, key)[key]
            site.fail(item, fatal=True)
            site.scheduler.reconcile(run)
            left = Path(item["worktree"], "left.bin")
            left.write_bytes(content)
            with little_room(disk, room):
                try:
                    site.scheduler.cleanup(run, task_names=[key], force=True)
                except InboxOrchError as error:
                    codes.add(error.code)
            if left.exists():
                assert left.read_bytes() == content
                refused += 1
            # Also what is gone may not be written down yet: there was no room for that either.
            if site.attempts(run, key)[0].removed_at is None:
                site.scheduler.cleanup(run, task_names=[key], force=True)
            assert not left.exists()
            (attempt,) = site.attempts(run, key)
            assert attempt.salvage_commit is not None
            git(site.repository, "fsck", "--strict", "--no-dangling")
            kept = git(site.repository, "ls-tree", "-r", "-l", attempt.salvage_commit)
            assert f"{len(content)}\tleft.bin" in kept
        assert 1 <= refused < 10
        assert codes <= {"disk_full", "io_error"}
        assert site.scheduler.doctor(verify=True).problems == 0
    finally:
        site.close()
