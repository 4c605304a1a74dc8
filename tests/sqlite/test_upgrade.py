"""A database of every earlier schema, with what its release could have written into it: opened,
migrated by many at once, sound, and worked on; and a program that is older than its database."""

import contextlib
import shutil
import sqlite3
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.migrations import SCHEMA_VERSION
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.shared.store.sqlite import database
from inbox_orch.shared.store.sqlite.care import fresh_schema
from sqlite import old_databases
from sqlite.opening import opened_at_once, schema_of
from support.buses import refused
from support.orch_matrix import Enterprise
from support.runs import Site

VERSIONS = range(1, SCHEMA_VERSION + 1)
PROCESSES = 32


@pytest.fixture(params=VERSIONS, ids=lambda version: f"schema_{version}")
def old(request, tmp_path: Path):
    """A project whose database has an earlier schema; (path, version)."""
    site = Site(tmp_path)
    try:
        old_databases.fill(site, request.param)
        path = site.office.path
    finally:
        site.close()
    newest = tmp_path / "newest.db"
    shutil.move(path, newest)
    old_databases.as_of(newest, path, request.param)
    return path, request.param


def rows_of(path: Path) -> dict[str, int]:
    """How many rows each table has."""
    with contextlib.closing(sqlite3.connect(path)) as connection:
        tables = [
            r[0] for r in connection.execute("SELECT name FROM sqlite_schema WHERE type='table'")
        ]
        return {t: connection.execute(f"SELECT count(*) FROM {t}").fetchone()[0] for t in tables}


def test_an_old_database_is_migrated_once_by_32_processes_and_is_sound(old):
    path, version = old
    before = rows_of(path)
    assert before["thread"] >= 8
    assert (before.get("attempt", 0) >= 3) is (version >= old_databases.SCHEDULER)

    answers = opened_at_once(path, PROCESSES)

    visible = {answer[1] for answer in answers}
    migrated = sorted(answer[0] for answer in answers)
    assert migrated == [0] * (PROCESSES - 1) + [int(version < SCHEMA_VERSION)]
    assert len(visible) == 1
    assert schema_of(path) == fresh_schema()
    after = rows_of(path)
    kept = {
        table: count for table, count in before.items() if not table.startswith(("_", "sqlite_"))
    }
    assert {table: after[table] for table in kept} == kept
    with Bus.open(path, agent="w1") as bus:
        for found in (bus.doctor(verify=True), Scheduler(bus).doctor(verify=True)):
            assert found.problems == 0, [c for c in found.checks if c.status == "problem"]


def test_what_was_begun_under_an_older_schema_is_carried_on(old):
    path, version = old
    with Bus.open(path, agent="w1") as bus:
        pending = bus.list(states_wanted=["pending"], mailboxes=["w1"]).items
        claimed = bus.claim(pending[0].id)
        bus.done(claimed.thread.id, str(claimed.lease.token), body="done")
        if version >= old_databases.SCHEDULER:
            scheduler = Scheduler(bus)
            run = next(r for r in scheduler.runs() if r.repository)
            scheduler.reconcile(run)
            keys = [item["key"] for item in scheduler.dispatch(run).as_json()["items"]]
            assert {"d", "after"} <= set(keys)
        for found in (bus.doctor(verify=True), Scheduler(bus).doctor(verify=True)):
            assert found.problems == 0, [c for c in found.checks if c.status == "problem"]


# -- an older program ----------------------------------------------------------------------


@pytest.mark.parametrize("program", VERSIONS[:-1], ids=lambda version: f"program_{version}")
def test_an_older_program_refuses_a_newer_database_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: int
):
    site = Site(tmp_path)
    old_databases.fill(site, SCHEMA_VERSION)
    site.close()
    path = site.office.path
    before = path.read_bytes(), sorted(p.name for p in path.parent.iterdir())
    monkeypatch.setattr(database, "SCHEMA_VERSION", program)

    with refused("schema_newer") as failure:
        Bus.open(path, agent="w1").close()

    assert failure.value.details == {"schema": SCHEMA_VERSION, "supported": program}
    assert (path.read_bytes(), sorted(p.name for p in path.parent.iterdir())) == before


ORCH = {
    "run init": ("--title", "T"),
    "run list": (),
    "run show": (),
    "run close": (),
    "run cancel": (),
    "task add": ("--task", "z", "--title", "Z"),
    "task show": ("a",),
    "dep add": ("b", "--on", "a"),
    "ready": (),
    "blocked": (),
    "status": (),
    "dispatch": (),
    "wait": ("--wait", "0"),
    "drive": ("--wait", "0"),
    "reconcile": (),
    "retry": ("a",),
    "cancel": ("a",),
    "skip": ("a",),
    "adopt": ("a",),
    "integrate": (),
    "conflicts": (),
    "cleanup": (),
    "attempt list": (),
    "attempt show": ("a/1",),
    "patch rollback": ("a/1/1",),
    "purge": ("--env", "PATH"),
    "checkpoint list": (),
    "checkpoint show": ("a/1/1",),
    "checkpoint make": ("a/1",),
    "checkpoint restore": ("a/1/1",),
    "gate list": (),
    "patch list": (),
    "gate run": (),
    "policy show": (),
    "policy explain": ("a.py",),
    "policy check": (),
    "graph": (),
    "timeline": (),
    "critical-path": (),
    "plan export": (),
    "doctor": (),
    "council list": (),
}


@pytest.fixture(scope="module")
def newer(tmp_path_factory) -> Enterprise:
    """A project whose database a later release has migrated."""
    enterprise = Enterprise(tmp_path_factory.mktemp("newer") / "project").tasks("a", "b")
    with contextlib.closing(sqlite3.connect(enterprise.path, isolation_level=None)) as connection:
        connection.execute("PRAGMA user_version = 9999")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    return enterprise


@pytest.mark.parametrize("command", ORCH)
def test_so_does_every_command_of_orch(newer: Enterprise, command: str):
    before = newer.path.read_bytes(), newer.files()

    outcome = newer.orch(*command.split(), *ORCH[command], "--json")

    assert (outcome.code, outcome.error["code"]) == (6, "schema_newer")
    assert (newer.path.read_bytes(), newer.files()) == before
