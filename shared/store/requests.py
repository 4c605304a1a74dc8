"""The first result of every call that came with a key, and how two requests are compared.

Rows of `request`. A key is unique for a command and an agent.
"""

from typing import NamedTuple

from inbox_orch.shared.store.engine import Session

from ..errors import InboxOrchError
from ..ids import check_key


class Request(NamedTuple):
    """A call that may come with a key; `digest` is that of everything it asks for."""

    command: str
    agent: str
    key: str | None
    digest: str


def first_result(tx: Session, request: Request) -> str | None:
    """The stored response of an earlier call with this key, None for a new one.

    Errors: `key_conflict` when that was another request; `usage` for a key that cannot be one.
    """
    command, agent, key, digest = request
    if key is None:
        return None
    row = tx.one(
        "SELECT digest, response FROM request WHERE command = ? AND agent = ? AND key = ?",
        (command, agent, check_key(key)),
    )
    if row is None:
        return None
    if row[0] != digest:
        raise InboxOrchError(
            "key_conflict",
            f"the key {key!r} was used by {agent} for another `{command}`",
            hint="use a new key for a new request",
            details={"key": key, "command": command, "agent": agent},
        )
    return str(row[1])


def store(
    tx: Session, request: Request, response: str, now_ms: int, *, thread_id: str | None = None
) -> None:
    """Remember a result under the key of its request."""
    command, agent, key, digest = request
    assert key is not None
    tx.run(
        "INSERT INTO request (command, agent, key, digest, response, thread_id, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (command, agent, check_key(key), digest, response, thread_id, now_ms),
    )
