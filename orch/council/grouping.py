"""Which items are one recommendation: complete-link merging, then what was said to be the same.

Complete link, because a chain of neighbours would bridge distinct recommendations. Where a group
can grow in two ways, the mean of all pairs decides, since it tells more than the weakest. What is
said to be the same comes after it and joins whole groups: before it, an item that a leader adds to
a group would push out those that are unlike it. Every merge keeps its reason.
"""

import heapq
import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .likeness import Likeness
from .linking import Word, about_groups, by_place, rests_on, words_in_replies, words_on_ballots
from .model import Merge, Override, Parameters, Vote


class Grouped(NamedTuple):
    """Groups of places in the sequence of items, each with its merges, and what could not be
    done as it was asked. `adjusted` are the numbers of the overrides that touched a group;
    `said_same` are pairs that one reviewer alone calls the same, with the rule;
    `not_carried_out` the numbers of the overrides that could not be followed."""

    groups: tuple[tuple[int, ...], ...]
    merges: tuple[tuple[Merge, ...], ...]
    adjusted: tuple[tuple[int, ...], ...]
    warnings: tuple[str, ...]
    said_same: Mapping[tuple[int, int], str]
    not_carried_out: frozenset[int] = frozenset()


def group(
    likeness: Likeness,
    parameters: Parameters,
    overrides: Sequence[Override] = (),
    votes: Sequence[Vote] = (),
) -> Grouped:
    """Group the items of a council.

    What a leader has split stays apart whatever else is said. Opposed items become one group only
    when a leader insists.
    """
    grouping = _Grouping(likeness)
    merging = grouping.settle(overrides)
    grouping.merge_alike(parameters.merge_from)
    grouping.link(votes)
    grouping.merge(merging)
    return grouping.result(overrides)


def _ordered(word: Word) -> tuple[int, int]:
    return min(word.one, word.other), max(word.one, word.other)


class _Grouping:
    """Groups in the making; each is known by the smallest place in it."""

    def __init__(self, likeness: Likeness) -> None:
        self._likeness = likeness
        self._items = likeness.items
        self._place = {item.id: place for place, item in enumerate(self._items)}
        self._members = {place: [place] for place in range(len(self._items))}
        self._group_of = list(range(len(self._items)))
        self._merges: dict[int, list[Merge]] = {place: [] for place in self._members}
        self._kept_apart: set[tuple[int, int]] = set()
        self._said_same: dict[tuple[int, int], str] = {}
        self._resting: dict[tuple[int, ...], str | None] = {}
        self._warnings: list[str] = []
        self._not_carried_out: set[int] = set()
        pairs = list(itertools.combinations(range(len(self._items)), 2))
        self._scores = {pair: likeness.score(*pair) for pair in pairs}
        self._opposed = {pair for pair in pairs if likeness.opposition(*pair) is not None}
        self._may_merge = {
            pair for pair in pairs if pair not in self._opposed and likeness.may_merge(*pair)
        }

    # -- what was said -----------------------------------------------------------------------

    def settle(self, overrides: Sequence[Override]) -> list[Override]:
        """Keep apart what leaders have split; what they have merged, to be carried out later.

        For one pair of items the last word counts.
        """
        last: dict[tuple[int, int], Override] = {}
        for override in overrides:
            if override.kind in ("merge", "split"):
                pair = self._pair(override.items)
                if pair is None:
                    items = " and ".join(override.items)
                    self._leave_out(override, f"there are no two items {items}")
                else:
                    last[pair] = override
        self._kept_apart = {pair for pair, over in last.items() if over.kind == "split"}
        merging = [override for override in last.values() if override.kind == "merge"]
        return sorted(merging, key=lambda override: override.number)

    def merge(self, overrides: Sequence[Override]) -> None:
        """Join the groups that leaders have merged."""
        for override in overrides:
            pair = self._pair(override.items)
            assert pair is not None
            if not self._join(pair, f"override {override.number}", forced=override.forced):
                why = "are opposed or kept apart, themselves or others of their groups"
                self._leave_out(override, f"{' and '.join(override.items)} {why}")

    def link(self, votes: Sequence[Vote]) -> None:
        """What reviewers said is the same, in their replies and then in the second round; the
        likeliest first, since an item can join one group only."""
        alike = list(self._group_of)
        written_by = [item.reviewer for item in self._items]
        replied, voted = words_in_replies(self._items), words_on_ballots(votes, self._items)
        self._believe(replied.words, replied.words, alike)
        groups = about_groups(voted.words, self._group_of, written_by)
        self._believe(voted.words, [*replied.words, *groups], alike)
        for one, other in (*replied.unknown, *voted.unknown):
            self._warnings.append(f"{one} is linked to {other}, which is no item")

    def _believe(self, new: Sequence[Word], known: Sequence[Word], alike: Sequence[int]) -> None:
        words = by_place(known)
        self._resting.clear()
        for word in sorted(new, key=lambda word: (-self._scores[_ordered(word)], word)):
            pair = _ordered(word)
            alone = self._rests_on(pair, alike, words)
            ids = " and ".join(self._items[place].id for place in (word.one, word.other))
            if alone is not None:
                self._warnings.append(
                    f"{ids} stay apart: that they are the same is the word of {alone} alone, "
                    "and others wrote what it would make one"
                )
                self._said_same.setdefault(pair, word.rule)
            elif not self._join(pair, word.rule, forced=False):
                self._warnings.append(f"{ids} are opposed, and stay apart")

    def _rests_on(
        self, pair: tuple[int, int], alike: Sequence[int], words: Mapping[int, Sequence[Word]]
    ) -> str | None:
        """The reviewer on whose word alone the joining of two groups would rest."""
        one, other = sorted(self._group_of[place] for place in pair)
        if one == other:
            return None
        # Groups only grow, so that their sizes tell whether they are as they were.
        known = (one, len(self._members[one]), other, len(self._members[other]))
        if known not in self._resting:
            places = sorted(self._members[one] + self._members[other])
            written_by = [item.reviewer for item in self._items]
            self._resting[known] = rests_on(places, written_by, alike, words)
        return self._resting[known]

    # -- what is alike -----------------------------------------------------------------------

    def merge_alike(self, threshold: int) -> None:
        """Merge the two groups that are most alike in the mean of their pairs, again and again,
        as long as their least alike members reach `threshold`."""
        queue: list[tuple[int, int, int]] = []
        groups = sorted(self._members)
        for position, one in enumerate(groups):
            for other in groups[position + 1 :]:
                self._offer(queue, one, other, threshold)
        while queue:
            mean, one, other = heapq.heappop(queue)
            # An entry is void when one of its groups has become another or has grown since.
            if one not in self._members or other not in self._members:
                continue
            found = self._complete(one, other)
            if found is None or self._mean(one, other) != -mean:
                continue
            self._unite(one, other, self._reason("likeness", found))
            for third in sorted(self._members):
                if third != one:
                    self._offer(queue, min(one, third), max(one, third), threshold)

    def _offer(
        self, queue: list[tuple[int, int, int]], one: int, other: int, threshold: int
    ) -> None:
        found = self._complete(one, other)
        if found is not None and found[0] >= threshold:
            heapq.heappush(queue, (-self._mean(one, other), one, other))

    def _complete(self, one: int, other: int) -> tuple[int, int, int] | None:
        """The lowest score between two groups and its pair; None when they may not merge."""
        lowest: tuple[int, int, int] | None = None
        for first in self._members[one]:
            for second in self._members[other]:
                pair = (min(first, second), max(first, second))
                if pair in self._kept_apart or pair not in self._may_merge:
                    return None
                candidate = (self._scores[pair], *pair)
                if lowest is None or candidate < lowest:
                    lowest = candidate
        return lowest

    def _mean(self, one: int, other: int) -> int:
        """The mean of the scores between two groups, per mille."""
        scores = [
            self._scores[min(first, second), max(first, second)]
            for first in self._members[one]
            for second in self._members[other]
        ]
        return sum(scores) // len(scores)

    # -- joining -----------------------------------------------------------------------------

    def _join(self, pair: tuple[int, int], rule: str, *, forced: bool) -> bool:
        """Make one group of those of two items; False when something speaks against it."""
        one, other = sorted((self._group_of[pair[0]], self._group_of[pair[1]]))
        if one == other:
            return True
        for first in self._members[one]:
            for second in self._members[other]:
                crossing = (min(first, second), max(first, second))
                if crossing in self._kept_apart or (crossing in self._opposed and not forced):
                    return False
        self._unite(one, other, self._reason(rule, (self._scores[pair], *pair)))
        return True

    def _unite(self, one: int, other: int, reason: Merge) -> None:
        """`one` is the smaller place, and stays the name of the group."""
        joining = self._members.pop(other)
        self._members[one] = sorted(self._members[one] + joining)
        for place in joining:
            self._group_of[place] = one
        self._merges[one] += [*self._merges.pop(other), reason]

    def _reason(self, rule: str, found: tuple[int, int, int]) -> Merge:
        score, one, other = found
        first, second = sorted((self._items[one].id, self._items[other].id))
        return Merge(rule, (first, second), score, self._likeness.shared(one, other))

    def _pair(self, ids: Sequence[str]) -> tuple[int, int] | None:
        places = sorted({self._place[name] for name in ids if name in self._place})
        return (places[0], places[1]) if len(places) == 2 else None

    def _leave_out(self, override: Override, why: str) -> None:
        self._not_carried_out.add(override.number)
        self._warnings.append(f"override {override.number} was not carried out: {why}")

    def result(self, overrides: Sequence[Override]) -> Grouped:
        """The groups as they are now."""
        names = sorted(self._members)
        touched: dict[int, set[int]] = {name: set() for name in names}
        for override in overrides:
            for item in override.items:
                if item in self._place:
                    touched[self._group_of[self._place[item]]].add(override.number)
        return Grouped(
            tuple(tuple(self._members[name]) for name in names),
            tuple(tuple(self._merges[name]) for name in names),
            tuple(tuple(sorted(touched[name])) for name in names),
            tuple(self._warnings),
            self._said_same,
            frozenset(self._not_carried_out),
        )
