"""The first result of every call that came with a key, and how two requests are compared.

Rows of `request`. A key is unique for a command and an agent.
"""

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from .digests import sha256_hex


def digest_of(request: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical form of a request."""
    canonical = json.dumps(request, sort_keys=True, separators=(",", ":"))
    return sha256_hex(canonical.encode())


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
