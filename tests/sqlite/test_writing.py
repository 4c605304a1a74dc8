"""The watcher of writes sees those that took no lock first."""

import sqlite3

import pytest

from sqlite.writing import Writing, watched


@pytest.fixture
def table():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    connection.execute("CREATE TABLE t (x)")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    "statements, faults, writes",
    [
        (["BEGIN IMMEDIATE", "INSERT INTO t VALUES (1)", "COMMIT"], 0, 1),
        (["BEGIN IMMEDIATE", "UPDATE t SET x = 1", "ROLLBACK"], 0, 1),
        (["INSERT INTO t VALUES (1)"], 1, 0),
        (["BEGIN", "SELECT * FROM t", "DELETE FROM t", "COMMIT"], 1, 0),
        (["BEGIN IMMEDIATE", "COMMIT", "REPLACE INTO t VALUES (1)"], 1, 0),
        (["BEGIN IMMEDIATE", "ROLLBACK", "DELETE FROM t"], 1, 0),
        (["WITH a AS (SELECT 1 AS x) INSERT INTO t SELECT x FROM a"], 1, 0),
        (
            [
                "BEGIN IMMEDIATE",
                "SAVEPOINT a",
                "ROLLBACK TO a",
                "INSERT INTO t VALUES (1)",
                "COMMIT",
            ],
            0,
            1,
        ),
        (["WITH a AS (SELECT 1 AS x) SELECT x FROM a", "PRAGMA user_version"], 0, 0),
    ],
)
def test_a_write_without_the_lock_is_seen(table, statements, faults, writes):
    writing = Writing()
    watched(table, writing)
    for statement in statements:
        table.execute(statement)
    assert (len(writing.faults), writing.writes) == (faults, writes)
