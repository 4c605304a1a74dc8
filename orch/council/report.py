"""The report of a council as markdown, for people: what it came to first, the replies at the end.

Texts of briefs and replies are shown, never obeyed: markdown, HTML and control characters in them
are escaped, and whole replies stand in fences longer than any inside.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

from .banners import independent
from .likeness import LONG_TERMS
from .model import Item
from .tally import Contested, Group, Tally, bucket

_SPECIAL = re.compile(r"([\\`*_{}\[\]<>#|~&!])")
_AT_LINE_START = re.compile(r"^(\s*)([-+=]|\d+[.)])", re.M)
_BREAK = "\\"
"""At the end of a line: the next one begins on a line of its own (CommonMark 6.7)."""
_MOST_NEAR = 3
_METHOD = (
    "Items are one group when each two of them score at least {} of 1000. Keywords give {} % of a "
    "score, the rest of the text {} %; keywords count less when the shorter text has more than {} "
    "different terms, and texts when it has more than {}. Groups that are most alike on average "
    "are joined first. What is common in this council counts little. Opposed stances, rival "
    "choices and the items of one reviewer stay apart."
)
_STATUS_WORDS = {
    "complete": "complete",
    "degraded": "DEGRADED",
    "no_quorum": "NO QUORUM",
    "open": "OPEN",
}


def markdown(tally: Tally, replies: Mapping[str, str]) -> str:
    """The whole report. `replies` are the raw replies by reviewer, as far as there are any."""
    parts: list[Iterable[str]] = [
        _head(tally),
        _seats(tally),
        _decisions(tally),
        *_buckets(tally),
        _duplicates(tally),
        _remarks(tally),
        _how(tally),
        _appendix(tally, replies),
    ]
    return "\n".join("\n".join(part) for part in parts if part).rstrip("\n") + "\n"


def status_line(tally: Tally) -> str:
    """How many seats are valid and which are missing; the first words of every report."""
    seats = tally.council.seats
    words = _STATUS_WORDS[tally.status]
    line = f"{words}: {len(tally.valid)} of {len(seats)} valid"
    missing = [f"{seat.reviewer} ({seat.state})" for seat in seats if not seat.valid]
    if missing:
        line += "; missing: " + ", ".join(missing)
    return f"{line}; quorum {tally.council.parameters.quorum}"


def escaped(text: str) -> str:
    """A text on one line that markdown takes for nothing but text."""
    plain = "".join(c if c.isprintable() else " " for c in " ".join(text.split()))
    marked = _AT_LINE_START.sub(r"\1\\\2", _SPECIAL.sub(r"\\\1", plain))
    # Some renderers make links of bare addresses.
    return marked.replace("://", ":\\//").replace("www.", "www\\.")


def fenced(text: str) -> list[str]:
    """A text in a fence that it cannot end, its control characters escaped."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    shown = "".join(
        c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode()
        for c in text.encode("utf-8", "replace").decode()
    )
    return [f"{fence}text", shown.rstrip("\n"), fence]


# -- the parts -------------------------------------------------------------------------------


def _head(tally: Tally) -> list[str]:
    lines = [f"# {escaped(tally.council.title)} — {escaped(status_line(tally))}", ""]
    if tally.status == "no_quorum":
        lines += ["> Too few valid replies: nothing below is agreed on.", ""]
    elif tally.status == "degraded":
        lines += ["> A seat is missing: nothing below can be a consensus.", ""]
    elif tally.status == "open":
        lines += ["> The round is still open: what follows may change.", ""]
    for banner in tally.banners:
        lines += [f"> {escaped(banner)}", ""]
    return lines


def _seats(tally: Tally) -> list[str]:
    lines = ["## Verdicts", "", "| reviewer | verdict | state | model | note |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for seat in tally.council.seats:
        reply = seat.reply if seat.valid else None
        notes = list(reply.warnings[:3]) if reply is not None else []
        if seat.missing_reason:
            notes.insert(0, seat.missing_reason)
        cells = (
            seat.reviewer,
            (reply.verdict or "none given") if reply is not None else "—",
            seat.state,
            (reply.model or "not told") if reply is not None else "—",
            "; ".join(notes)[:300],
        )
        lines.append("| " + " | ".join(escaped(cell) for cell in cells) + " |")
    return [*lines, ""]


def _decisions(tally: Tally) -> list[str]:
    if not tally.decisions:
        return []
    lines = ["## Decisions", "", "| decision | question | votes | not answered |"]
    lines.append("| --- | --- | --- | --- |")
    for count in tally.decisions:
        votes = sorted(count.choices.items(), key=lambda c: (-len(c[1]), c[0]))
        told = "; ".join(f"{choice}: {len(names)}" + _in_brackets(names) for choice, names in votes)
        cells = (count.decision.id, count.decision.question, told, ", ".join(count.silent))
        lines.append("| " + " | ".join(escaped(cell) for cell in cells) + " |")
    return [*lines, ""]


def _buckets(tally: Tally) -> list[list[str]]:
    contested = {name for one in tally.contested for name in one.groups}
    parts = []
    if len(tally.council.seats) == 1:
        parts.append(_section(tally, "Items", tally.groups))
        return [*parts, _contested(tally)]
    headings = [
        ("consensus", "Consensus"),
        ("majority", "Majority"),
        ("minority", "Minority"),
        ("unconfirmed", "Unconfirmed"),
    ]
    for name, heading in headings:
        groups = [one for one in tally.groups if one.bucket == name]
        if groups or (name != "unconfirmed" and tally.status != "no_quorum"):
            parts.append(_section(tally, heading, groups))
        if name == "majority" and contested:
            parts.append(_contested(tally))
    if contested and not any(part and part[0] == "## Contested" for part in parts):
        parts.append(_contested(tally))
    return parts


def _section(tally: Tally, heading: str, groups: Sequence[Group]) -> list[str]:
    lines = [f"## {heading}", ""]
    if not groups:
        return [*lines, "None.", ""]
    for one in groups:
        lines += _group(tally, one)
    return [*lines, ""]


def _group(tally: Tally, one: Group) -> list[str]:
    marks = [
        word
        for word, holds in (("contested", one.contested), ("dismissed", one.dismissed))
        if holds
    ]
    if _is_of_fewer_hands(tally, one):
        marks.append(f"the word of {independent(one.raised_by, tally.council.seats)} alone")
    marked = f" ({', '.join(marks)})" if marks else ""
    face = next(item for item in one.members if item.title == one.title)
    lines = [f"- **{escaped(one.title)}**{marked} — {_support(tally, one)}" + _BREAK]
    if face.proposal:
        lines.append(f"  {escaped(face.proposal)}" + _BREAK)
    lines.append(f"  {_weight(one.members)}; about {escaped(face.about)}; `{one.id}`")
    others = [item for item in one.members if item is not face]
    lines += [f"  - {escaped(i.reviewer)}: {escaped(i.title)} `{i.id}`" for i in others]
    if one.adjusted_by:
        numbers = ", ".join(map(str, one.adjusted_by))
        lines.append(f"  - adjusted by override {numbers}; by itself: {one.automatic_bucket}")
    lines += [f"  - note: {escaped(note)}" for note in one.notes]
    if one.near:
        titles = {item.id: item.title for group in tally.groups for item in group.members}
        told = [f"`{name}` {escaped(titles[name])}" for name in one.near[:_MOST_NEAR]]
        more = len(one.near) - _MOST_NEAR
        told += [f"and {more} more"] if more > 0 else []
        lines.append(f"  - near it, not counted: {'; '.join(told)}")
    return lines


def _is_of_fewer_hands(tally: Tally, one: Group) -> bool:
    """Whether a group would be in a lower bucket if seats that one agent answered were one."""
    seats = tally.council.seats
    votes = independent(one.raised_by, seats)
    return one.bucket in ("consensus", "majority") and one.bucket != bucket(votes, len(seats))


def _support(tally: Tally, one: Group) -> str:
    told = f"raised by {', '.join(map(escaped, one.raised_by))}"
    if one.endorsed_by:
        told += f"; endorsed by {', '.join(map(escaped, one.endorsed_by))}"
    if one.opposed_by:
        told += f"; opposed by {', '.join(map(escaped, one.opposed_by))}"
    if one.carried:
        told += f"; carried from the first round: {', '.join(map(escaped, one.carried))}"
    against = _contesting(tally, one)
    if against:
        told += f"; against it: {', '.join(map(escaped, against))}"
    spoken = {*one.raised_by, *one.endorsed_by, *one.opposed_by, *one.abstained, *against}
    silent = [s.reviewer for s in tally.valid if s.reviewer not in spoken]
    if silent:
        told += f"; not mentioned by {', '.join(map(escaped, silent))}"
    return told


def _contesting(tally: Tally, one: Group) -> list[str]:
    """Who has raised something that speaks against a group."""
    mine = {item.id for item in one.members}
    reviewers = {item.id: item.reviewer for group in tally.groups for item in group.members}
    return sorted(
        {
            reviewers[other]
            for contested in tally.contested
            for this, other in (contested.pair.items, contested.pair.items[::-1])
            if this in mine and other not in mine
        }
        - {*one.raised_by, *one.opposed_by}
    )


def _weight(members: Sequence[Item]) -> str:
    """Severity and confidence as each member has them: never one mixed from two."""
    pairs = {
        f"{item.severity}" + ("" if item.confidence is None else f" at {item.confidence} %")
        for item in members
    }
    kinds = sorted({item.kind for item in members})
    return f"{', '.join(kinds)}; {' / '.join(sorted(pairs))}"


def _contested(tally: Tally) -> list[str]:
    if not tally.contested:
        return []
    titles = {item.id: item for one in tally.groups for item in one.members}
    whole = tally.whole_words()
    lines = ["## Contested", ""]
    for one in tally.contested:
        first, second = (titles[name] for name in one.pair.items)
        lines.append(f"- {_quoted(first)}" + _BREAK)
        lines.append(f"  against {_quoted(second)}" + _BREAK)
        lines.append(
            f"  ({one.pair.rule}: {escaped(_told(whole, one))}; likeness {one.pair.score} of 1000)"
        )
    return [*lines, ""]


def _told(whole: Mapping[str, str], one: Contested) -> str:
    """What shows that two items are opposed; it may end in the first terms that they share."""
    for number in range(len(one.pair.shared), 0, -1):
        terms = one.pair.shared[:number]
        if one.evidence.endswith(f" {' '.join(terms)}"):
            head = one.evidence.removesuffix(" ".join(terms))
            return head + " ".join(whole.get(term, term) for term in terms)
    return one.evidence


def _shared(whole: Mapping[str, str], terms: Sequence[str]) -> str:
    """What two items have in common, in words."""
    return ", ".join(escaped(whole.get(term, term)) for term in terms[:5])


def _quoted(item: Item) -> str:
    stance = item.stance or "unstated"
    return f"{escaped(item.reviewer)} [{stance}]: “{escaped(item.title)}” `{item.id}`"


def _duplicates(tally: Tally) -> list[str]:
    if not tally.possible_duplicates:
        return []
    lines = [
        "## Possible duplicates",
        "",
        "Not counted as one; `orch council group merge` settles.",
    ]
    lines.append("")
    whole = tally.whole_words()
    for pair in tally.possible_duplicates[:20]:
        terms = _shared(whole, pair.shared)
        lines.append(f"- `{pair.items[0]}` and `{pair.items[1]}`: {pair.score} of 1000 ({terms})")
    more = len(tally.possible_duplicates) - 20
    return [*lines, *([f"- and {more} more in the JSON"] if more > 0 else []), ""]


def _remarks(tally: Tally) -> list[str]:
    lines: list[str] = []
    for heading, name in (("Questions", "questions"), ("Strengths", "strengths")):
        said = [
            f"- {escaped(seat.reviewer)}: {escaped(text)}"
            for seat in tally.valid
            if seat.reply is not None
            for text in getattr(seat.reply, name)
        ]
        if said:
            lines += [f"## {heading}", "", *said, ""]
    return lines


def _how(tally: Tally) -> list[str]:
    p = tally.council.parameters
    percent = 10 * p.keyword_tenths
    lines = [
        "## How items were grouped",
        "",
        _METHOD.format(p.merge_from, percent, 100 - percent, p.short_terms, LONG_TERMS),
        "",
    ]
    whole = tally.whole_words()
    for one in tally.groups:
        for merge in one.merges:
            terms = _shared(whole, merge.shared)
            lines.append(
                f"- `{merge.items[0]}` and `{merge.items[1]}`: {merge.rule}, "
                f"{merge.score} ({terms})"
            )
    for override in tally.overrides:
        items = ", ".join(f"`{item}`" for item in override.items)
        lines.append(
            f"- override {override.number} by {escaped(override.actor)}: {override.kind} {items}: "
            f"{escaped(override.text)}"
        )
    lines += [f"- warning: {escaped(warning)}" for warning in tally.warnings]
    return [*lines, ""]


def _appendix(tally: Tally, replies: Mapping[str, str]) -> list[str]:
    lines = ["## Replies, word for word", ""]
    for seat in tally.council.seats:
        lines += [f"### {escaped(seat.reviewer)} ({seat.state})", ""]
        if seat.reviewer in replies:
            lines += fenced(replies[seat.reviewer])
        else:
            lines.append(escaped(seat.missing_reason or "No reply."))
        lines.append("")
    digest = tally.as_json()["digest"]
    return [
        *lines,
        "## Digests",
        "",
        f"- council `{tally.council.id}`, revision {tally.council.revision}",
        f"- brief sha256 `{tally.council.brief_sha256}`",
        f"- tally sha256 `{digest}`",
        *(
            f"- reply of {escaped(name)} sha256 `{_sha256(replies[name])}`"
            for name in sorted(replies)
        ),
        "",
    ]


def _sha256(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _in_brackets(names: Sequence[str]) -> str:
    return f" ({', '.join(names)})" if names else ""
