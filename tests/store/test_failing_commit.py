"""A COMMIT at which the disk fails: nothing is there afterwards, or nobody can know."""

import os
import shutil
import sqlite3
import subprocess

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.shared import committing
from inbox_orch.shared.layout import layout_of
from support.buses import refused
from support.commands import Project, command_path


class _Disk:
    """A connection whose commits fail as with a disk that cannot sync, so often."""

    def __init__(self, connection, times, code):
        self._connection, self._times, self._code = connection, times, code
        self.commits = 0

    def execute(self, statement, *arguments):
        if statement == "COMMIT":
            self.commits += 1
            if self.commits <= self._times:
                self._connection.execute("ROLLBACK")
                error = sqlite3.OperationalError("disk I/O error")
                error.sqlite_errorcode = self._code
                raise error
        return self._connection.execute(statement, *arguments)

    def __getattr__(self, name):
        return getattr(self._connection, name)


def _commits_on(tmp_path, times, code):
    connection = sqlite3.connect(":memory:", isolation_level=None)
    disk = _Disk(connection, times, code)
    disk.execute("BEGIN IMMEDIATE")
    try:
        committing.commit(layout_of(str(tmp_path / "bus.db")), disk)
    finally:
        assert not connection.in_transaction
        commits = disk.commits
        connection.close()
        assert commits == (1 if code != sqlite3.SQLITE_IOERR_FSYNC else 2)


def test_a_commit_that_was_written_over_had_no_effect(tmp_path):
    with pytest.raises(sqlite3.OperationalError):
        _commits_on(tmp_path, 1, sqlite3.SQLITE_IOERR_FSYNC)


def test_a_commit_that_cannot_be_written_over_has_an_unknown_outcome(tmp_path):
    with refused("outcome_unknown") as failure:
        _commits_on(tmp_path, 2, sqlite3.SQLITE_IOERR_FSYNC)
    assert (failure.value.exit_code, failure.value.retryable) == (1, False)


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE])
def test_a_commit_that_could_not_be_written_had_no_effect(tmp_path, code):
    with pytest.raises(sqlite3.OperationalError):
        _commits_on(tmp_path, 1, code)


@pytest.mark.parametrize("kind", ["once", "for good"])
@pytest.mark.parametrize("number", range(1, 5))
def test_what_is_refused_is_not_there_when_the_log_is_read_anew(tmp_path, kind, number):
    if shutil.which("strace") is None:
        pytest.skip("strace is not here")
    project = Project(tmp_path / "p")
    with Bus.open(project.path, agent="idle"):  # the log stays when the command ends
        line = [*_failing(number, kind), command_path(), "--json", "send", "--agent", "leader"]
        line += ["--to", "w", "--subject", "second", "--db", str(project.path)]
        ended = subprocess.run(line, capture_output=True, check=False)
        copy = tmp_path / "copy.db"
        _take_as_a_crash_leaves_it(project.path, copy)
    there = _subjects(copy)
    if ended.returncode == 0:
        assert there == ["second"]
    elif ended.returncode != 1:
        assert (ended.returncode, there) == (6, [])


def _failing(number, kind):
    last = "+" if kind == "for good" else ""
    words = ["strace", "-o", os.devnull, "-e", "trace=fsync,fdatasync"]
    return [*words, "-e", f"inject=fsync,fdatasync:error=EIO:when={number}{last}"]


def _take_as_a_crash_leaves_it(path, copy):
    subprocess.run(["cp", path, copy], check=True)
    subprocess.run(["cp", f"{path}-wal", f"{copy}-wal"], check=True)


def _subjects(path):
    connection = sqlite3.connect(path)
    try:
        return [row[0] for row in connection.execute("SELECT subject FROM thread")]
    finally:
        connection.close()
