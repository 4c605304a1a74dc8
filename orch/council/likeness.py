"""How alike the items of one council are, and which of them speak against each other."""

import re
from collections.abc import Sequence
from functools import cached_property
from itertools import combinations

from . import words
from .model import Item, Parameters
from .opposition import Opposition, keeps, said_opposed, seen_opposed, speech_of
from .texts import UNSEEN, Rivals, cosine, likeness_of_phrases, phrases_of, profiles, usual

_NEGATION = re.compile(r"\b(?:not|never|no|without|avoid|stop|don['’]?t|doesn['’]?t)\b", re.I)

_PHRASES_PERCENT, _TEXT_PERCENT = 75, 110
"""What brings the likeness of phrases and that of texts to the scale of that of single keywords, so
that one threshold serves: unlike items score about 0, and like ones from 170."""

LONG_TERMS = 70
"""From so many different terms on the likeness of texts counts the less, the more they have: two
long texts about one design have much in common whatever they recommend."""


class Likeness:
    """Items compared pair by pair; an item is named by its place in `items`.

    A score is per mille: keywords, matched as phrases and by their words, and the whole text with
    what is usual in this council taken away. The more there is to read, the less keywords count;
    long texts count less as well.
    """

    def __init__(self, items: Sequence[Item], parameters: Parameters) -> None:
        self.items = items
        self._parameters = parameters
        self._keywords = [words.terms(" ".join(item.keywords)) for item in items]
        self._phrases = [phrases_of(item) for item in items]
        self._texts = [
            words.terms(f"{item.title} {item.proposal} {item.rationale}") for item in items
        ]

    def score(self, one: int, other: int) -> int:
        """How alike two items are, per mille."""
        return self._scores[min(one, other), max(one, other)]

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
        `rejects`; None when nothing shows that they do."""
        found = self.opposed(one, other)
        return None if found is None else found.rule

    def opposed(self, one: int, other: int) -> Opposition | None:
        """What shows that two items speak against each other, if anything does."""
        return self._oppositions.get((min(one, other), max(one, other)))

    def may_merge(self, one: int, other: int) -> bool:
        """Whether two items that are alike may become one without a leader's word."""
        first, second = self.items[one], self.items[other]
        return (
            first.reviewer != second.reviewer
            and not (first.text_only or second.text_only)
            and bool(self._keywords[one] and self._keywords[other])
            and bool(_sides(first) & _sides(second))
        )

    @cached_property
    def _oppositions(self) -> dict[tuple[int, int], Opposition]:
        """Of every opposed pair of places, the smaller one first."""
        speeches = [speech_of(item) for item in self.items]
        found = {}
        for pair in combinations(range(len(self.items)), 2):
            first, second = sorted((speeches[p] for p in pair), key=lambda one: one.item.id)
            seen = said_opposed(first.item, second.item) or seen_opposed(first, second)
            if seen is not None:
                found[pair] = seen
        return found

    @cached_property
    def _scores(self) -> dict[tuple[int, int], int]:
        """Every pair of places, the smaller one first."""
        whole = profiles(self.items)
        places = combinations(range(len(self.items)), 2)
        alike = {(a, b): cosine(whole[a], whole[b]) for a, b in places}
        common = self._usual(alike)
        beyond = {(a, b): text - (common[a] + common[b]) // 2 for (a, b), text in alike.items()}
        rivals = Rivals(beyond, [item.reviewer for item in self.items])
        return {
            (a, b): self._score(a, b, rivals.distinct(a, b), (whole[a].size, whole[b].size))
            for a, b in beyond
        }

    def _usual(self, alike: dict[tuple[int, int], int]) -> list[int]:
        """What each item has in common with any item of another reviewer."""
        found: list[list[int]] = [[] for _ in self.items]
        for (a, b), text in alike.items():
            if self.items[a].reviewer != self.items[b].reviewer:
                found[a].append(text)
                found[b].append(text)
        return [usual(scores) for scores in found]

    def _score(self, one: int, other: int, text: int, sizes: tuple[int, int]) -> int:
        keywords = self._by_keywords(one, other)
        short, size = self._parameters.short_terms, min(sizes)
        share = 100 * self._parameters.keyword_tenths * short // max(short, size, 1)
        rest = _TEXT_PERCENT * LONG_TERMS * max(0, text) // (100 * max(LONG_TERMS, size))
        return (share * keywords + (1000 - share) * rest) // 1000

    def _by_keywords(self, one: int, other: int) -> int:
        """How alike the keywords of two items are: half as words, half as phrases."""
        if self._keywords[one].isdisjoint(self._keywords[other]):
            return 0
        by_word = words.likeness(self._keywords[one], self._keywords[other], self._keyword_weights)
        by_phrase = likeness_of_phrases(
            self._phrases[one], self._phrases[other], self._telling_weights
        )
        return (by_word + _PHRASES_PERCENT * by_phrase // 100) // 2

    @cached_property
    def _keyword_weights(self) -> dict[str, int]:
        return words.weights(self._keywords, UNSEEN)

    @cached_property
    def _text_weights(self) -> dict[str, int]:
        return words.weights(self._texts)

    @cached_property
    def _telling_weights(self) -> dict[str, int]:
        """Of what items are about: a word that many use in their proposals makes a poor keyword."""
        return words.weights(
            [
                words.terms(f"{item.title} {item.proposal} {' '.join(item.keywords)}")
                for item in self.items
            ],
            UNSEEN,
        )


def _sides(item: Item) -> frozenset[bool]:
    """Whether it may want something done (True) and may want it not done (False).

    A title that denies or keeps says what a stance against it says, whatever stance was declared:
    "never hide it" is `do` for one and `avoid` for another. Without a stance the title decides.
    """
    against = bool(words.split_negated(item.title)[1].strip()) or keeps(item.title)
    if item.stance is None:
        return frozenset((_NEGATION.search(item.title) is None,))
    if item.stance != "do":
        return frozenset((False,))
    return frozenset((True, False)) if against else frozenset((True,))
