"""Which tasks go no further without somebody, and what each needs. Rules over values."""

from ..runs.readiness import Standing

NEEDY = ("blocked", "failed", "base_conflict", "unreachable")
"""The standings of those, the most urgent first."""


def what_it_needs(standing: Standing) -> str | None:
    """What keeps a task from going on, in words; None when nothing does."""
    if standing.state == "blocked":
        return "its worker asks"
    if standing.state == "failed":
        return standing.task.reason or "it failed"
    if standing.state == "base_conflict":
        return f"conflict in {', '.join(standing.conflict_paths)}"
    if standing.state == "unreachable":
        return f"because of {', '.join(standing.because)}"
    return None


def first_needed(state: str) -> int:
    """The place of a standing in a list that begins with what needs somebody; the others keep
    theirs, after those."""
    return NEEDY.index(state) if state in NEEDY else len(NEEDY)
