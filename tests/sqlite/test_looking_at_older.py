"""Commands that look leave the schema of an older release as it is; those that write migrate it."""

import contextlib
import shutil
import sqlite3

import pytest

from inbox_orch.migrations import SCHEMA_VERSION
from sqlite.old_databases import WHOLE_SCHEDULER, as_of, fill
from support.commands import Project, run
from support.runs import Site

INBOX_LOOKS = [
    ("where",),
    ("doctor",),
    ("doctor", "--verify"),
    ("stats",),
    ("list", "--count"),
    ("show", "THREAD"),
    ("fetch", "--peek"),
    ("hook", "session-start"),
    ("hook", "stop"),
    ("prime",),
    ("init",),
    ("export",),
    ("prune", "--older-than", "0", "--dry-run"),
    (),
]
ORCH_LOOKS = [
    ("status",),
    ("ready",),
    ("blocked",),
    ("doctor", "--verify"),
    ("run", "list"),
    ("run", "show"),
    ("attempt", "list"),
    ("gate", "list"),
    ("task", "show", "a"),
    ("graph",),
    ("timeline",),
    ("critical-path",),
    ("report",),
    ("plan", "export"),
    ("conflicts",),
    ("cleanup", "--dry-run"),
    ("council", "list"),
]


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A site with something of everything that a scheduler without councils could hold: those are
    runs, too, and would be a second one that is open."""
    made = Site(tmp_path_factory.mktemp("filled"))
    fill(made, WHOLE_SCHEDULER)
    made.close()
    return made


@pytest.fixture(params=range(1, SCHEMA_VERSION))
def older(request, filled, tmp_path):
    project = Project(tmp_path / "p")
    project.path.unlink()
    as_of(filled.office.path, project.path, request.param)
    stored = filled.office.path.parent / "artifacts"
    shutil.copytree(stored, project.path.parent / "artifacts", dirs_exist_ok=True)
    return project, request.param


def _version(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


def _a_thread(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT id FROM thread LIMIT 1").fetchone()[0]


def _a_run(path):
    with contextlib.closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT name FROM run ORDER BY id LIMIT 1").fetchone()[0]


def test_what_looks_at_the_bus_reads_an_older_schema_and_leaves_it(older):
    project, version = older
    thread = _a_thread(project.path)
    for words in INBOX_LOOKS:
        line = [thread if word == "THREAD" else word for word in words]
        outcome = project.run("--json", *line, INBOX_AGENT="leader")
        assert outcome.code == 0, (words, outcome)
        assert _version(project.path) == version, words


def test_what_looks_at_runs_reads_an_older_schema_and_leaves_it(older):
    project, version = older
    chosen = {} if version == 1 else {"ORCH_RUN": _a_run(project.path)}
    for words in ORCH_LOOKS:
        outcome = run("--json", *words, folder=project.folder, program="orch", **chosen)
        assert outcome.code in (0, 3, 4, 11), (words, outcome, chosen)
        assert b"internal" not in outcome.stdout, (words, outcome)
        assert _version(project.path) == version, words
    listed = run("--json", "run", "list", folder=project.folder, program="orch")
    assert (len(listed.data["items"]) > 0) == (version > 1)


def test_where_and_doctor_say_which_schema_there_is(older):
    project, version = older
    assert project.json("where").data["schema_version"] == version
    (check,) = [c for c in project.json("doctor").data["items"] if c["name"] == "schema"]
    assert check["status"] == "ok"
    assert f"version {version}" in check["text"]
    assert f"to {SCHEMA_VERSION}" in check["text"]


def test_a_backup_before_an_upgrade_keeps_the_older_schema(older, tmp_path):
    project, version = older
    assert project.json("backup", str(tmp_path / "copy.db")).code == 0
    assert project.json("send", "--agent", "x", "--to", "y", "--subject", "s").code == 0
    assert _version(project.path) == SCHEMA_VERSION
    assert _version(tmp_path / "copy.db") == version


def test_what_was_opened_to_look_migrates_when_it_comes_to_writing(older):
    project, version = older
    from inbox_orch.inbox import Bus

    with Bus.open(project.path, agent="x", looks=True) as bus:
        before = bus.list(limit=500).items
        assert _version(project.path) == version
        bus.send(to="y", subject="written")
        assert _version(project.path) == SCHEMA_VERSION
        assert len(bus.list(limit=500).items) == len(before) + 1
