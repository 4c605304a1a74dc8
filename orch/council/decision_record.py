"""A council as a decision record (MADR 4): proposed, never decided by itself."""

from collections.abc import Iterator

from .report import escaped, status_line
from .tally import DecisionCount, Group, Tally


def madr(tally: Tally) -> str:
    """The record, the same bytes for the same tally."""
    lines = [
        "---",
        "status: proposed",
        "decision-makers: []",
        "consulted: " + _flow([seat.reviewer for seat in tally.council.seats]),
        "---",
        "",
        f"# {escaped(tally.council.title)}",
        "",
        "## Context and Problem Statement",
        "",
        f"A council of {len(tally.council.seats)} reviewed it. {escaped(status_line(tally))}.",
        *(escaped(banner) for banner in tally.banners),
        "",
        "## Considered Options",
        "",
        *_options(tally),
        "",
        "## Decision Outcome",
        "",
        "Not decided yet.",
        "",
        "### Consequences",
        "",
        *_consequences(tally),
        "",
        "## Pros and Cons of the Options",
        "",
        *_pros_and_cons(tally),
        "## More Information",
        "",
        f"Council `{tally.council.id}`, revision {tally.council.revision}.",
        f"Brief sha256 `{tally.council.brief_sha256}`.",
        f"Tally sha256 `{tally.as_json()['digest']}`.",
        "",
    ]
    return "\n".join(lines)


def _options(tally: Tally) -> list[str]:
    found = [
        f"* {escaped(count.decision.id)}: {escaped(count.decision.question)} — {escaped(choice)}"
        for count in tally.decisions
        for choice in count.decision.choices
    ]
    found += [f"* {escaped(one.title)}" for one in _proposals(tally)]
    return found or ["* none was proposed"]


def _consequences(tally: Tally) -> list[str]:
    risks = [one for one in tally.groups if any(item.kind == "risk" for item in one.members)]
    found = [f"* Bad, because of the risk: {escaped(one.title)}" for one in risks]
    return found or ["* To be written with the decision."]


def _pros_and_cons(tally: Tally) -> Iterator[str]:
    for count in tally.decisions:
        yield from _of_decision(count)
    for one in _proposals(tally):
        yield f"### {escaped(one.title)}"
        yield ""
        for item in one.members:
            sign = "Bad" if item.stance in ("avoid", "keep") else "Good"
            because = item.rationale or item.proposal or item.title
            yield f"* {sign}, because {escaped(because)} ({escaped(item.reviewer)})"
        yield from (f"* Bad, because {escaped(against)}" for against in _against(tally, one))
        yield f"* Neutral, because it was {_support(one)}"
        yield ""


def _of_decision(count: DecisionCount) -> Iterator[str]:
    for choice in count.decision.choices:
        names = count.choices[choice]
        yield f"### {escaped(count.decision.id)}: {escaped(choice)}"
        yield ""
        yield f"* Neutral, because {len(names)} chose it" + (
            f" ({', '.join(map(escaped, names))})" if names else ""
        )
        yield ""


def _proposals(tally: Tally) -> list[Group]:
    return [one for one in tally.groups if not one.dismissed and one.bucket != "minority"]


def _against(tally: Tally, one: Group) -> list[str]:
    titles = {item.id: item for group in tally.groups for item in group.members}
    mine = {item.id for item in one.members}
    found = (
        f"{titles[other].title} ({titles[other].reviewer})"
        for contested in tally.contested
        for this, other in (contested.pair.items, contested.pair.items[::-1])
        if this in mine and other not in mine
    )
    # One item may speak against several of a group.
    return list(dict.fromkeys(found))


def _support(one: Group) -> str:
    told = f"raised by {', '.join(map(escaped, one.raised_by))}"
    return told + (
        f", endorsed by {', '.join(map(escaped, one.endorsed_by))}" if one.endorsed_by else ""
    )


def _flow(names: list[str]) -> str:
    """A YAML flow sequence of plain names (letters, digits, dots, dashes)."""
    return "[" + ", ".join(f'"{name}"' for name in names) + "]"
