"""Rows of `request`: the first result of every call that came with a key."""

import sqlite3


def find(
    connection: sqlite3.Connection, command: str, agent: str, key: str
) -> tuple[str, str] | None:
    """(digest of the request, stored response) of an earlier call with this key."""
    row = connection.execute(
        "SELECT digest, response FROM request WHERE command = ? AND agent = ? AND key = ?",
        (command, agent, key),
    ).fetchone()
    return None if row is None else (row[0], row[1])


def store(
    connection: sqlite3.Connection,
    *,
    command: str,
    agent: str,
    key: str,
    digest: str,
    response: str,
    thread_id: str | None,
    now_ms: int,
) -> None:
    """Remember a result under its key."""
    connection.execute(
        "INSERT INTO request (command, agent, key, digest, response, thread_id, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (command, agent, key, digest, response, thread_id, now_ms),
    )
