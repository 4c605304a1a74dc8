"""What the replies of a council come to: buckets, contested topics, possible duplicates.

A pure function of the replies, the parameters and what leaders settled: the same bytes whatever
the order of arrival, the machine or the hash seed.
"""

import hashlib
import json
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

from . import words
from .banners import banners_of
from .grouping import Grouped, group
from .likeness import Likeness
from .model import SEVERITIES, Council, Decision, Item, Merge, Override, Pair, Seat, Vote

SCHEMA = "orch.council.tally/1"
_ON_PAIRS = ("merge", "split")


class DecisionCount(NamedTuple):
    """How the valid seats chose; `silent` are those that did not."""

    decision: Decision
    choices: dict[str, tuple[str, ...]]
    silent: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.decision.id,
            "question": self.decision.question,
            "choices": {choice: list(self.choices[choice]) for choice in self.decision.choices},
            "silent": list(self.silent),
        }


class Group(NamedTuple):
    """One recommendation in the words of its members; `id` is its smallest item's.

    `raised_by` wrote it by themselves; `endorsed_by`, `opposed_by`, `abstained` answered in the
    second round, `carried` did not answer and keep what they raised. `bucket` is None where one
    seat was asked. `automatic_bucket` differs from it only where a leader moved items. `near` are
    items of other groups that may be about the same: the nearest first.
    """

    id: str
    title: str
    bucket: str | None
    members: tuple[Item, ...]
    raised_by: tuple[str, ...]
    endorsed_by: tuple[str, ...]
    opposed_by: tuple[str, ...]
    abstained: tuple[str, ...]
    carried: tuple[str, ...]
    bucket_after_ballot: str | None
    contested: bool
    merges: tuple[Merge, ...]
    adjusted_by: tuple[int, ...]
    automatic_bucket: str | None
    dismissed: bool
    notes: tuple[str, ...]
    near: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            **self._asdict(),
            "members": [_member(item) for item in self.members],
            "merges": [merge.as_json() for merge in self.merges],
            **{
                name: list(getattr(self, name))
                for name in (
                    *("raised_by", "endorsed_by", "opposed_by", "abstained", "carried"),
                    *("adjusted_by", "notes", "near"),
                )
            },
        }


class Contested(NamedTuple):
    """Two items about one thing that speak against each other, the groups they are in, and by
    what it can be seen."""

    pair: Pair
    groups: tuple[str, str]
    evidence: str

    def as_json(self) -> dict[str, Any]:
        return {**self.pair.as_json(), "groups": list(self.groups), "evidence": self.evidence}


class Tally(NamedTuple):
    """All of it. `status` is `complete`, `degraded`, `no_quorum` or `open`.

    `not_carried_out` are the numbers of the overrides that could not be followed; the
    `warnings` say why.
    """

    council: Council
    status: str
    decisions: tuple[DecisionCount, ...]
    groups: tuple[Group, ...]
    contested: tuple[Contested, ...]
    possible_duplicates: tuple[Pair, ...]
    overrides: tuple[Override, ...]
    banners: tuple[str, ...]
    warnings: tuple[str, ...]
    not_carried_out: frozenset[int] = frozenset()

    @property
    def valid(self) -> tuple[Seat, ...]:
        """The seats whose reply counts."""
        return tuple(seat for seat in self.council.seats if seat.valid)

    def whole_words(self) -> dict[str, str]:
        """For each term that items share, the word that reviewers have written for it."""
        items = [item for group in self.groups for item in group.members]
        keywords = [" ".join(item.keywords) for item in items]
        return words.whole(
            (*keywords, *(f"{item.title} {item.proposal} {item.rationale}" for item in items))
        )

    def as_json(self) -> dict[str, Any]:
        """The contract's shape, with the digest of all the rest."""
        council = self.council
        shape: dict[str, Any] = {
            "schema": SCHEMA,
            "council": {
                "id": council.id,
                "title": council.title,
                "brief_sha256": council.brief_sha256,
            },
            "status": self.status,
            "seats": [_seat(seat) for seat in council.seats],
            "decisions": [decision.as_json() for decision in self.decisions],
            "groups": [one.as_json() for one in self.groups],
            "contested": [one.as_json() for one in self.contested],
            "possible_duplicates": [pair.as_json() for pair in self.possible_duplicates],
            "overrides": [override.as_json() for override in self.overrides],
            "banners": list(self.banners),
            "warnings": list(self.warnings),
            "parameters": council.parameters.as_json(),
            "revision": council.revision,
        }
        return {**shape, "digest": hashlib.sha256(canonical(shape)).hexdigest()}


def canonical(shape: Any) -> bytes:
    """The one way of writing JSON that digests are taken of."""
    text = json.dumps(shape, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.encode("utf-8", "surrogatepass")


def tally(
    council: Council, overrides: Sequence[Override] = (), votes: Sequence[Vote] | None = None
) -> Tally:
    """Count a council. `votes` is None when there was no second round."""
    items = sorted(
        (item for seat in council.seats if seat.valid and seat.reply for item in seat.reply.items),
        key=lambda item: (item.order(), item.id),
    )
    likeness = Likeness(items, council.parameters)
    grouped = group(likeness, council.parameters, overrides, votes or ())
    automatic = grouped
    if overrides:
        automatic = group(likeness, council.parameters, (), votes or ())
    counting = _Counting(council, likeness, grouped, automatic, overrides, votes)
    groups = counting.groups()
    number = sum(seat.valid for seat in council.seats)
    return Tally(
        council,
        _status(council, number),
        tuple(_count(decision, council.seats) for decision in council.decisions),
        groups,
        counting.contested(),
        counting.possible_duplicates(),
        tuple(overrides),
        banners_of(council.seats),
        tuple(_warnings(council.seats, grouped)),
        grouped.not_carried_out,
    )


def bucket(votes: int, declared: int) -> str | None:
    """How many of the declared seats stand behind something; one seat is no council."""
    if declared < 2:
        return None
    if votes >= declared:
        return "consensus"
    return "majority" if 2 * votes > declared else "minority"


class _Counting:
    """Groups and pairs of one council, each named by its smallest item."""

    def __init__(
        self,
        council: Council,
        likeness: Likeness,
        grouped: Grouped,
        automatic: Grouped,
        overrides: Sequence[Override],
        votes: Sequence[Vote] | None,
    ) -> None:
        self._council = council
        self._likeness = likeness
        self._items = likeness.items
        self._grouped = grouped
        self._automatic = automatic
        self._overrides = overrides
        self._votes = votes
        self._opposed_pairs = self._find_opposed()
        self._names = {
            place: min(self._items[p].id for p in places)
            for places in grouped.groups
            for place in places
        }

    def groups(self) -> tuple[Group, ...]:
        contested = {name for one in self.contested() for name in one.groups}
        near = self.possible_duplicates()
        found = [
            self._group(number, places, contested)._replace(near=_near(near, self._ids(places)))
            for number, places in enumerate(self._grouped.groups)
        ]
        return tuple(sorted(found, key=_rank))

    def contested(self) -> tuple[Contested, ...]:
        group_of = {self._items[place].id: name for place, name in self._names.items()}
        found = [
            Contested(pair, (group_of[pair.items[0]], group_of[pair.items[1]]), evidence)
            for pair, evidence in self._opposed_pairs
        ]
        return tuple(sorted(found, key=lambda c: (-c.pair.score, c.pair.items)))

    def possible_duplicates(self) -> tuple[Pair, ...]:
        """The nearest neighbours of each item that are not one with it, and not against it."""
        parameters = self._council.parameters
        found: dict[tuple[int, int], Pair] = {}
        for place in range(len(self._items)):
            near = [
                (-self._likeness.score(place, other), other)
                for other in range(len(self._items))
                if self._may_be_duplicates(place, other)
            ]
            for score, other in sorted(near)[: parameters.neighbours]:
                if -score >= parameters.suggest_from:
                    pair = (min(place, other), max(place, other))
                    found[pair] = self._pair(*pair, "neighbour")
        for said, rule in self._grouped.said_same.items():
            if self._may_be_duplicates(*said):
                found[said] = self._pair(*said, rule)
        return tuple(sorted(found.values(), key=lambda p: (-p.score, p.items)))

    def _may_be_duplicates(self, one: int, other: int) -> bool:
        return (
            self._items[one].reviewer != self._items[other].reviewer
            and self._names[one] != self._names[other]
            and self._likeness.opposition(one, other) is None
            and not self._was_kept_apart(one, other)
        )

    def _was_kept_apart(self, one: int, other: int) -> bool:
        """Whether it has been decided already that the two are not one."""
        pair = {self._items[one].id, self._items[other].id}
        said = [o.kind for o in self._overrides if o.kind in _ON_PAIRS and set(o.items) == pair]
        return bool(said) and said[-1] == "split"

    def _find_opposed(self) -> list[tuple[Pair, str]]:
        """Opposed pairs that are about one thing: alike enough, or said to be opposed; with what
        shows it."""
        threshold = self._council.parameters.merge_from
        found = []
        for one in range(len(self._items)):
            for other in range(one + 1, len(self._items)):
                seen = self._likeness.opposed(one, other)
                if seen is None:
                    continue
                if seen.rule == "opposes" or self._likeness.score(one, other) >= threshold:
                    pair = self._pair(one, other, seen.rule)
                    found.append((_about_first(pair, seen.terms), seen.evidence))
        return found

    def _pair(self, one: int, other: int, rule: str) -> Pair:
        first, second = sorted((self._items[one].id, self._items[other].id))
        score = self._likeness.score(one, other)
        return Pair((first, second), score, self._likeness.shared(one, other), rule)

    def _group(self, number: int, places: tuple[int, ...], contested: set[str]) -> Group:
        members = sorted((self._items[place] for place in places), key=lambda item: item.id)
        name = members[0].id
        raised = tuple(s.reviewer for s in self._council.seats if _raised(s, members))
        votes = self._votes_on(members)
        endorsed = _voters(votes, "agree", raised)
        about = [o for o in self._overrides if set(o.items) & {item.id for item in members}]
        after = None if self._votes is None else self._bucket(len(raised) + len(endorsed))
        return Group(
            id=name,
            title=self._face(places).title,
            bucket=self._bucket(len(raised)),
            members=tuple(members),
            raised_by=raised,
            endorsed_by=endorsed,
            opposed_by=_voters(votes, "disagree", raised),
            abstained=_voters(votes, "abstain", raised),
            carried=self._carried(raised),
            bucket_after_ballot=after,
            contested=name in contested,
            merges=self._grouped.merges[number],
            adjusted_by=self._grouped.adjusted[number],
            automatic_bucket=self._automatic_bucket(name),
            dismissed=any(o.kind == "dismiss" for o in about),
            notes=tuple(o.text for o in about if o.kind in ("note", "dismiss")),
        )

    def _ids(self, places: Sequence[int]) -> set[str]:
        return {self._items[place].id for place in places}

    def _face(self, places: Sequence[int]) -> Item:
        """The member that is most like all the others, in its own words."""
        if len(places) == 1:
            return self._items[places[0]]
        total = {
            place: sum(self._likeness.score(place, other) for other in places if other != place)
            for place in places
        }
        return self._items[min(places, key=lambda place: (-total[place], place))]

    def _bucket(self, votes: int) -> str | None:
        valid = sum(seat.valid for seat in self._council.seats)
        if valid < self._council.parameters.quorum:
            return "unconfirmed"
        return bucket(votes, len(self._council.seats))

    def _automatic_bucket(self, name: str) -> str | None:
        for places in self._automatic.groups:
            members = [self._items[place] for place in places]
            if any(item.id == name for item in members):
                return self._bucket(len({item.reviewer for item in members}))
        raise AssertionError("every item is in a group")

    def _votes_on(self, members: Sequence[Item]) -> list[Vote]:
        ids = {item.id for item in members}
        return [vote for vote in self._votes or () if vote.item in ids]

    def _carried(self, raised: Sequence[str]) -> tuple[str, ...]:
        if self._votes is None:
            return ()
        answered = {vote.reviewer for vote in self._votes}
        return tuple(reviewer for reviewer in raised if reviewer not in answered)


def _about_first(pair: Pair, terms: Sequence[str]) -> Pair:
    """The pair with the terms that it is opposed about before the others that it shares."""
    rest = tuple(term for term in pair.shared if term not in terms)
    return pair._replace(shared=(*terms, *rest))


def _rank(one: Group) -> tuple[Any, ...]:
    """Most support first, then the gravest, then the most confident."""
    gravest = min(SEVERITIES.index(item.severity) for item in one.members)
    known = [item.confidence for item in one.members if item.confidence is not None]
    mean = sum(known) * 1000 // len(known) if known else 0
    return (-len(one.raised_by), gravest, -mean, one.id)


def _near(pairs: Sequence[Pair], mine: Collection[str]) -> tuple[str, ...]:
    """The items outside of a group that are possible duplicates of one in it, in their order."""
    found = (
        other
        for pair in pairs
        for this, other in (pair.items, pair.items[::-1])
        if this in mine and other not in mine
    )
    return tuple(dict.fromkeys(found))


def _raised(seat: Seat, members: Sequence[Item]) -> bool:
    return any(item.reviewer == seat.reviewer for item in members)


def _voters(votes: Sequence[Vote], answer: str, raised: Sequence[str]) -> tuple[str, ...]:
    said = {v.reviewer for v in votes if v.vote == answer}
    return tuple(sorted(said - set(raised)))


def _count(decision: Decision, seats: Sequence[Seat]) -> DecisionCount:
    chosen: dict[str, list[str]] = {choice: [] for choice in decision.choices}
    silent = []
    for seat in seats:
        if not seat.valid or seat.reply is None:
            continue
        votes = [v.choice for v in seat.reply.decisions if v.decision == decision.id]
        if votes and votes[0] in chosen:
            chosen[votes[0]].append(seat.reviewer)
        else:
            silent.append(seat.reviewer)
    return DecisionCount(
        decision, {choice: tuple(names) for choice, names in chosen.items()}, tuple(silent)
    )


def _status(council: Council, valid: int) -> str:
    if not council.closed:
        return "open"
    if valid < council.parameters.quorum:
        return "no_quorum"
    return "complete" if valid == len(council.seats) else "degraded"


def _warnings(seats: Sequence[Seat], grouped: Grouped) -> list[str]:
    found = [
        f"{seat.reviewer}: {warning}"
        for seat in seats
        if seat.reply is not None
        for warning in seat.reply.warnings
    ]
    found += [
        f"{item.id}: stance unstated"
        for seat in seats
        for item in (seat.reply.items if seat.reply is not None else ())
        if item.stance is None and not item.text_only
    ]
    return found + list(grouped.warnings)


def _seat(seat: Seat) -> dict[str, Any]:
    reply = seat.reply if seat.valid else None
    return {
        "reviewer": seat.reviewer,
        "state": seat.state,
        "model": None if reply is None else reply.model,
        "verdict": None if reply is None else reply.verdict,
        "missing_reason": seat.missing_reason,
        "agent": seat.agent if seat.valid else None,
        "warnings": [] if reply is None else list(reply.warnings),
    }


def _member(item: Item) -> dict[str, Any]:
    return {
        "item": item.id,
        "title": item.title,
        "stance": item.stance or "unstated",
        "severity": item.severity,
        "confidence": item.confidence,
    }
