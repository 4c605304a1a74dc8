"""Bring a database to the newest schema, inside a transaction that the caller has begun."""

from typing import TYPE_CHECKING

from sqlite_utils import Database
from sqlite_utils.migrations import Migrations

from . import (
    APPLICATION_ID,
    SCHEMA_VERSION,
    m0001_bus,
    m0002_scheduler,
    m0003_scheduler_whole,
    m0004_council,
    m0005_result_schema,
    m0006_task_harvest,
    m0007_visits,
    m0008_patches,
)

if TYPE_CHECKING:
    from inbox_orch.shared.store.sqlite.sessions import Connection

_MODULES = (
    m0001_bus,
    m0002_scheduler,
    m0003_scheduler_whole,
    m0004_council,
    m0005_result_schema,
    m0006_task_harvest,
    m0007_visits,
    m0008_patches,
)

STEPS = Migrations("inbox_orch")
for _number, _step in enumerate(_MODULES, start=1):
    STEPS(name=f"{_number:04d}")(_step.apply)


def migrate(connection: "Connection", *, stop_before: str | None = None) -> None:
    """Apply the steps that are missing and stamp the version.

    The caller holds the gate and an open `BEGIN IMMEDIATE`: reading what is pending outside a
    transaction made racing processes fail, and the step and its record belong together.
    A newer schema than ours is left alone; the code that opened the file checks for it.
    """
    assert connection.in_transaction
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if version >= SCHEMA_VERSION:
        return
    factory = connection.row_factory
    connection.row_factory = None
    try:
        STEPS.apply(Database(connection, recursive_triggers=False), stop_before=stop_before)
    finally:
        connection.row_factory = factory
    applied = SCHEMA_VERSION if stop_before is None else int(stop_before) - 1
    connection.execute(f"PRAGMA application_id={APPLICATION_ID}")
    connection.execute(f"PRAGMA user_version={applied}")
    assert connection.in_transaction, "a step must not commit"
