"""The first result of every call that came with a key, and how two requests are compared.

Rows of `request`. A key is unique for a command and an agent.
"""

from inbox_orch.shared.store.engine import Session

from ..errors import InboxOrchError
from ..ids import check_key


def first_result(tx: Session, command: str, agent: str, key: str | None, digest: str) -> str | None:
    """The stored response of an earlier call with this key, None for a new one.

    Errors: `key_conflict` when that was another request; `usage` for a key that cannot be one.
    """
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
    tx: Session,
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
    tx.run(
        "INSERT INTO request (command, agent, key, digest, response, thread_id, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (command, agent, key, digest, response, thread_id, now_ms),
    )
