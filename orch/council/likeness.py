"""How alike the items of one council are, and which of them speak against each other."""

import re
from collections.abc import Sequence
from functools import cached_property

from . import words
from .model import Item, Parameters

_NEGATION = re.compile(r"\b(?:not|never|no|without|avoid|stop|don['’]?t|doesn['’]?t)\b", re.I)


class Likeness:
    """Items compared pair by pair; an item is named by its place in `items`.

    Scores are per mille: eight tenths of them the declared keywords, two tenths the text.
    """

    def __init__(self, items: Sequence[Item], parameters: Parameters) -> None:
        self.items = items
        self._tenths = parameters.keyword_tenths
        self._keywords = [words.terms(" ".join(item.keywords)) for item in items]
        self._texts = [
            words.terms(f"{item.title} {item.proposal} {item.rationale}") for item in items
        ]

    def score(self, one: int, other: int) -> int:
        """How alike two items are, per mille."""
        keywords = words.likeness(self._keywords[one], self._keywords[other], self._keyword_weights)
        text = words.likeness(self._texts[one], self._texts[other], self._text_weights)
        return (self._tenths * keywords + (10 - self._tenths) * text) // 10

    def shared(self, one: int, other: int) -> tuple[str, ...]:
        """The terms that two items have in common, the most telling first."""
        keywords = self._keywords[one] & self._keywords[other]
        texts = (self._texts[one] & self._texts[other]) - keywords
        by_keyword, by_text = self._keyword_weights, self._text_weights
        return (
            *sorted(keywords, key=lambda term: (-by_keyword[term], term)),
            *sorted(texts, key=lambda term: (-by_text[term], term)),
        )

    def opposition(self, one: int, other: int) -> str | None:
        """By which rule two items speak against each other: `opposes`, `choice`, `stance`,
        `rejects`; None when they do not."""
        first, second = self.items[one], self.items[other]
        if _links(first, "opposes", second) or _links(second, "opposes", first):
            return "opposes"
        if _rival_choices(first, second):
            return "choice"
        stances = {first.stance, second.stance}
        if None not in stances and len({stance == "do" for stance in stances}) == 2:
            return "stance"
        if self._rejects(one, other) or self._rejects(other, one):
            return "rejects"
        return None

    def may_merge(self, one: int, other: int) -> bool:
        """Whether two items that are alike may become one without anybody saying so."""
        first, second = self.items[one], self.items[other]
        return (
            first.reviewer != second.reviewer
            and not (first.text_only or second.text_only)
            and bool(self._keywords[one] and self._keywords[other])
            and _speaks_for(first) == _speaks_for(second)
        )

    def _rejects(self, one: int, other: int) -> bool:
        """Whether the first puts aside ("X instead of Y") a keyword of both that the second
        speaks for: rivals that both say `do`."""
        rejected = self._rejected[one] & self._keywords[one] & self._keywords[other]
        return bool(rejected & self._affirmed[other])

    @cached_property
    def _keyword_weights(self) -> dict[str, int]:
        return words.weights(self._keywords)

    @cached_property
    def _text_weights(self) -> dict[str, int]:
        return words.weights(self._texts)

    @cached_property
    def _affirmed(self) -> list[frozenset[str]]:
        return [words.terms(words.split_rejected(item.title)[0]) for item in self.items]

    @cached_property
    def _rejected(self) -> list[frozenset[str]]:
        return [
            words.terms(words.split_rejected(item.title)[1]) - affirmed
            for item, affirmed in zip(self.items, self._affirmed, strict=True)
        ]


def _links(item: Item, relation: str, other: Item) -> bool:
    return any(link.relation == relation and link.item == other.id for link in item.links)


def _rival_choices(first: Item, second: Item) -> bool:
    if first.choice_of is None or second.choice_of is None:
        return False
    one, _, chosen = first.choice_of.partition("=")
    other, _, rival = second.choice_of.partition("=")
    return one == other and chosen != rival


def _speaks_for(item: Item) -> bool:
    """Whether it wants something done; guessed from the title when no stance was declared, so
    that it never merges with a negated twin."""
    if item.stance is not None:
        return item.stance == "do"
    return _NEGATION.search(item.title) is None
