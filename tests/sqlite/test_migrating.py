"""From an older schema to this one: once, whole, and to the same as a new database has."""

import contextlib
import sqlite3

import pytest
from sqlite_utils import Database

from inbox_orch.inbox import Bus
from inbox_orch.inbox.cli import COMMANDS
from inbox_orch.migrations import SCHEMA_VERSION
from inbox_orch.migrations.apply import STEPS, migrate
from inbox_orch.shared.store.sqlite.care import fresh_schema
from sqlite.opening import opened_at_once, schema_of
from support.buses import refused
from support.clicktree import AFTERWARDS, NEEDED
from support.commands import Project
from support.crashes import database_path, make_old_project


def set_version(path, version):
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()


def test_there_is_a_step_for_every_version():
    with contextlib.closing(Database(memory=True)) as empty:
        assert len(STEPS.pending(empty)) == SCHEMA_VERSION


def test_all_steps_one_by_one_lead_to_the_schema_of_a_new_database(tmp_path):
    make_old_project(tmp_path / "old")
    new = Project(tmp_path / "new")
    Bus.open(database_path(tmp_path / "old")).close()

    assert schema_of(database_path(tmp_path / "old")) == schema_of(new.path) == fresh_schema()


def test_of_16_processes_that_open_an_old_database_one_migrates_it(tmp_path):
    make_old_project(tmp_path)

    migrated = [answer[0] for answer in opened_at_once(database_path(tmp_path), 16)]

    assert sorted(migrated) == [0] * 15 + [1]
    assert schema_of(database_path(tmp_path)) == fresh_schema()


def test_what_was_begun_under_an_older_schema_is_still_begun_under_this_one():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    migrate(connection, stop_before="0003")
    connection.execute(
        "INSERT INTO run (id, name, title, state, leader, on_failure, config, created_at)"
        " VALUES (?, 'r', 'R', 'open', 'leader', 'continue', '{}', 1)",
        ("0" * 26,),
    )
    columns = "run_id, kind, data, owner_boot_id, owner_process, owner_started, owner_namespace"
    connection.execute(
        f"INSERT INTO intent (number, {columns}, opened_at)"
        " VALUES (7, ?, 'dispatch', '{}', 'boot', 1, 2, 3, 4)",
        ("0" * 26,),
    )

    migrate(connection)

    kept = connection.execute(f"SELECT number, {columns}, opened_at FROM intent").fetchall()
    assert kept == [(7, "0" * 26, "dispatch", "{}", "boot", 1, 2, 3, 4)]
    connection.close()


WITHOUT_A_DATABASE = {"schema", "guide", "skill", "setup", "completion", "help", "mcp"}


@pytest.fixture
def newer(tmp_path):
    """A database that a later release has migrated."""
    project = Project(tmp_path / "project")
    project.send()
    set_version(project.path, 9999)
    return project


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - WITHOUT_A_DATABASE))
def test_a_newer_schema_is_refused_by_every_command_and_nothing_is_written(
    newer, command, tmp_path
):
    before = newer.path.read_bytes(), sorted(p.name for p in newer.path.parent.iterdir())
    needed = list(NEEDED.get(command, ()))
    if command == "backup":
        needed = [str(tmp_path / "copy.db")]

    words = ("hook", "stop") if command == "hook" else (command,)

    outcome = newer.json(*words, *needed, *AFTERWARDS.get(command, ()))

    assert (outcome.code, outcome.error["code"]) == (6, "schema_newer")
    assert (newer.path.read_bytes(), sorted(p.name for p in newer.path.parent.iterdir())) == before


def test_a_schema_that_becomes_newer_under_an_open_database_stops_its_writes(tmp_path):
    project = Project(tmp_path / "project")
    with project.bus("leader") as bus:
        set_version(project.path, 9999)
        with refused("schema_newer"):
            bus.send(to="w1", subject="task")
