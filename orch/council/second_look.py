"""A second look at items that likeness has left alone.

Two reviewers can write one thing at length and share too few words for the threshold. Then it
tells that each is the other's nearest twice over: by what it is about, and by what it says of it.
"""

from collections.abc import Sequence

from .model import Item, Parameters
from .texts import UNSEEN, Profile, bodies, cosine, heads

_HEADS_PERCENT = 130
"""How much more alike than bodies heads have to be: they are short, and one word makes much."""


def nearest_pairs(items: Sequence[Item], parameters: Parameters) -> list[tuple[int, int]]:
    """Pairs of places, the smaller one first, each nearer to the other than to any item of another
    reviewer, both by title and keywords and by proposal and rationale, and alike by each of them.

    Of items with few terms nothing is said: those are told by their keywords.
    """
    reviewers = [item.reviewer for item in items]
    texts = bodies(items)
    by_text = _nearest(texts, reviewers, parameters.merge_from)
    by_head = _nearest(heads(items), reviewers, _HEADS_PERCENT * parameters.merge_from // 100)
    return [
        (one, other)
        for one, other in enumerate(by_head)
        if other is not None
        and one < other
        and by_head[other] == one
        and by_text[one] == other
        and by_text[other] == one
        and min(texts[one].size, texts[other].size) > parameters.short_terms
    ]


def _nearest(
    profiles: Sequence[Profile], reviewers: Sequence[str], threshold: int
) -> list[int | None]:
    """For each place the one of another reviewer that is most like it, from the threshold on; None
    when there is none, when two are equally near, or when there are few to choose from."""
    found: list[int | None] = []
    for one, profile in enumerate(profiles):
        scores = sorted(
            (cosine(profile, profiles[other]), other)
            for other, reviewer in enumerate(reviewers)
            if reviewer != reviewers[one]
        )
        clear = len(scores) > UNSEEN and scores[-2][0] < scores[-1][0] >= threshold
        found.append(scores[-1][1] if clear else None)
    return found
