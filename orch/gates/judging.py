"""What a gate's readings come to, beside what is known of the base. Pure.

Nothing is told of how the gate was run: see `trying`.
"""

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

from .definitions import Gate
from .readers.reading import PATTERN, Reading
from .results import GateResult

FEWER_TESTS = "fewer-tests"
"""The end of the id of the failure that there are fewer tests than at the base."""


class Base(NamedTuple):
    """What the gate comes to on the base. `state`: `passed`, `failed` (usable: it judges there) or
    `unusable` (it could not be judged there either). `reason` says why, on one line."""

    state: str
    failures: Mapping[str, int] = {}
    tests: int | None = None
    reason: str | None = None


def base_of(result: GateResult) -> Base:
    """What is known of a base by what the gate came to there, judged with no base of its own."""
    if result.state in ("passed", "failed"):
        return Base(result.state, result.failures, result.tests, result.reason)
    return Base("unusable", reason=result.reason)


def asks_again(gate: Gate, first: Reading, base: Base | None) -> bool:
    """Whether a first reading has to be tried once more before it is told: what is suspect, and
    what has failures that would count."""
    if first.state == "suspect":
        return first.cause != PATTERN
    return first.state == "failed" and _judged(gate, first, (), base).state == "failed"


def verdict(
    gate: Gate, first: Reading, second: Reading | None = None, base: Base | None = None
) -> GateResult:
    """What a gate has come to. `second` is the reading of the other try, where there was one.

    A failure that did not come again is flaky and does not count; what is suspect twice is the
    change's doing if the base can be judged, and otherwise an `error`.
    """
    if second is None:
        return _judged(gate, first, (), base)
    if second.state == "suspect":
        return _judged(gate, second if first.state == "suspect" else first, (), base)
    if first.state == "suspect":
        once = (f"{gate.name}:{first.cause}",) if second.state == "passed" else ()
        return _judged(gate, second, once, base)
    if first.state == "passed" or second.state == "passed":
        return _judged(gate, second, _ids(first, second), base)
    both = Counter(dict(first.failures)) & Counter(dict(second.failures))
    again = second._replace(failures=dict(both), texts={**first.texts, **second.texts})
    return _judged(gate, again, _ids(first, second, but=both), base)


def _ids(*readings: Reading, but: Mapping[str, int] | None = None) -> tuple[str, ...]:
    found = {name for reading in readings for name in reading.failures}
    return tuple(sorted(found - set(but or ())))


def _judged(gate: Gate, reading: Reading, flaky: tuple[str, ...], base: Base | None) -> GateResult:
    blank = GateResult(gate.name, "passed", flaky=flaky, tests=reading.tests, mode=gate.mode)
    if reading.state == "suspect":
        return _of_suspect(gate, reading, blank, base)
    if gate.reads == "exit" and reading.failures and not gate.strict and _has_failed(base):
        reason = "no gate here: it fails at the base, too"
        return blank._replace(state="skipped", reason=reason)
    counting, known = _counting(gate, reading, base)
    texts = {name: reading.texts[name] for name in counting if name in reading.texts}
    told = []
    missing = _missing_tests(reading, base)
    if missing and gate.min_tests == "base":
        name = f"{gate.name}:{FEWER_TESTS}"
        counting, texts = {**counting, name: 1}, {**texts, name: missing}
    elif missing:
        told.append(missing)
    result = blank._replace(failures=counting, texts=texts, known=known)
    if counting:
        result = result._replace(state="failed")
        told.insert(0, _plural(sum(counting.values()), "failure"))
    return result._replace(reason="; ".join(_told(told, known, flaky)) or None)


def _of_suspect(gate: Gate, reading: Reading, blank: GateResult, base: Base | None) -> GateResult:
    why = reading.reason or "it could not be judged"
    if reading.cause == PATTERN:
        return blank._replace(state="error", reason=f"{why}: make it a simpler one")
    if base is None or base.state == "unusable":
        there = "and nothing is known of the base" if base is None else "at the base neither"
        if base is not None and base.reason:
            there += f": {base.reason}"
        return blank._replace(state="error", reason=f"{why}; {there}")
    name = f"{gate.name}:{reading.cause}"
    reason = f"{why}, and at the base it can be judged"
    return blank._replace(state="failed", reason=reason, failures={name: 1}, texts={name: why})


def _counting(gate: Gate, reading: Reading, base: Base | None) -> tuple[dict[str, int], int]:
    """The failures that the base does not have, and how many of the others there are."""
    had = {} if base is None or gate.strict or not _has_failed(base) else base.failures
    counting, known = {}, 0
    for name, count in reading.failures.items():
        there = min(count, had.get(name, 0))
        known += there
        if count > there:
            counting[name] = count - there
    return counting, known


def _has_failed(base: Base | None) -> bool:
    return base is not None and base.state == "failed"


def _missing_tests(reading: Reading, base: Base | None) -> str | None:
    """What is to be said where there are fewer tests than at the base."""
    if base is None or base.tests is None or reading.tests is None:
        return None
    if reading.tests >= base.tests:
        return None
    return f"{_plural(reading.tests, 'test')} ran, {base.tests} at the base"


def _told(told: list[str], known: int, flaky: tuple[str, ...]) -> list[str]:
    if known:
        told.append(f"{known} known from the base")
    if flaky:
        more = f" and {len(flaky) - 1} more" if len(flaky) > 1 else ""
        told.append(f"flaky: {flaky[0]}{more}")
    return told


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}" + ("" if count == 1 else "s")
