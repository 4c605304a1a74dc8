"""The things of a council as frozen values, and their one shape in JSON."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.digests import sha256_hex

STANCES = ("do", "avoid", "keep")
KINDS = ("risk", "defect", "improvement", "tradeoff", "question", "idea")
SEVERITIES = ("blocker", "major", "minor", "nit")
"""From the gravest."""

VALID = ("valid", "valid_after_kill", "late")
"""Seat states whose reply is counted."""


class Link(NamedTuple):
    """What a reviewer says about another item: `same_as`, `opposes` or `depends_on`."""

    relation: str
    item: str


class Item(NamedTuple):
    """One recommendation of one reviewer. `id` is `<reviewer>/<its id in the reply>`.

    `stance` is None when it was not declared; `text_only` is prose that is never merged by
    itself. `confidence` is in percent.
    """

    id: str
    reviewer: str
    title: str
    proposal: str = ""
    rationale: str = ""
    keywords: tuple[str, ...] = ()
    stance: str | None = None
    about: str = "general"
    choice_of: str | None = None
    kind: str = "improvement"
    severity: str = "minor"
    confidence: int | None = None
    evidence: tuple[Mapping[str, Any], ...] = ()
    links: tuple[Link, ...] = ()
    text_only: bool = False

    def order(self) -> str:
        """What items are ordered by: their content, never the time of their arrival."""
        parts = (self.reviewer, self.id, self.title, self.proposal)
        return sha256_hex(json.dumps(parts).encode())


class DecisionVote(NamedTuple):
    """A reviewer's choice in a decision that the brief declares."""

    decision: str
    choice: str
    confidence: int | None = None
    why: str = ""


class Reply(NamedTuple):
    """One reviewer's reply, read and checked. `verdict` is None when a plain text gave none;
    `warnings` are about the reply itself."""

    reviewer: str
    verdict: str | None
    checked: tuple[str, ...] = ()
    decisions: tuple[DecisionVote, ...] = ()
    items: tuple[Item, ...] = ()
    no_recommendations_because: str | None = None
    strengths: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()
    model: str | None = None
    usage: Mapping[str, Any] = {}
    warnings: tuple[str, ...] = ()


class Seat(NamedTuple):
    """One declared reviewer and how it stands. `reply` is there for the states in `VALID`;
    `missing_reason` says in one line why it is not. `agent` is who held the lease with which the
    reply was handed in, `voter` the same for the second round; None when it is not known."""

    reviewer: str
    state: str
    reply: Reply | None = None
    missing_reason: str | None = None
    agent: str | None = None
    voter: str | None = None

    @property
    def valid(self) -> bool:
        """Whether its reply counts."""
        return self.state in VALID and self.reply is not None


class Decision(NamedTuple):
    """What the brief asks to be decided, with its possible choices."""

    id: str
    question: str
    choices: tuple[str, ...]


class Vote(NamedTuple):
    """An answer in the second round. `item` is the smallest item of the group voted on."""

    reviewer: str
    item: str
    vote: str
    same_as: str | None = None
    why: str = ""


class Override(NamedTuple):
    """What a leader has settled: `merge` or `split` of two items, `dismiss` or `note` on the
    group of the first one. Never adds a vote."""

    number: int
    kind: str
    items: tuple[str, ...]
    text: str
    actor: str
    forced: bool = False

    def as_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "kind": self.kind,
            "items": list(self.items),
            "reason": self.text,
            "actor": self.actor,
            "forced": self.forced,
        }


class Parameters(NamedTuple):
    """The numbers of the method. Scores are per mille.

    `keyword_tenths` of a score are the keywords while the shorter of two items has at most
    `short_terms` different terms; where there is more to read they count less in proportion.
    """

    merge_from: int = 170
    suggest_from: int = 90
    neighbours: int = 4
    keyword_tenths: int = 8
    short_terms: int = 20
    quorum: int = 2

    def as_json(self) -> dict[str, Any]:
        return self._asdict()


class Council(NamedTuple):
    """What is asked, and of how many. `seats` are all that were declared, in their order."""

    id: str
    title: str
    brief_sha256: str
    seats: tuple[Seat, ...]
    decisions: tuple[Decision, ...] = ()
    parameters: Parameters = Parameters()
    revision: int = 1
    closed: bool = True


class Merge(NamedTuple):
    """Why two groups became one: the rule, the lowest score between them, what they share."""

    rule: str
    items: tuple[str, str]
    score: int
    shared: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        return {
            "rule": self.rule,
            "items": list(self.items),
            "score": self.score,
            "shared": list(self.shared),
        }


class Pair(NamedTuple):
    """Two items that belong to one topic and not to one group, and by which rule that is known."""

    items: tuple[str, str]
    score: int
    shared: tuple[str, ...]
    rule: str

    def as_json(self) -> dict[str, Any]:
        return {
            "items": list(self.items),
            "score": self.score,
            "shared": list(self.shared),
            "rule": self.rule,
        }
