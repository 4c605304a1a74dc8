"""What `council start` is given, checked before anything is changed."""

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from inbox_orch.shared.digests import digest_of, sha256_hex
from inbox_orch.shared.errors import usage
from inbox_orch.shared.ids import check_name

from ..runs import limits
from . import prompts
from .model import Decision
from .stored import (
    DEFAULT_DEADLINE_SECONDS,
    DEFAULT_QUORUM,
    MAX_BRIEF_BYTES,
    MAX_LENS_BYTES,
    MOST_CHOICES,
    MOST_DECISIONS,
    MOST_SEATS,
)
from .views import decision_json

_DECISION = re.compile(r"([A-Za-z][A-Za-z0-9_-]{0,15})=(.+):([^:]+)", re.S)
_MOST_CHOICE_LENGTH = 80


class Asked(NamedTuple):
    """What a council is to be asked, checked."""

    title: str
    brief: str
    reviewers: tuple[str, ...]
    lenses: Mapping[str, tuple[str, str]]
    decisions: tuple[Decision, ...]
    quorum: int
    deadline_seconds: float | None
    seat_seconds: float | None
    at: str | None
    repository: str | None
    warnings: tuple[str, ...]

    @property
    def brief_sha256(self) -> str:
        """Of the bytes that the reviewers read."""
        return sha256_hex(self.brief.encode())

    def digest(self, repository: str | None) -> str:
        """What identifies the request; `repository` is the real path, wherever the call was
        made."""
        facts = self._asdict() | {
            "brief": self.brief_sha256,
            "lenses": dict(self.lenses),
            "decisions": [decision_json(decision) for decision in self.decisions],
            "repository": repository,
            "warnings": None,
        }
        return digest_of(facts)


class CouncilSpec(NamedTuple):
    """A council as it is wanted. `reviewers` empty: the three default ones; `lenses` are
    texts by reviewer; `at` needs the `repository`."""

    brief: str
    title: str | None = None
    reviewers: Sequence[str] = ()
    lenses: Mapping[str, str] | None = None
    decisions: Sequence[str] = ()
    quorum: int | None = None
    deadline_seconds: float | None = DEFAULT_DEADLINE_SECONDS
    seat_seconds: float | None = None
    at: str | None = None
    repository: str | None = None


def check_asked(spec: CouncilSpec) -> Asked:
    """What `council start` is given, checked; nothing is changed. Error `usage`."""
    names = tuple(spec.reviewers) or prompts.DEFAULT_REVIEWERS
    _check_reviewers(names)
    title = _title(spec)
    decisions = _decisions(spec.decisions)
    quorum = min(DEFAULT_QUORUM, len(names)) if spec.quorum is None else spec.quorum
    if not 1 <= quorum <= len(names):
        raise usage(f"the quorum must be from 1 to {len(names)}, the number of reviewers")
    return Asked(
        title=_one_line(title),
        brief=spec.brief,
        reviewers=names,
        lenses=_lenses(names, spec.lenses or {}),
        decisions=decisions,
        quorum=quorum,
        deadline_seconds=spec.deadline_seconds,
        seat_seconds=spec.seat_seconds,
        at=spec.at,
        repository=spec.repository if spec.at is not None else None,
        warnings=_warnings(spec.brief),
    )


def _title(spec: CouncilSpec) -> str:
    """The one that was given, else the brief's; the brief is looked at first."""
    brief = spec.brief
    size = len(brief.encode("utf-8", "surrogatepass"))
    if not brief.strip() or size > MAX_BRIEF_BYTES or "\0" in brief:
        raise usage(f"a brief is text of 1 to {MAX_BRIEF_BYTES} bytes, not blank, without NUL")
    found = spec.title or prompts.title_of(brief)
    if found is None:
        raise usage(
            "the brief has no title",
            hint="begin it with a line `# Title`, or give --title TEXT",
        )
    return found


def _decisions(given: Sequence[str]) -> tuple[Decision, ...]:
    parsed = tuple(parse_decision(text) for text in given)
    twice = {d.id for d in parsed if sum(other.id == d.id for other in parsed) > 1}
    if twice or len(parsed) > MOST_DECISIONS:
        raise usage(
            f"decision {min(twice)} is there twice"
            if twice
            else f"at most {MOST_DECISIONS} decisions can be asked"
        )
    return parsed


def parse_decision(text: str) -> Decision:
    """`D1=Which store?:sqlite|files`; error `usage`."""
    matched = _DECISION.fullmatch(text.strip())
    choices = () if matched is None else tuple(c.strip() for c in matched.group(3).split("|"))
    question = "" if matched is None else " ".join(matched.group(2).split())
    fit = all(c and len(c) <= _MOST_CHOICE_LENGTH and c.isprintable() for c in choices)
    if (
        matched is None
        or not question
        or not question.isprintable()
        or not fit
        or not 2 <= len(choices) <= MOST_CHOICES
        or len(set(choices)) != len(choices)
    ):
        raise usage(
            f"{text[:60]!r} is no decision",
            hint="D1=Which store?:sqlite|files – an id, a question, and 2 to "
            f"{MOST_CHOICES} different choices after the last colon",
        )
    return Decision(matched.group(1), question, choices)


def _check_reviewers(names: Sequence[str]) -> None:
    for name in names:
        check_name(name, "reviewer")
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise usage(
            f"reviewer {twice[0]} is there twice",
            hint="one mailbox is one seat: a second opinion needs a second mailbox",
        )
    if len(names) > MOST_SEATS:
        raise usage(f"a council has 1 to {MOST_SEATS} reviewers, not {len(names)}")


def _lenses(names: Sequence[str], given: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """(name of the lens, text) by reviewer: the caller's own, else the ready one of that name."""
    unknown = sorted(set(given) - set(names))
    if unknown:
        raise usage(
            f"the lens for {unknown[0]!r} belongs to no reviewer",
            hint=f"the reviewers are {', '.join(names)}",
        )
    found = {}
    for name in names:
        if name in given:
            text = given[name]
            size = len(text.encode("utf-8", "surrogatepass"))
            if not text.strip() or size > MAX_LENS_BYTES or "\0" in text:
                raise usage(f"the lens for {name} is not text of 1 to {MAX_LENS_BYTES} bytes")
            found[name] = ("own", text)
        elif name in prompts.LENSES:
            found[name] = (name, prompts.LENSES[name])
    return found


def _warnings(brief: str) -> tuple[str, ...]:
    anchors = prompts.anchors_of(brief)
    if any(anchor != prompts.title_of(brief) for anchor in anchors):
        return ()
    return ("the brief has no sections that a reply can name: number them (`## S1 …`)",)


def _one_line(title: str) -> str:
    """A title that fits a run; what is too long is cut, not refused, when it is the brief's."""
    text = " ".join(title.split())
    while len(text.encode("utf-8", "replace")) > limits.MAX_TITLE_BYTES:
        text = text[:-1]
    return limits.check_title(text)
