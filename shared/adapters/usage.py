"""What a run of an agent has cost, as the payload of a result whose words are its body."""

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .reading import Reading

USAGE_SCHEMA = "inbox.usage/1"


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
        "cost_microdollars": cost,
        "cost_usd": None if cost is None else cost / 1_000_000,
        "usage": {key: value for key, value in tokens.items() if value is not None} or None,
    }
    return {key: value for key, value in facts.items() if value is not None}
