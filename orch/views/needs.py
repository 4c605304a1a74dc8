"""Which tasks go no further without somebody, and what each needs. Rules over values."""

from collections.abc import Mapping, Sequence
from typing import Protocol

from ..runs.readiness import Standing


class Decided(Protocol):
    """An open decision: why somebody is asked, in words, and what may be answered."""

    @property
    def sentence(self) -> str: ...

    @property
    def answers(self) -> Sequence[str]: ...


NEEDY = ("blocked", "failed", "base_conflict", "unreachable")
"""The standings of those, the most urgent first."""


_COULD_STILL_BE_DONE = ("ready", "waiting", "backing_off")


def told_counts(counts: Mapping[str, int], run_state: str) -> dict[str, int]:
    """How many tasks stand how, as people are told of it: in a run that is closed, what could still
    have been done is `not done`."""
    found: dict[str, int] = {}
    for state, number in counts.items():
        is_left = run_state == "closed" and state in _COULD_STILL_BE_DONE
        word = "not done" if is_left else state
        found[word] = found.get(word, 0) + number
    return found


def what_it_needs(standing: Standing, decision: Decided | None = None) -> str | None:
    """What keeps a task from going on, in words; None when nothing does. `decision` is the one that
    its blueprint asks for, if that is what it waits for."""
    if standing.state == "blocked":
        return "its worker asks" if decision is None else f"a decision: {decision.sentence}"
    if standing.state == "failed":
        return standing.task.reason or "it failed"
    if standing.state in ("base_conflict", "unreachable"):
        return held_up_by(standing)
    return None


def held_up_by(standing: Standing) -> str | None:
    """Which other tasks, or which files, a task cannot get past, in words; None for nothing."""
    if standing.because:
        verb = "waits for" if standing.state == "waiting" else "because of"
        return f"{verb} {', '.join(standing.because)}"
    if standing.conflict_paths:
        return f"conflict in {', '.join(standing.conflict_paths)}"
    return None


def way_out(
    standing: Standing, run_name: str, decision: Decided | None = None, *, by_do: bool = False
) -> str | None:
    """What somebody can do about it, as a call; None where there is nothing to be done about the
    task itself. `decision` is as for `what_it_needs`; `by_do`: `orch do` has opened the run, whose
    next call has the workers, too."""
    key = standing.task.key
    if standing.state == "blocked" and decision is not None:
        call = f"orch answer --run {run_name} {key} --decide ANSWER --body HINT"
        return f"`{call}` decides: {', '.join(decision.answers)}"
    if standing.state == "blocked":
        return f"`orch answer --run {run_name} {key} --body TEXT` answers"
    if standing.state == "failed" and by_do:
        return "the same `orch do` call again tries again"
    if standing.state == "failed":
        return f"`orch retry --run {run_name} {key}` tries again"
    if standing.state == "base_conflict":
        return f"merge by hand, then `orch dispatch --run {run_name} {key} --base COMMIT`"
    return None


def first_needed(state: str) -> int:
    """The place of a standing in a list that begins with what needs somebody; the others keep
    theirs, after those."""
    return NEEDY.index(state) if state in NEEDY else len(NEEDY)
