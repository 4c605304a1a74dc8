"""Items as weighted terms: what is common in this council weighs little, a long text no more than a
short one. Integers throughout; scores are per mille."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import isqrt
from typing import NamedTuple

from . import words
from .model import Item

# Title and keywords say what an item is about, the proposal what to do; the rationale tells of the
# design as it is, which others describe in the same words for other reasons. In halves of a word.
_TITLE, _KEYWORDS, _PROPOSAL, _RATIONALE = 6, 4, 2, 1

# As in BM25F (Robertson and Zaragoza, 2009), three quarters of a text's length are taken back, and
# a term that comes again adds less and less. That begins late (16 where a search has 1.2), because
# what a recommendation is about comes in its title, its keywords and its proposal.
_SATURATION_TENTHS, _LENGTH_PERCENT = 160, 75

UNSEEN = 10
"""So many items like none are added to those that an item is compared with, so that in a small
council its few neighbours do not pass for what everything has in common."""


class Profile(NamedTuple):
    """An item's terms with their weights, and the length of that vector."""

    weights: Mapping[str, int]
    length: int

    @property
    def size(self) -> int:
        """How many different terms it has."""
        return len(self.weights)


def profiles(items: Sequence[Item]) -> list[Profile]:
    """Every item as BM25F weighs it among the others of its council."""
    counts = [_counted(item) for item in items]
    rarity = words.weights(counts)
    lengths = [sum(count.values()) for count in counts]
    mean = max(1, sum(lengths) // max(1, len(lengths)))
    return [
        _profile(count, 1000 * length // mean, rarity)
        for count, length in zip(counts, lengths, strict=True)
    ]


def _counted(item: Item) -> Counter[str]:
    parts = (
        (_TITLE, item.title),
        (_KEYWORDS, " ".join(item.keywords)),
        (_PROPOSAL, item.proposal),
        (_RATIONALE, item.rationale),
    )
    found: Counter[str] = Counter()
    for weight, text in parts:
        for term in words.listed(text):
            found[term] += weight
    return found


def _profile(count: Mapping[str, int], relative: int, rarity: Mapping[str, int]) -> Profile:
    norm = 10 * (100 - _LENGTH_PERCENT) + _LENGTH_PERCENT * relative // 100
    damping = 2 * _SATURATION_TENTHS * norm // 10
    weights = {
        term: rarity[term] * 100 * (10 + _SATURATION_TENTHS) * often // (1000 * often + damping)
        for term, often in count.items()
    }
    return Profile(weights, isqrt(sum(weight * weight for weight in weights.values())))


def cosine(one: Profile, other: Profile) -> int:
    """How much of two texts is one text, per mille."""
    if not one.length or not other.length:
        return 0
    short, long = sorted((one, other), key=lambda profile: profile.size)
    product = sum(
        weight * long.weights[term]
        for term, weight in short.weights.items()
        if term in long.weights
    )
    return 1000 * product // (one.length * other.length)


def usual(scores: Iterable[int]) -> int:
    """What an item has in common with any other: the mean of its scores, of few of them less."""
    known = list(scores)
    return sum(known) // (len(known) + UNSEEN)


# -- keywords ------------------------------------------------------------------------------

Phrases = tuple[frozenset[str], ...]
"""The keywords of an item, each as the stems of its words."""


def phrases_of(item: Item) -> Phrases:
    """Keywords without words that say nothing, each once, in an order of their own."""
    found = {words.terms(keyword) for keyword in item.keywords} - {frozenset()}
    return tuple(sorted(found, key=sorted))


def likeness_of_phrases(one: Phrases, other: Phrases, weight: Mapping[str, int]) -> int:
    """How well the keywords of each find their like among those of the other, per mille."""
    if not one or not other:
        return 0
    alike = [[words.likeness(phrase, each, weight) for each in other] for phrase in one]
    back = [max(column) for column in zip(*alike, strict=True)]
    return (_mean(one, map(max, alike), weight) + _mean(other, back, weight)) // 2


def _mean(phrases: Phrases, best: Iterable[int], weight: Mapping[str, int]) -> int:
    """The mean of what the phrases have found; those of rare words count more."""
    importance = [isqrt(sum(weight[term] ** 2 for term in phrase)) for phrase in phrases]
    total = sum(importance)
    return sum(a * b for a, b in zip(importance, best, strict=True)) // total if total else 0


# -- beside other items --------------------------------------------------------------------

_RIVALS_PERCENT = 50
"""How much of what an item has in common with its next best is taken away."""


class Rivals:
    """Likeness of items beside their next best. Who recommends a thing does so once: what an item
    has in common with several items of one reviewer is a subject, and no recommendation."""

    def __init__(self, alike: Mapping[tuple[int, int], int], reviewers: Sequence[str]) -> None:
        self._alike = alike
        self._reviewers = reviewers
        best: dict[tuple[int, str], list[int]] = {}
        for (a, b), score in alike.items():
            best.setdefault((a, reviewers[b]), []).append(score)
            best.setdefault((b, reviewers[a]), []).append(score)
        self._best = {key: sorted(scores)[-2:] for key, scores in best.items()}

    def distinct(self, one: int, other: int) -> int:
        """The likeness of two places, the smaller one first, with a part of that of their next
        best taken away."""
        score = self._alike[one, other]
        rivals = self._next(one, other, score) + self._next(other, one, score)
        return score - _RIVALS_PERCENT * rivals // 200

    def _next(self, one: int, other: int, score: int) -> int:
        """How like an item the best other one of that reviewer is."""
        best = self._best[one, self._reviewers[other]]
        if best[-1] != score:
            return max(0, best[-1])
        return max(0, best[0]) if len(best) > 1 else 0
