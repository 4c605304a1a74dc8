"""The first result of every call that came with a key, and how two requests are compared.

Rows of `request`. A key is unique for a command and an agent.
"""

from inbox_orch.shared.store.engine import Session

from ..errors import InboxOrchError
from ..ids import check_key


class Request:
    """A call that may come with a key; `digest` is that of everything it asks for."""

    def __init__(
        self,
        command: str,
        agent: str,
        key: str | None,
        digest: str,
    ) -> None:
        self.command = command
        self.agent = agent
        self.key = key
        self.digest = digest


def first_result(tx: Session, request: Request) -> str | None:
    """The stored response of an earlier call with this key, None for a new one.

    Errors: `key_conflict` when that was another request; `usage` for a key that cannot be one.
    """
    command, agent, key = request.command, request.agent, request.key
    if key is None:
        return None
    row = tx.one(
        "SELECT digest, response FROM request WHERE command = ? AND agent = ? AND key = ?",
        (command, agent, check_key(key)),
    )
    if row is None:
        return None
    if row[0] != request.digest:
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
    assert request.key is not None
    key = check_key(request.key)
    tx.run(
        "INSERT INTO request (command, agent, key, digest, response, thread_id, created_at)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (request.command, request.agent, key, request.digest, response, thread_id, now_ms),
    )
