"""What workers say that their work has cost, as far as their results name it.

Nothing here is measured or checked: it is what they reported.
"""

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

# The names that agents' own reports use, the first that is there counts.
_USD = ("cost_usd", "total_cost_usd")
_INPUT = ("input_tokens", "prompt_tokens")
_OUTPUT = ("output_tokens", "completion_tokens")
_MOST = 1e15


class Cost(NamedTuple):
    """Of one attempt, or of several. None where nothing was said."""

    usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None

    def as_json(self) -> dict[str, float | int | None]:
        return self._asdict()


def cost_in(payload: str | None) -> Cost | None:
    """What the payload of a result says: at its top, or the tokens in `usage`."""
    value = None if payload is None else json.loads(payload)
    if not isinstance(value, dict):
        return None
    usage = value.get("usage")
    places = [value, usage] if isinstance(usage, dict) else [value]
    incoming, outgoing = _first(places, _INPUT), _first(places, _OUTPUT)
    cost = Cost(
        _first(places, _USD),
        None if incoming is None else int(incoming),
        None if outgoing is None else int(outgoing),
    )
    return None if cost == Cost() else cost


def total(costs: Iterable[Cost]) -> Cost:
    """Of all of them."""
    every = list(costs)
    usd = [c.usd for c in every if c.usd is not None]
    incoming = [c.input_tokens for c in every if c.input_tokens is not None]
    outgoing = [c.output_tokens for c in every if c.output_tokens is not None]
    return Cost(
        math.fsum(usd) if usd else None,
        sum(incoming) if incoming else None,
        sum(outgoing) if outgoing else None,
    )


def _first(places: Iterable[Mapping[str, Any]], names: tuple[str, ...]) -> float | None:
    for place in places:
        for name in names:
            found = place.get(name)
            if isinstance(found, bool) or not isinstance(found, (int, float)):
                continue
            if 0 <= found < _MOST:
                return float(found)
    return None
