"""Stages in a person's words: where an attempt is, what began, what came of it. Pure.

What an event says stands in the event, so that nothing has to be looked up to tell it.
"""

from collections.abc import Mapping
from typing import Any

_SURROUNDINGS = "surroundings"
_DECISION = "decision"
_OF_A_REVIEW = {
    "approve": "approves in {stage}",
    "request_changes": "asks for changes in {stage}",
    "reject": "rejects it in {stage}",
}
_ENDS = {
    "failed": "{stage} failed{why}",
    "error": "{stage} could not be judged{why}",
    "skipped": "{stage} was skipped{why}",
    "lost": "{stage} has lost its worker{why}",
    "void": "{stage} is void{why}",
    "cancelled": "{stage} was called off{why}",
}
_PASSED = {
    "agent": "{stage} is done{by}",
    "gates": "{stage} passed{why}",
    "action": "{stage} is done{why}",
    "council": "{stage} is done",
}


def entry(stage: object, nth: object) -> str:
    """A visit by its stage, with its number from the second entry on: `fix (2)`."""
    return f"{stage} ({nth})" if isinstance(nth, int) and nth > 1 else str(stage)


def begun(data: Mapping[str, Any]) -> str | None:
    """What the event of a visit that begins says; None where its end says it soon enough."""
    if data.get("stage") == _DECISION:
        return f"asks for a decision{_because(data.get('why'))}"
    if data.get("mailbox") is None and data.get("kind") != "council":
        return None
    return f"{entry(data.get('stage'), data.get('nth'))} began"


def ended(data: Mapping[str, Any]) -> str | None:
    """What the event of a visit that ends says; None where it was over before it had begun."""
    stage, worker, why = data.get("stage"), data.get("worker"), data.get("why")
    if stage == _DECISION:
        if data.get("state") != "succeeded":
            return f"the decision is void{_because(why)}"
        return f"{worker or 'somebody'} decided: {data.get('verdict')}"
    if stage == _SURROUNDINGS and data.get("state") == "succeeded":
        return f"the gates were tried on the base{_because(why)}" if why else None
    named = entry(stage, data.get("nth"))
    if data.get("verdict") in _OF_A_REVIEW:
        verb = _OF_A_REVIEW[str(data["verdict"])].format(stage=named)
        return f"{worker or 'the review'} {verb}{_because(why)}"
    words = _ENDS.get(str(data.get("state"))) or _PASSED.get(
        str(data.get("kind")), "{stage} is done"
    )
    return words.format(
        stage=named,
        by=f", by {worker}" if worker else "",
        why=_because(_without_the_name(why, str(stage))),
    )


def says_nothing(kind: str, data: Mapping[str, Any]) -> bool:
    """Whether nobody needs to be told of this event of a visit."""
    return (kind == "visit_begun" and begun(data) is None) or (
        kind == "visit_ended" and ended(data) is None
    )


def _because(why: object) -> str:
    return f": {why}" if why else ""


def _without_the_name(why: object, stage: str) -> object:
    """A gate that is called like its stage need not be named twice."""
    alone = isinstance(why, str) and "; " not in why
    return why.removeprefix(f"{stage}: ") if alone and isinstance(why, str) else why
