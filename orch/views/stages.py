"""Where attempts that go by a blueprint are: their visits, and the decisions that are open. Of all
other attempts nothing is read, and nothing loaded for them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from inbox_orch.shared.store.engine import Session

from ..attempts import visit_rows as visits
from ..attempts.visits import Visit
from ..runs.costs import Cost, total
from ..runs.model import DECISION, Attempt
from . import stage_words

if TYPE_CHECKING:
    from ..stages.decide import Decision

_REVIEWED = ("approve", "request_changes", "reject")


class Place(NamedTuple):
    """Where an attempt is: its visits in order, without what they came to, and the decision that it
    waits for, if it does."""

    visits: tuple[Visit, ...]
    decision: "Decision | None" = None

    @property
    def last(self) -> Visit | None:
        """The visit that goes on, or that was the last."""
        return self.visits[-1] if self.visits else None

    @property
    def words(self) -> str:
        """The stage, with its number from the second entry on; of a decision, why it is asked."""
        if self.decision is not None:
            return f"decision: {self.decision.sentence}"
        return "" if self.last is None else stage_words.entry(self.last.stage, self.last.nth)

    @property
    def author(self) -> str | None:
        """Who has written what lies there, whoever may have judged or decided since."""
        return next((visit.worker for visit in reversed(written_in(self.visits))), None)

    def as_json(self) -> dict[str, Any]:
        stage = None if self.last is None else self.last.stage
        return {"stage": stage, "visits": len(self.visits)}


def places_of(tx: Session, attempts: Iterable[Attempt]) -> dict[str, Place]:
    """Where those of the attempts are that go by a blueprint, by their ids."""
    staged = [attempt for attempt in attempts if attempt.staged]
    if not staged:
        return {}
    found = visits.briefly_of(tx, [attempt.id for attempt in staged])
    decisions = decisions_in(tx, staged)
    return {a.id: Place(tuple(found[a.id]), decisions.get(a.task_id)) for a in staged}


def decisions_in(tx: Session, live: Iterable[Attempt]) -> "dict[str, Decision]":
    """The open decisions of attempts, by the ids of their tasks."""
    deciding = [attempt for attempt in live if attempt.deciding]
    if not deciding:
        return {}
    from ..stages import decide

    asked = ((attempt.task_id, decide.open_in(tx, attempt)) for attempt in deciding)
    return {task_id: decision for task_id, decision in asked if decision is not None}


def visits_of(tx: Session, attempts: Iterable[Attempt]) -> dict[str, tuple[Visit, ...]]:
    """All that there is of the visits of those attempts that go by a blueprint, by their ids."""
    staged = [attempt.id for attempt in attempts if attempt.staged]
    return {name: tuple(found) for name, found in visits.of_attempts(tx, staged).items()}


def written_in(found: Sequence[Visit]) -> list[Visit]:
    """The visits in which the work was written, in order: those of workers that changed something;
    while there are none, all of workers that are over, but for reviews."""
    # An action has a worker where it has taken up what that one had handed in.
    wrote = [v for v in found if v.kind in ("agent", "action") and v.worker]
    worked = [v for v in wrote if v.verdict not in _REVIEWED]
    return [v for v in worked if v.tree_after and v.tree_after != v.tree_before] or worked


def lines_of(found: Sequence[Visit]) -> list[str]:
    """A line for each visit: its number, stage, what came of it and why, who did it."""
    from ..stages.packet import visit_line

    return [visit_line(visit) for visit in found]


def as_json(found: Sequence[Visit]) -> list[dict[str, Any]]:
    """The visits as JSON has them in a list: what gates came to without their output, and what was
    decided by whom."""
    from ..stages.packet import brief_json

    return [
        {**brief_json(visit), **_gates(visit), **_decided(visit), **_session(visit)}
        for visit in found
    ]


def _gates(visit: Visit) -> dict[str, Any]:
    from ..stages.course import results_of

    if visit.kind != "gates":
        return {}
    gates = [
        {
            "gate": result.gate,
            "state": result.state,
            "reason": result.reason,
            "failures": sum(result.failures.values()),
            "known": result.known,
            "flaky": list(result.flaky),
            "tests": result.tests,
            "seconds": result.seconds,
            "reused": result.reused,
            "mode": result.mode,
        }
        for result in results_of(visit)
    ]
    return {"gates": gates}


def _session(visit: Visit) -> dict[str, Any]:
    session = visit.found.get("session")
    return {} if session is None else {"session": session}


def _decided(visit: Visit) -> dict[str, Any]:
    if visit.kind != "decision":
        return {}
    wanted = ("cause", "about", "resume", "answer", "hint", "mailbox", "by")
    found = {name: visit.found.get(name) or None for name in wanted}
    more = {name: visit.found[name] for name in ("rule", "parts") if visit.found.get(name)}
    return {"decision": {**found, **more}}


def why_of(visit: Visit) -> str | None:
    """What there is to say of how a visit came to its end: of gates what each says, of a decision
    why it was asked for and the hint, else its reason."""
    from ..stages.course import results_of
    from ..stages.packet import why

    if visit.kind == "gates":
        said = [f"{each.gate}: {each.reason}" for each in results_of(visit) if each.reason]
        return "; ".join(said) or visit.reason
    if visit.kind != "decision":
        return visit.reason
    hint = visit.found.get("hint")
    reason = None if hint else visit.reason
    cause = "policy" if "patches" in visit.found else str(visit.found["cause"])
    asked = why(cause, str(visit.found["about"]), reason)
    return f"{asked}; hint: {hint}" if hint else asked


def threads_of(found: Mapping[str, Sequence[Visit]], attempt: Attempt) -> list[str]:
    """The threads on which an attempt was worked on, in order: those of its visits; of one without
    a blueprint its own."""
    if not attempt.staged:
        return [] if attempt.thread_id is None else [attempt.thread_id]
    own = found.get(attempt.id, ())
    return [v.thread_id for v in own if v.thread_id is not None and v.stage != DECISION]


def meanings_of(decision: "Decision") -> dict[str, str]:
    """What each answer to a decision does, in words."""
    from ..stages.packet import meaning_of

    about = (decision.resume, decision.by_policy, decision.rules)
    return {name: meaning_of(name, *about) for name in decision.answers}


def without_answers(packet: str) -> str:
    """What there is to know before a decision, without what may be answered."""
    from ..stages.packet import OFFERED

    return packet.rpartition(f"\n{OFFERED}\n")[0] or packet


def cost_of(found: Sequence[Visit]) -> Cost | None:
    """What the workers of all visits say that they have cost; None where none says anything."""
    said = [Cost(**cost) for visit in found if (cost := visit.found.get("cost"))]
    return total(said) if said else None
