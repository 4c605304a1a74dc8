"""What reviewers say is the same, and how far one reviewer's word goes.

A seat may add its own item to a group. It may never make one group of what others wrote by
themselves: that would be a vote which one seat gives for another.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from .model import Item, Vote


class Word(NamedTuple):
    """That two items are the same, as `by` says: in its reply (`same_as`) or on its ballot
    (`ballot same_as`). Items are named by their places."""

    by: str
    one: int
    other: int
    rule: str


class Said(NamedTuple):
    """Words about items that there are, and those that name none."""

    words: tuple[Word, ...]
    unknown: tuple[tuple[str, str], ...]


def words_in_replies(items: Sequence[Item]) -> Said:
    """Every `same_as` of the first round."""
    said = [
        (item.reviewer, item.id, link.item, "same_as")
        for item in items
        for link in item.links
        if link.relation == "same_as"
    ]
    return _placed(said, items)


def words_on_ballots(votes: Iterable[Vote], items: Sequence[Item]) -> Said:
    """Every `same_as` of the second round."""
    said = [
        (vote.reviewer, vote.item, vote.same_as, "ballot same_as")
        for vote in votes
        if vote.same_as is not None
    ]
    return _placed(said, items)


def _placed(said: Iterable[tuple[str, str, str, str]], items: Sequence[Item]) -> Said:
    place = {item.id: number for number, item in enumerate(items)}
    words, unknown = [], []
    for by, one, other, rule in sorted(said):
        if one in place and other in place and one != other:
            words.append(Word(by, place[one], place[other], rule))
        elif one != other:
            unknown.append((one, other))
    return Said(tuple(words), tuple(unknown))


def about_groups(
    words: Iterable[Word], group_of: Sequence[int], written_by: Sequence[str]
) -> list[Word]:
    """Words on ballots as words about every member of the groups that were voted on. One's own
    item stands for itself alone."""
    members: dict[int, list[int]] = {}
    for place, group in enumerate(group_of):
        members.setdefault(group, []).append(place)
    found = dict.fromkeys(words)
    for word in list(found):
        for voted in (word.one, word.other):
            if written_by[voted] != word.by:
                # A star is enough: whoever is linked to one of a group is linked to all of it.
                others = members[group_of[voted]]
                found |= dict.fromkeys(
                    word._replace(one=voted, other=other) for other in others if other != voted
                )
    return list(found)


def by_place(words: Iterable[Word]) -> dict[int, list[Word]]:
    """The words about each item."""
    found: dict[int, list[Word]] = {}
    for word in words:
        found.setdefault(word.one, []).append(word)
        found.setdefault(word.other, []).append(word)
    return found


def rests_on(
    places: Sequence[int],
    written_by: Sequence[str],
    alike: Sequence[int],
    words: Mapping[int, Sequence[Word]],
) -> str | None:
    """The reviewer on whose word alone it rests that what others wrote is one; None when there
    is no such reviewer.

    `alike` names for each place the group that likeness made. What several say, or what holds
    without anybody's word, rests on nobody.
    """
    within = set(places)
    inside = [
        word
        for place in places
        for word in words.get(place, ())
        if word.one == place and word.other in within
    ]
    for reviewer in sorted({word.by for word in inside}):
        others = [place for place in places if written_by[place] != reviewer]
        kept = [(word.one, word.other) for word in inside if word.by != reviewer]
        if not _is_one(others, places, alike, kept):
            return reviewer
    return None


def _is_one(
    wanted: Sequence[int],
    places: Sequence[int],
    alike: Sequence[int],
    pairs: Iterable[tuple[int, int]],
) -> bool:
    """Whether all that is wanted hangs together by likeness and by these pairs."""
    first_alike: dict[int, int] = {}
    leader = {place: first_alike.setdefault(alike[place], place) for place in places}

    def root(place: int) -> int:
        while leader[place] != place:
            leader[place] = leader[leader[place]]
            place = leader[place]
        return place

    for one, other in pairs:
        leader[root(one)] = root(other)
    return len({root(place) for place in wanted}) < 2
