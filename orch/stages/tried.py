"""What was tried against the same failures before somebody decided to go on. Pure."""

from collections.abc import Callable, Sequence

from inbox_orch.shared.ids import counted, printable

from ..attempts.visits import Visit
from ..gates.results import GateResult
from ..patches.hiding import hidden
from .machine import RENEWING

MOST_LINES = 8
_MOST_WORDS, _MOST_NAMED = 200, 3
_REVIEWS = ("approve", "request_changes", "reject")
_HEADING = "These failures were there before the decision, and what was tried did not help:"


def tried(visits: Sequence[Visit], words: Callable[[Visit], str | None]) -> str | None:
    """A line for each visit that was to change something, up to the last decision to go on, if what
    is to be mended now was there before; None otherwise. `words`: what its worker said at the end.
    """
    asked = max((n for n, v in enumerate(visits) if _renews(v)), default=None)
    last = next((v for v in reversed(visits) if v.kind == "gates" and not v.live), None)
    if asked is None or last is None or last.state != "failed":
        return None
    failing = _failing(last)
    lines = []
    for number, visit in enumerate(visits[:asked]):
        if visit.kind != "agent" or visit.verdict in _REVIEWS:
            continue
        found = _found_after(visits, number)
        same = failing & found if visit.state == "succeeded" else failing
        if same and (found or visit.reason):
            lines.append(_line(visit, found, same, words))
    if not lines:
        return None
    more = len(lines) - MOST_LINES
    left_out = [f"- … {counted(more, 'visit')} before these"] if more > 0 else []
    return "\n".join([_HEADING, *left_out, *lines[-MOST_LINES:]])


def _renews(visit: Visit) -> bool:
    return visit.kind == "decision" and visit.state == "succeeded" and visit.verdict in RENEWING


def _failing(visit: Visit) -> set[str]:
    """What counts of what its gates have found."""
    results = [GateResult.from_json(each) for each in visit.found.get("gates", ())]
    return {name for result in results if result.stops for name in result.failures}


def _found_after(visits: Sequence[Visit], number: int) -> set[str]:
    """What the gates found after a visit, until another worker was sent for."""
    found: set[str] = set()
    for visit in visits[number + 1 :]:
        if visit.kind not in ("gates", "action"):
            break
        found |= _failing(visit) if visit.kind == "gates" else set()
    return found


def _line(
    visit: Visit, found: set[str], same: set[str], words: Callable[[Visit], str | None]
) -> str:
    head = visit.stage + (f" ({visit.nth})" if visit.nth > 1 else "")
    head += f", by {visit.worker}" if visit.worker else ""
    if visit.state != "succeeded":
        return f"- {head}: did not count: {printable(visit.reason or visit.state, _MOST_WORDS)}"
    said = hidden(" ".join((words(visit) or "").split()))
    told = [f"it said: {printable(said, _MOST_WORDS)}"] if said else []
    names = ", ".join(printable(name) for name in sorted(same)[:_MOST_NAMED])
    more = f" and {len(same) - _MOST_NAMED} more" if len(same) > _MOST_NAMED else ""
    told.append(f"{counted(len(found), 'failure')} after it, among them {names}{more}")
    return f"- {head}: {'; '.join(told)}"
