"""Databases and repositories by the thousand: made once by the product and by git, then copied.

That a database is made well is shown by the tests of `creating`; the others only need one.
"""

import functools
import hashlib
import os
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from inbox_orch.shared.clock import Clock, SystemClock
from inbox_orch.shared.ids import new_id
from inbox_orch.shared.store.sqlite import creating
from sqlite import outside

_HASH = 20


def make_database(path: Path, clock: Clock | None = None) -> None:
    """What `creating.create` leaves at `path`, with an id and a date of its own."""
    content, its_id, its_date = _database()
    folder = path.parent
    folder.mkdir(mode=0o700, parents=True)
    for part in ("artifacts", "bells"):
        (folder / part).mkdir(mode=0o700)
    date = str((clock or SystemClock()).now().wall_ms).encode()
    content = content.replace(its_id, new_id().encode()).replace(its_date, date)
    _write(folder / ".gitignore", b"*\n")
    _write(folder / "gate", b"")
    _write(path, content)


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(content)


@functools.cache
def _database() -> tuple[bytes, bytes, bytes]:
    """The bytes of an empty database, its id, and the date in it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, ".inbox", "bus.db")
        creating.create(str(path))
        stamps = dict(outside.rows(path, "SELECT key, value FROM meta"))
        content = path.read_bytes()
    its_id, its_date = stamps["database_id"].encode(), stamps["created_at"].encode()
    assert content.count(its_id) == content.count(its_date) == 1
    return content, its_id, its_date


def make_repository(folder: Path) -> Path:
    """A repository with one commit on `main`."""
    folder.mkdir(parents=True)
    for name, content in _repository().items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    for name in ("branches", "hooks", "objects/info", "objects/pack", "refs/tags"):
        (folder / ".git" / name).mkdir(parents=True, exist_ok=True)
    _look_at(folder / "README.md", folder / ".git" / "index")
    return folder


def _look_at(file: Path, index: Path) -> None:
    """Git remembers which file it has looked at, by its place on the disk and its times. What `git
    update-index --refresh` writes, without another process, for the one file of an index
    (gitformat-index(5), version 2)."""
    content, status = bytearray(index.read_bytes()[:-_HASH]), file.lstat()
    assert content[:12] == struct.pack("!4sII", b"DIRC", 2, 1)
    times = (each for ns in (status.st_ctime_ns, status.st_mtime_ns) for each in divmod(ns, 10**9))
    numbers = (*times, status.st_dev, status.st_ino)
    struct.pack_into("!6I", content, 12, *(number & 0xFFFFFFFF for number in numbers))
    index.write_bytes(content + hashlib.sha1(content).digest())


@functools.cache
def _repository() -> Mapping[str, bytes]:
    """The files of such a repository, without git's examples of hooks."""
    folder = Path(tempfile.mkdtemp())
    try:
        _git(folder, "init", "--quiet", "--initial-branch", "main")
        # Newer gits look after a repository in the background when they have written to it.
        _git(folder, "config", "maintenance.auto", "false")
        (folder / "README.md").write_text("A project.\n")
        _git(folder, "add", "--all")
        _git(folder, "commit", "--quiet", "--message", "Write README.md")
        return {
            str(path.relative_to(folder)): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and path.suffix != ".sample"
        }
    finally:
        shutil.rmtree(folder)


def _git(folder: Path, *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=folder, check=True, capture_output=True)
