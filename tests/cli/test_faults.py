"""A database or a machine that is not as it should be: the documented error, nothing changed."""

import contextlib
import functools
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from sqlite import outside
from support.commands import ULID, Outcome, Project, command_path, run
from support.contracts import validated
from support.matrix import CELLS, Cell
from support.orch_matrix import CELLS as ORCH_CELLS
from support.orch_matrix import Enterprise
from support.timing import PATIENCE_SECONDS

SEND = ("send", "--to", "workers", "--subject", "s", "--agent", "leader")
EVERY_KIND = (
    SEND,
    ("fetch", "--agent", "w1"),
    ("claim", "--agent", "w1"),
    ("done", ULID, "--token", "t"),
    ("list",),
    ("show", ULID),
    ("where",),
    ("stats",),
    ("--agent", "w1"),
)
AS_ROOT = os.geteuid() == 0
NOBODY = 65534


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path / "project")
    project.send()
    return project


def snapshot(folder: Path) -> dict[str, bytes]:
    """What lies in a folder; only for databases that no live connection has open."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and not path.name.endswith(("-shm", "-wal", "gate"))
    }


def expect(folder: Path, code: str, *, path: Path, lines=EVERY_KIND) -> list[Outcome]:
    """Every kind of command fails with `code` and leaves every byte as it was."""
    before = snapshot(folder)
    outcomes = [run("--json", "--db", str(path), *line) for line in lines]
    for line, ended in zip(lines, outcomes, strict=True):
        assert ended.error["code"] == code, (line, ended)
        validated(line[0] if not line[0].startswith("-") else "inbox", ended.stdout)
        assert ended.error["message"].count("\n") == 0
    assert snapshot(folder) == before
    return outcomes


# -- files that are no database of ours ----------------------------------------------------


@pytest.mark.parametrize("content", [b"hello", b"\0" * 5000, b"SQLite format 3\0" + b"x" * 90])
def test_a_file_that_is_no_database_is_left_alone(tmp_path: Path, content: bytes):
    path = tmp_path / "notes.db"
    path.write_bytes(content)

    expect(tmp_path, "corrupt", path=path, lines=(*EVERY_KIND, ("init",)))


def test_an_empty_file_is_no_database_but_init_may_fill_it(tmp_path: Path):
    path = tmp_path / "empty.db"
    path.write_bytes(b"")
    expect(tmp_path, "wrong_database", path=path)

    assert run("--json", "--db", str(path), "init").data["created"]
    assert run("--json", "--db", str(path), "list").data["items"] == []


def test_another_applications_database_is_left_alone(tmp_path: Path):
    path = tmp_path / "browser.db"
    outside.written(path, "CREATE TABLE thread (id TEXT)")
    outside.written(path, "PRAGMA user_version = 2")

    expect(tmp_path, "wrong_database", path=path, lines=(*EVERY_KIND, ("init",)))


def test_a_newer_schema_is_refused_and_kept(project: Project):
    outside.written(project.path, "PRAGMA user_version = 999")

    outcomes = expect(project.folder, "schema_newer", path=project.path)
    assert outcomes[0].error["details"]["schema"] == 999


def test_a_folder_is_no_database(tmp_path: Path):
    (tmp_path / "bus.db").mkdir()
    for line in (*EVERY_KIND, ("init",)):
        ended = run("--json", "--db", str(tmp_path / "bus.db"), *line)
        assert ended.code == 6, (line, ended)


def test_a_truncated_database_is_named_damaged(project: Project):
    os.truncate(project.path, 100)
    expect(project.folder, "corrupt", path=project.path)


def test_damage_in_the_middle_is_named_damaged(project: Project):
    """Every page but the first is overwritten: the header still says that it is ours."""
    size = project.path.stat().st_size
    with open(project.path, "r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))

    expect(project.folder, "corrupt", path=project.path, lines=(SEND, ("list",), ("where",)))


def test_a_database_without_its_tables_is_named_damaged(tmp_path: Path):
    """A copy of the main file alone can look like this."""
    project = Project(tmp_path / "project")
    outside.written(project.path, "DROP TABLE meta")

    expect(project.folder, "corrupt", path=project.path)


def test_another_database_than_the_one_meant_is_refused(project: Project):
    before = project.contents()
    for line in EVERY_KIND:
        ended = project.json("--db-id", ULID, *line)
        assert ended.error["code"] == "wrong_database"
        assert project.json(*line, INBOX_DB_ID=ULID).error["code"] == "wrong_database"
    assert project.contents() == before


# -- files that are gone -------------------------------------------------------------------


def test_a_missing_database_is_never_made(tmp_path: Path):
    expect(tmp_path, "no_database", path=tmp_path / "missing" / "bus.db")
    assert list(tmp_path.iterdir()) == []


def test_a_misspelt_database_gets_a_suggestion(project: Project):
    ended = run("--json", "--db", str(project.path.with_name("buss.db")), "list")
    assert ended.error["hint"] == f"did you mean {project.path}?"


def test_a_log_without_its_database_is_set_aside_by_init(project: Project):
    log = project.path.with_name("bus.db-wal")
    project.path.unlink()
    log.write_bytes(b"somebody's commits")
    ended = project.json("list", "--db", str(project.path))
    assert ended.error["code"] == "no_database"
    assert "inbox init" in ended.error["hint"]

    assert project.json("init").data["created"]

    (kept,) = project.path.parent.glob("bus.db-wal.orphan-*")
    assert kept.read_bytes() == b"somebody's commits"
    assert project.json("list").data["items"] == []
    assert project.json("doctor", "--verify").data["problems"] == 0


@pytest.mark.parametrize("line", EVERY_KIND, ids=lambda line: line[0])
def test_a_removed_working_folder_is_told(tmp_path: Path, line):
    script = 'mkdir "$1" && cd "$1" && rmdir "$1" && shift && exec "$@"'
    ended = subprocess.run(
        ["sh", "-c", script, "sh", str(tmp_path / "gone"), command_path(), "--json", *line],
        capture_output=True,
    )
    outcome = Outcome(ended.returncode, ended.stdout, ended.stderr)
    assert outcome.error["code"] == "no_database"
    assert "folder" in outcome.error["message"]


def test_a_removed_working_folder_does_not_matter_when_the_database_is_named(project, tmp_path):
    script = 'mkdir "$1" && cd "$1" && rmdir "$1" && shift && exec "$@"'
    ended = subprocess.run(
        ["sh", "-c", script, "sh", str(tmp_path / "gone"), command_path(), "list", "--json"],
        capture_output=True,
        env={**os.environ, "INBOX_DB": str(project.path)},
    )
    assert len(Outcome(ended.returncode, ended.stdout, ended.stderr).data["items"]) == 1


def test_a_relative_path_in_a_removed_working_folder_is_no_bug(project: Project, tmp_path: Path):
    script = 'mkdir "$1" && cd "$1" && rmdir "$1" && shift && exec "$@"'
    for line in (("backup", "copy.db"), ("show", ULID), (*SEND, "--attach", "f")):
        ended = subprocess.run(
            ["sh", "-c", script, "sh", str(tmp_path / "gone"), command_path(), "--json", *line],
            capture_output=True,
            env={**os.environ, "INBOX_DB": str(project.path)},
        )
        outcome = Outcome(ended.returncode, ended.stdout, ended.stderr)
        assert outcome.error["code"] in ("io_error", "not_found", "usage"), outcome


# -- permissions ---------------------------------------------------------------------------


def _as_nobody(*rights: str) -> list[str]:
    """How to run a command as a user for whom file modes count; root's are ignored."""
    if not AS_ROOT:
        return []
    setpriv = shutil.which("setpriv")
    if setpriv is None:
        pytest.skip("root without setpriv: no user for whom modes count")
    return [setpriv, "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups", *rights]


@pytest.fixture
def strangers() -> list[str]:
    """A user who has no part in anything."""
    prefix = _as_nobody()
    may_run(prefix)
    return prefix


@pytest.fixture
def readers() -> list[str]:
    """One who may read everything, wherever it lies, and write only what is its own."""
    right = "+dac_read_search"
    prefix = _as_nobody("--inh-caps", right, "--ambient-caps", right)
    may_run(prefix)
    return prefix


@pytest.fixture
def passable() -> Iterator[Path]:
    """A folder that every user can come to: those of pytest are for one user only, and any other
    pytest that starts meanwhile sees to that."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)
    yield folder
    shutil.rmtree(folder)


def may_run(prefix: list[str]) -> None:
    """The other user must be able to start the program at all."""
    if not _has_run((*prefix, command_path(), "schema", "where")):
        pytest.skip("another user cannot run the installed program")


@functools.cache
def _has_run(line: tuple[str, ...]) -> bool:
    return subprocess.run(line, capture_output=True, cwd="/").returncode == 0


@contextlib.contextmanager
def read_only(project: Project) -> Iterator[None]:
    """The database lies in a folder that its own user may not write to, nor to its file."""
    folder, top = project.path.parent, project.folder.parent
    if AS_ROOT:
        for path in (top, *top.rglob("*")):
            os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    folder.chmod(0o500)
    project.path.chmod(0o400)
    try:
        yield
    finally:
        folder.chmod(0o700)
        project.path.chmod(0o600)


def test_a_read_only_folder_can_be_read_or_says_why_not(project: Project, readers):
    with read_only(project):
        for line in EVERY_KIND:
            ended = _as(readers, project, *line)
            if ended.code == 0:
                assert line[0] in ("list", "where", "stats", "--agent"), line
            elif line[0] == "show":
                assert ended.error["code"] in ("not_found", "read_only")
            else:
                assert ended.error["code"] == "read_only", (line, ended)
                assert ended.error["hint"]


RUN_READERS = ("status", "ready", "blocked", "run list", "run show", "graph", "attempt list")
RUN_WRITERS = (
    "dispatch",
    "cancel a",
    "run pause",
    "task add --task c --title C",
    "dep remove b --on a",
)


@pytest.mark.parametrize("in_use", [True, False], ids=["in_use", "not_in_use"])
def test_a_run_in_a_read_only_folder_is_shown_as_it_was_or_says_why_not(passable, readers, in_use):
    """SQLite needs the log and its index to read: they are there while somebody else works."""
    project = Enterprise(passable / "project").tasks("a", "b")
    with project.bus("w1") as bus:
        bus.send(to="w2", subject="the log is there once somebody has written")
        if not in_use:
            bus.close()
        with read_only(project):
            for line in RUN_READERS if in_use else RUN_READERS[:2]:
                ended = _as(readers, project, *line.split(), program="orch")
                if in_use:
                    assert ended.data.get("stale", True), line
                else:
                    assert ended.error["code"] == "read_only", (line, ended)
            for line in RUN_WRITERS if in_use else RUN_WRITERS[:2]:
                ended = _as(readers, project, *line.split(), program="orch")
                assert ended.error["code"] == "read_only", (line, ended)
                assert ended.error["hint"]


# What can be said without writing anything comes first: how it stands, or what is in the way.
LOOKS_FIRST = {
    *("dep add", "drive", "wait"),
    *("council ballot", "council report", "council show", "council suggest", "council tally"),
    *("council wait", "council group dismiss", "council group merge", "council group note"),
    "council group split",
}
WRITERS = [
    (program, command)
    for program, cells in (("inbox", CELLS), ("orch", ORCH_CELLS))
    for command, row in cells.items()
    if isinstance(row["busy"], Cell) and row["busy"].code is None and command not in LOOKS_FIRST
]


@pytest.mark.parametrize("program, command", WRITERS)
def test_every_command_that_writes_says_at_once_that_it_may_not(
    passable, readers, program, command
):
    """At once: it would wait for other writers for an hour, and nobody waits that long here."""
    project = Enterprise(passable / "project")
    cell = {"inbox": CELLS, "orch": ORCH_CELLS}[program][command]["ok"]
    assert isinstance(cell, Cell)
    arguments = cell.arguments(project)
    with project.bus("w1") as bus:
        bus.send(to="w2", subject="the log is there once somebody has written")
        with read_only(project):
            ended = _as(readers, project, *arguments, program=program)
    assert ended.error["code"] == "read_only", ended
    assert ended.error["hint"]


def test_a_database_of_another_user_is_no_missing_one(passable: Path, strangers):
    project = Project(passable / "project")
    if not AS_ROOT:
        project.path.parent.chmod(0)
    try:
        for line in (SEND, ("list",), ("where",)):
            ended = _as(strangers, project, "--db", str(project.path), *line)
            assert ended.error["code"] == "read_only", ended
            assert "Permission denied" in ended.error["message"]
    finally:
        project.path.parent.chmod(0o700)


def _as(prefix: list[str], project: Project, *line: str, program: str = "inbox") -> Outcome:
    ended = subprocess.run(
        [*prefix, command_path(program), "--json", *line],
        cwd=project.folder,
        # What waits for writers that are not there runs into the time-out.
        env={
            **os.environ,
            "INBOX_BUSY_TIMEOUT": "3600",
            "XDG_STATE_HOME": str(project.folder.parent / "state"),
        },
        capture_output=True,
        timeout=PATIENCE_SECONDS,
    )
    return Outcome(ended.returncode, ended.stdout, ended.stderr)


# -- a full disk ---------------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = AS_ROOT and sys.platform == "linux"
    if mounted:
        command = ["mount", "-t", "tmpfs", "-o", "size=2m,mode=777", "tmpfs", str(place)]
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    if not mounted:
        pytest.skip("no file system can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_disk_is_told_and_nothing_is_lost(small_disk: Path, tmp_path: Path):
    project = Project(small_disk / "project")
    acknowledged = []
    for _ in range(200):
        ended = project.json(*SEND, "--body-file", "-", stdin=b"x" * 50_000)
        if ended.code != 0:
            assert ended.error["code"] == "disk_full", ended
            break
        acknowledged.append(ended.data["thread"]["id"])
    else:
        pytest.fail("the disk was never full")

    big = tmp_path / "big"
    big.write_bytes(b"y" * 3_000_000)
    assert project.json(*SEND, "--attach", str(big)).error["code"] == "disk_full"
    thread = project.json("list", "--limit", "1000").data["items"]
    assert [item["id"] for item in thread] == acknowledged
    assert list((project.path.parent / "artifacts").rglob("*-*")) == []
    subprocess.run(["mount", "-o", "remount,size=20m", str(small_disk)], check=True)
    assert project.json(*SEND).code == 0
    assert project.json("doctor", "--verify").data["problems"] == 0


def test_a_limit_on_file_sizes_is_a_full_disk_too(project: Project):
    """RLIMIT_FSIZE: what a container or `ulimit -f` sets."""
    before = project.contents()
    script = 'ulimit -f 64; exec "$@"'
    ended = subprocess.run(
        ["sh", "-c", script, "sh", command_path(), "--json", *SEND, "--body-file", "-"],
        cwd=project.folder,
        input=b"x" * 1_000_000,
        capture_output=True,
    )
    outcome = Outcome(ended.returncode, ended.stdout, ended.stderr)

    assert outcome.code == 6
    assert outcome.error["code"] in ("disk_full", "io_error")
    assert project.contents() == before


@pytest.mark.parametrize("command", [("init",), ("list",), SEND, ("where",), ("doctor",)])
@pytest.mark.parametrize(
    "kind, said", [("folder", "a folder"), ("fifo", "a named pipe"), ("socket", "a socket")]
)
def test_what_is_no_file_is_named_for_what_it_is_and_left_alone(
    tmp_path, monkeypatch, kind, said, command
):
    path = tmp_path / ".inbox" / "bus.db"
    path.parent.mkdir()
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        monkeypatch.chdir(path.parent)  # the name has to be short
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(path.name)
    before = sorted(tmp_path.rglob("*"))

    error = run("--json", *command, folder=tmp_path).error

    assert (error["code"], error["details"]["path"]) == ("wrong_database", str(path))
    assert f"is {said}" in error["message"]
    assert "--db" in error["hint"]
    assert sorted(tmp_path.rglob("*")) == before
    assert not path.is_file()


def test_a_project_that_is_given_for_its_database_is_told_where_that_is(project: Project):
    error = run("--json", "list", "--db", str(project.folder)).error

    assert error["code"] == "wrong_database"
    assert str(project.path) in error["hint"]


@pytest.mark.parametrize("command", [("init",), ("list",), SEND, ("where",)])
@pytest.mark.parametrize("target", ["real/bus.db", "nowhere/bus.db"])
def test_a_link_in_the_place_of_the_database_is_not_followed(tmp_path, target, command):
    (tmp_path / "real").mkdir()
    run("init", "--db", str(tmp_path / "real" / "bus.db"))
    run("init", str(tmp_path))  # what is above would be found
    below = tmp_path / "project"
    (below / ".inbox").mkdir(parents=True)
    (below / ".inbox" / "bus.db").symlink_to(tmp_path / target)
    before = sorted(tmp_path.rglob("*"))

    error = run("--json", *command, folder=below).error

    assert error["code"] == "unsafe_link"
    assert sorted(tmp_path.rglob("*")) == before
    if command == ("init",):
        assert run("--json", "init", str(below)).error["code"] == "unsafe_link"
