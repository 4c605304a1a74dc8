"""Replies without JSON: lines `- [do] title :: keywords`, or mere prose."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from .model import Decision, DecisionVote, Item, Reply

_MARK = re.compile(r"\s*[-*]\s*\[(do|avoid|keep)\]", re.I)
_VERDICT = re.compile(r"verdict\s*[:=]\s*(approve_with_changes|approve|reject|abstain)", re.I)
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_MOST_ITEMS = 25
_LEAST_WORDS = 4


class Line(NamedTuple):
    """A line in the form: what it is for or against, and the keywords after `::`."""

    stance: str
    title: str
    keywords: str


def line_in_form(line: str) -> Line | None:
    """A line `- [do] title :: keywords` in its parts, None for any other line."""
    mark = _MARK.match(line)
    if mark is None or not (rest := line[mark.end() :].strip()):
        return None
    # What begins with `::` has no title before it.
    title, _, keywords = rest[1:].partition("::")
    return Line(mark[1].lower(), (rest[0] + title).rstrip(), keywords.strip())


def has_lines_in_form(text: str) -> bool:
    """Whether a text has recommendations in the form, whatever else it says."""
    return any(line_in_form(line) is not None for line in text.splitlines())


def read_plain(text: str, reviewer: str, decisions: Sequence[Decision]) -> Reply | str:
    """The reply that a plain text is, or why it is none.

    Lines in the form are recommendations; a text without any is one that is never merged by
    itself. A line `verdict: …` gives the verdict, `D1=B` a choice.
    """
    lines = text.splitlines()
    found = [each for each in map(line_in_form, lines) if each is not None]
    verdicts = {verdict for verdict in map(_verdict_of, lines) if verdict is not None}
    if len(verdicts) > 1:
        return f"two verdicts: {' and '.join(sorted(verdicts))}"
    if len(found) > _MOST_ITEMS:
        return f"{len(found)} recommendations, more than {_MOST_ITEMS}"
    if not found and len(_LETTERS.findall(text)) < _LEAST_WORDS:
        return "neither JSON, nor lines `- [do] title :: keywords`, nor a sentence"
    warnings: list[str] = ["plain text: no severities, no evidence"]
    items = tuple(_item(number, each, reviewer, warnings) for number, each in enumerate(found, 1))
    if not items:
        items = (_prose(text, reviewer),)
        warnings = ["plain prose: taken as one recommendation, which is never merged by itself"]
    return Reply(
        reviewer=reviewer,
        verdict=next(iter(verdicts), None),
        decisions=_choices(lines, decisions),
        items=items,
        warnings=tuple(warnings),
    )


def _verdict_of(line: str) -> str | None:
    found = _VERDICT.fullmatch(line.strip().removesuffix(".").rstrip())
    return None if found is None else found[1].lower()


def _item(number: int, line: Line, reviewer: str, warnings: list[str]) -> Item:
    words = tuple(w for w in (k.strip() for k in line.keywords.split(",")) if w)[:6]
    name = f"line-{number}"
    if not words:
        warnings.append(f"{name} has no keywords: never merged by itself")
    return Item(
        id=f"{reviewer}/{name}",
        reviewer=reviewer,
        title=line.title[:120],
        proposal="" if len(line.title) <= 120 else line.title,
        keywords=words,
        stance=line.stance,
        text_only=not words,
    )


def _prose(text: str, reviewer: str) -> Item:
    first = next(line.strip() for line in text.splitlines() if _LETTERS.search(line))
    return Item(
        id=f"{reviewer}/prose",
        reviewer=reviewer,
        title=first[:120],
        proposal=" ".join(text.split())[:1200],
        kind="idea",
        text_only=True,
    )


def _choices(lines: Sequence[str], decisions: Sequence[Decision]) -> tuple[DecisionVote, ...]:
    """What lines such as `D1=B` choose. A decision for which two lines differ has no choice."""
    said = [each for each in map(_choice_in, lines) if each is not None]
    votes = []
    for decision in decisions:
        chosen = {choice for name, choice in said if name == decision.id.casefold()}
        fitting = [choice for choice in decision.choices if choice.casefold() in chosen]
        if len(fitting) == 1:
            votes.append(DecisionVote(decision.id, fitting[0]))
    return tuple(votes)


def _choice_in(line: str) -> tuple[str, str] | None:
    """The name and the choice of a line `name = choice`, both folded."""
    stripped = line.strip()
    if stripped[:1] in ("-", "*"):
        stripped = stripped[1:].lstrip()
    marks = [place for place in (stripped.find("="), stripped.find(":")) if place > 0]
    if not marks:
        return None
    name, choice = stripped[: min(marks)], stripped[min(marks) + 1 :]
    return name.rstrip().casefold(), choice.strip().casefold()
