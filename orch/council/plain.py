"""Replies without JSON: lines `- [do] title :: keywords`, or mere prose."""

import re
from collections.abc import Sequence

from .model import Decision, DecisionVote, Item, Reply

_LINE = re.compile(r"^\s*[-*]\s*\[(do|avoid|keep)\]\s*(.+?)(?:\s*::\s*(.*?))?\s*$", re.I)
_VERDICT = re.compile(
    r"^\s*verdict\s*[:=]\s*(approve_with_changes|approve|reject|abstain)\s*\.?\s*$", re.I
)
_REFUSAL = re.compile(
    r"^\W*(?:i['’]?m sorry|sorry|i cannot|i can['’]?t|i am unable|i['’]m unable|i am not able|"
    r"as an ai|i must decline|i won['’]t|unable to|could not read|cannot read)\b",
    re.I,
)
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_MOST_ITEMS = 25
_LEAST_WORDS = 4
_REFUSAL_CHARACTERS = 600


def is_refusal(text: str) -> bool:
    """Whether prose says that there will be no review, rather than being one."""
    return len(text) <= _REFUSAL_CHARACTERS and _REFUSAL.match(text.strip()) is not None


def read_plain(text: str, reviewer: str, decisions: Sequence[Decision]) -> Reply | str:
    """The reply that a plain text is, or why it is none.

    Lines in the form are recommendations; a text without any is one that is never merged by
    itself. A line `verdict: …` gives the verdict, `D1=B` a choice.
    """
    lines = text.splitlines()
    matches = [found for found in map(_LINE.match, lines) if found is not None]
    verdicts = {found.group(1).lower() for found in map(_VERDICT.match, lines) if found}
    if len(verdicts) > 1:
        return f"two verdicts: {' and '.join(sorted(verdicts))}"
    if len(matches) > _MOST_ITEMS:
        return f"{len(matches)} recommendations, more than {_MOST_ITEMS}"
    if not matches and len(_LETTERS.findall(text)) < _LEAST_WORDS:
        return "neither JSON, nor lines `- [do] title :: keywords`, nor a sentence"
    warnings: list[str] = ["plain text: no severities, no evidence"]
    items = tuple(
        _item(number, found, reviewer, warnings) for number, found in enumerate(matches, start=1)
    )
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


def _item(number: int, found: re.Match[str], reviewer: str, warnings: list[str]) -> Item:
    stance, title, keywords = found.group(1).lower(), found.group(2), found.group(3) or ""
    words = tuple(w for w in (k.strip() for k in keywords.split(",")) if w)[:6]
    name = f"line-{number}"
    if not words:
        warnings.append(f"{name} has no keywords: never merged by itself")
    return Item(
        id=f"{reviewer}/{name}",
        reviewer=reviewer,
        title=title[:120],
        proposal="" if len(title) <= 120 else title,
        keywords=words,
        stance=stance,
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
    votes = []
    for decision in decisions:
        pattern = re.compile(rf"^\s*[-*]?\s*{re.escape(decision.id)}\s*[=:]\s*(.+?)\s*$", re.I)
        said = {found.group(1) for found in map(pattern.match, lines) if found is not None}
        chosen = [c for c in decision.choices if c.casefold() in {s.casefold() for s in said}]
        if len(chosen) == 1:
            votes.append(DecisionVote(decision.id, chosen[0]))
    return tuple(votes)
