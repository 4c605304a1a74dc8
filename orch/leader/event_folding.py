"""Folding the event log: what the events say the states of runs, tasks and attempts must be.

Pure: events in, states and contradictions out.
"""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ..attempts import vocabulary as attempts
from ..cleanup import vocabulary as cleanup
from ..council import vocabulary as council
from ..council.event_folding import THINGS, fold_council
from ..integration import vocabulary as integration
from ..patches import vocabulary as patches
from ..patches.event_folding import THINGS as OF_PATCHES
from ..patches.event_folding import fold_patch
from ..purge import vocabulary as purge
from ..runs.states import TABLES
from ..runs.vocabulary import STATE_EVENTS
from ..stages import vocabulary as stages

UNMOVED = frozenset(
    (
        *("task_edited", *attempts.EVENTS, *integration.EVENTS, *cleanup.EVENTS, *purge.EVENTS),
        *stages.EVENTS,
    )
)
"""Kinds of events that move neither a run nor a task nor an attempt."""


class Fact(NamedTuple):
    """One event as folding needs it."""

    seq: int
    kind: str
    run_id: str
    task_id: str | None
    attempt_id: str | None
    data: Mapping[str, Any]


class Folded(NamedTuple):
    """States by id, edges, and where the log contradicts itself."""

    states: dict[str, dict[str, str]]
    dependencies: set[tuple[str, str, str]]
    contradictions: list[str]


def fold(facts: Iterable[Fact]) -> Folded:
    """All events of the scheduler, from the first."""
    folded = Folded({kind: {} for kind in (*TABLES, *THINGS, *OF_PATCHES)}, set(), [])
    for fact in facts:
        if fact.kind == "dependency_added":
            edge = (str(fact.task_id), fact.data["upstream"], fact.data["condition"])
            folded.dependencies.add(edge)
        elif fact.kind == "dependency_removed":
            _remove(folded, fact)
        elif fact.kind == "task_removed":
            _take_out(folded, fact)
        elif fact.kind in STATE_EVENTS:
            _move(folded, STATE_EVENTS[fact.kind], fact)
        elif fact.kind in council.EVENTS:
            _take_from_council(folded, fact)
        elif fact.kind in patches.EVENTS:
            _contradict(folded, fact, fold_patch(folded.states, fact.kind, fact.data))
        elif fact.kind not in UNMOVED:
            folded.contradictions.append(f"event {fact.seq}: {fact.kind} is no known kind")
    return folded


def differences(folded: Folded, stored: Folded) -> list[str]:
    """Where the tables differ from what the events say."""
    found = list(folded.contradictions)
    for kind in folded.states:
        said, kept = folded.states[kind], stored.states.get(kind, {})
        found += [
            f"{kind} {name} is {kept.get(name, 'not there')}, "
            f"the events say {said.get(name, 'nothing of it')}"
            for name in sorted(said.keys() | kept.keys())
            if said.get(name) != kept.get(name)
        ]
    for edge in sorted(folded.dependencies ^ stored.dependencies):
        where = "events" if edge in folded.dependencies else "table"
        found.append(f"dependency {' -> '.join(edge[:2])} ({edge[2]}) is only in the {where}")
    return found


def _remove(folded: Folded, fact: Fact) -> None:
    edge = (str(fact.task_id), fact.data["upstream"], fact.data["condition"])
    if edge not in folded.dependencies:
        folded.contradictions.append(
            f"event {fact.seq}: removes {' -> '.join(edge[:2])} ({edge[2]}), which was not there"
        )
    folded.dependencies.discard(edge)


def _take_out(folded: Folded, fact: Fact) -> None:
    before = folded.states["task"].pop(str(fact.task_id), None)
    if before != "pending":
        folded.contradictions.append(
            f"event {fact.seq}: removes task {fact.task_id}, but it was {before or 'not there'}"
        )


def _take_from_council(folded: Folded, fact: Fact) -> None:
    said = fold_council(folded.states, fact.kind, fact.run_id, fact.attempt_id, fact.data)
    _contradict(folded, fact, said)


def _contradict(folded: Folded, fact: Fact, wrong: str | None) -> None:
    if wrong is not None:
        folded.contradictions.append(f"event {fact.seq}: {wrong}")


def _move(folded: Folded, kind: str, fact: Fact) -> None:
    identity = {"run": fact.run_id, "task": fact.task_id, "attempt": fact.attempt_id}[kind]
    source, target = fact.data.get("from"), fact.data.get("to", fact.kind.split("_", 1)[1])
    states = folded.states[kind]
    before = states.get(str(identity))
    if before != source:
        folded.contradictions.append(
            f"event {fact.seq}: {kind} {identity} leaves {source}, but it was {before}"
        )
    if not any((t.source, t.target) == (source, target) for t in TABLES[kind]):
        folded.contradictions.append(
            f"event {fact.seq}: {kind} {identity} goes from {source} to {target}"
        )
    states[str(identity)] = target
