"""What a run of an agent has cost, and which session it was, as the payload of a result whose words
are its body."""

import json
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .reading import Reading

USAGE_SCHEMA = "inbox.usage/1"
SESSION_VARIABLE = "INBOX_SESSION"
"""The environment of a command has here the session that it may go on with."""
_MOST_CHARACTERS = 200


class Session(NamedTuple):
    """A conversation of an agent, by the id that it goes by there. `agent` is the name of one that
    is known, None for that of any other command. `resumed`: it was gone on with; `lost`: the id of
    one that was to be gone on with, and was not there any more."""

    id: str
    agent: str | None = None
    resumed: bool = False
    lost: str | None = None

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


def is_usage(payload: str) -> bool:
    """Whether a payload only says what the work has cost, so that the result is the body."""
    value = json.loads(payload)
    return isinstance(value, dict) and value.get("schema") == USAGE_SCHEMA


def usage_of(name: str, reading: "Reading") -> dict[str, Any]:
    """What is kept of a run beside its message; the names are those that reports look for."""
    tokens = {
        "input_tokens": reading.input_tokens,
        "cached_input_tokens": reading.cached_input_tokens,
        "output_tokens": reading.output_tokens,
    }
    cost = reading.cost_microdollars
    facts = {
        "schema": USAGE_SCHEMA,
        "agent": name,
        "session_id": reading.session,
        "resumed_session_id": reading.resumed,
        "lost_session_id": reading.lost,
        "cost_microdollars": cost,
        "cost_usd": None if cost is None else cost / 1_000_000,
        "usage": {key: value for key, value in tokens.items() if value is not None} or None,
    }
    return {key: value for key, value in facts.items() if value is not None}


def session_in(payload: str | None) -> Session | None:
    """The session that a result says it comes from: the `session_id` of its payload. None where it
    says none, or one that could be no word of a command line."""
    value = None if payload is None else json.loads(payload)
    if not isinstance(value, dict) or not is_session_id(value.get("session_id")):
        return None
    ours = value.get("schema") == USAGE_SCHEMA and isinstance(value.get("agent"), str)
    lost = value.get("lost_session_id")
    return Session(
        value["session_id"],
        value["agent"] if ours else None,
        ours and "resumed_session_id" in value,
        lost if ours and is_session_id(lost) else None,
    )


def is_session_id(value: object) -> bool:
    """Whether it is an id that a command can be given: it begins with no dash, and has nothing in
    it that a shell would read."""
    return (
        isinstance(value, str)
        and 0 < len(value) <= _MOST_CHARACTERS
        and value[0].isalnum()
        and all(c.isascii() and (c.isalnum() or c in "._:-") for c in value)
    )
