"""What an agent has printed, read into a result, its cost, and what it means for the task.

Pure but for the data that `facts` has. The words of an agent that ended well decide nothing: it may
well have worked on a text about rate limits.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from .facts import LINES, Agent, Place, Shape, Sums

DONE, FAILED, UNREAD = "done", "failed", "unread"
RATE_LIMIT, LOG_IN = "rate_limit", "log_in"
TURN_LIMIT, REFUSAL = "turn_limit", "refusal"
SESSION_LOST = "session_lost"
_ORDER = (REFUSAL, TURN_LIMIT, LOG_IN, RATE_LIMIT, SESSION_LOST)
MOST_BYTES = 32 * 1024 * 1024
"""Of one JSON object; what is longer is not read."""
_MOST_OBJECTS = 200_000
_MOST = 10**15
_MICRO = 1_000_000
_BEGINS = re.compile(rb"^[\[{]", re.MULTILINE)
_DECODER = json.JSONDecoder()


class Reading(NamedTuple):
    """What became of one run of an agent.

    `outcome` is `done`, `failed`, `rate_limit`, `log_in`, `turn_limit`, `refusal`, `session_lost`
    (that which it was to go on with is not there), or `unread` when nothing of its output could be
    understood. `cost_microdollars` and the tokens are what the agent itself reports, None where it
    says nothing; input includes cached input. `resumed` and `lost` are ids of sessions, by whoever
    ran it: the one that it went on with, and one that was not there.
    """

    outcome: str
    message: str | None = None
    reason: str | None = None
    session: str | None = None
    cost_microdollars: int | None = None
    input_tokens: int | None = None
    cached_input_tokens: int | None = None
    output_tokens: int | None = None
    resumed: str | None = None
    lost: str | None = None


class Reader:
    """Takes what an agent prints, a chunk at a time, and keeps what the facts ask for."""

    def __init__(self, agent: Agent) -> None:
        self._prints = agent.prints
        self._shapes = tuple(_shapes(agent))
        self._rest = bytearray()
        self._objects: list[Mapping[str, Any]] = []
        self._skipping = False

    def add(self, chunk: bytes) -> None:
        """The next bytes of its standard output."""
        self._rest += chunk
        if self._prints.form == LINES:
            *whole, rest = self._rest.split(b"\n")
            self._rest = bytearray(rest)
            for line in whole:
                self._take(bytes(line))
        if len(self._rest) > MOST_BYTES:
            self._rest.clear()
            self._skipping = True

    def finish(self, exit_status: int | None, errors: bytes) -> Reading:
        """What it all means; `exit_status` is None for an agent that was killed, `errors` the tail
        of its standard error."""
        self._take(bytes(self._rest))
        self._rest.clear()
        if not self._objects and self._prints.form != LINES:
            self._take(errors)
        return _judged(self._prints, self._objects, exit_status, errors)

    def _take(self, text: bytes) -> None:
        """One object, unless nothing is asked of such a one."""
        if self._skipping:
            self._skipping = False
            return
        value = _parsed(text)
        if value is None or len(self._objects) >= _MOST_OBJECTS:
            return
        if any(_is(value, shape) for shape in self._shapes):
            self._objects.append(value)


def read(agent: Agent, output: bytes, exit_status: int | None, errors: bytes = b"") -> Reading:
    """What an agent that has ended with `exit_status` has printed."""
    reader = Reader(agent)
    reader.add(output)
    return reader.finish(exit_status, errors)


def _parsed(text: bytes) -> Mapping[str, Any] | None:
    """The first JSON object that begins a line, or the last one of an array; None if there is
    none."""
    begins = _BEGINS.search(text)
    if begins is None:
        return None
    try:
        value, _ = _DECODER.raw_decode(text[begins.start() :].decode(errors="replace"))
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list):
        value = value[-1] if value else None
    return value if isinstance(value, dict) else None


def _shapes(agent: Agent) -> Iterator[Shape]:
    prints = agent.prints
    yield from (*prints.ok, *prints.failed)
    for places in prints.places.values():
        yield from (place.shape for place in places)
    for groups in prints.sums.values():
        yield from (place.shape for group in groups for place in group)
    for sign in prints.means.values():
        yield from sign.shapes


def _judged(
    prints: Any, objects: list[Mapping[str, Any]], exit_status: int | None, errors: bytes
) -> Reading:
    said = _how_it_ended(prints, objects)
    failed = said is False or (exit_status != 0 and (prints.exits or said is None))
    reason = None
    if failed:
        reason = _last(objects, prints.places["reason"]) or _tail(errors)
    outcome = _meaning(prints, objects, exit_status if failed else None, reason)
    if outcome is None:
        outcome = FAILED if failed else DONE if said else UNREAD
    cost = _sum(objects, prints.sums["cost_usd"])
    input_tokens, cached, output_tokens = (
        _whole(_sum(objects, prints.sums[f"{kind}_tokens"])) for kind in _TOKENS
    )
    return Reading(
        outcome,
        _last(objects, prints.places["message"]),
        reason,
        _last(objects, prints.places["session"]),
        None if cost is None else round(cost * _MICRO),
        input_tokens,
        cached,
        output_tokens,
    )


_TOKENS = ("input", "cached_input", "output")


def _how_it_ended(prints: Any, objects: list[Mapping[str, Any]]) -> bool | None:
    """Whether the last object that says so says well; None when none does."""
    for value in reversed(objects):
        if any(_is(value, shape) for shape in prints.failed):
            return False
        if any(_is(value, shape) for shape in prints.ok):
            return True
    return None


def _meaning(
    prints: Any, objects: list[Mapping[str, Any]], exit_status: int | None, reason: str | None
) -> str | None:
    """An outcome of its own that shows; `exit_status` and `reason` are those of a failure."""
    last = objects[-1:] if reason is None else objects
    for outcome in _ORDER:
        sign = prints.means.get(outcome)
        if sign is None:
            continue
        if any(_is(value, shape) for value in last for shape in sign.shapes):
            return outcome
        if exit_status is not None and exit_status in sign.exits:
            return outcome
        if reason and any(re.search(each, reason, re.IGNORECASE) for each in sign.patterns):
            return outcome
    return None


def _is(value: Mapping[str, Any], shape: Shape) -> bool:
    for path, wanted in shape.items():
        found = next(_at(value, path.split(".")), None)
        if found is None or (wanted != "*" and found != wanted):
            return False
    return True


def _at(value: Any, path: list[str]) -> Iterator[Any]:
    """What stands at a path; several things where it has a `*`."""
    if not path:
        yield value
    elif path[0] == "*" and isinstance(value, (dict, list)):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _at(each, path[1:])
    elif isinstance(value, dict) and path[0] in value:
        yield from _at(value[path[0]], path[1:])


def _last(objects: list[Mapping[str, Any]], places: tuple[Place, ...]) -> str | None:
    """The last text that stands at the first of some places that has one."""
    for place in places:
        for value in reversed(objects):
            if _is(value, place.shape):
                found = [t for t in _at(value, place.path.split(".")) if isinstance(t, str)]
                if any(text.strip() for text in found):
                    return "\n".join(found)
    return None


def _sum(objects: list[Mapping[str, Any]], groups: Sums) -> float | None:
    for group in groups:
        found = [
            number
            for place in group
            for value in objects
            if _is(value, place.shape)
            for number in _at(value, place.path.split("."))
            if isinstance(number, (int, float)) and not isinstance(number, bool)
        ]
        if found and all(0 <= number < _MOST for number in found):
            return sum(found)
    return None


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)


def _tail(errors: bytes) -> str | None:
    return errors[-4096:].decode(errors="replace").strip() or None
