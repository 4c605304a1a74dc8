"""Which items speak against each other, and by what that can be seen.

Nothing is opposed because two texts are alike and two words differ: there is a link, a choice
between rivals, a pair of stances with keywords in common, of which no title denies something else,
only asks how a thing works or builds on it, or a title that puts aside what another speaks for.
What shows it is kept, for the report.
"""

import re
from typing import NamedTuple

from . import words
from .model import Item
from .texts import Phrases, phrases_of

_KEEPING = re.compile(r"\W*(?:keep|leave|stay|preserve|retain|remain|stick)\b", re.I)

# "Leave X to Y" asks for nothing to be done, just as a denial does.
_LEAVING_TO = re.compile(r"\W*leave\b[^.;:,]*\bto\b", re.I)

# "Specify how X works", "test X": a question without an answer, which leaves X as it is. "Define X
# as Y", "define a Y" and "state that Y" give an answer.
_ASKING = re.compile(
    r"""\W*(?:specify|define|state|say|describe|explain|document|clarify|decide|settle|spell\ out|
        write\ down|test|measure|benchmark)\b (?:\s+(?:\w+ly|now)\b)?+
        (?: \s+(?:how|what|when|where|whether|which|who|whose|why)\b
          | (?!\s+(?:that|an?|another|one|two|new|on|for|against)\b | .*\b(?:as|by)\b) )""",
    re.I | re.S | re.X,
)
# "Extend X to Y" needs X. Whoever wants X "only for Z", or "as it is", speaks against it.
_BUILDING = re.compile(
    r"\W*(?:extend|widen|broaden|generali[sz]e|complement|supplement|reuse|build\s+on)\b", re.I
)
_NO_MORE = re.compile(
    r"[^:;]*(?:\b(?:alone|exactly|just|only|sole|unchanged|as\s+(?:is|it|they))\b|\d)", re.I
)
# "Specify how X is replaced" takes for granted that X will not stay.
_ENDING = re.compile(
    r"\b(?:abandon|abolish|chang|delet|deprecat|disabl|drop|eliminat|migrat|remov|renam|replac|"
    r"retir)\w*|\bphas\w+ out\b",
    re.I,
)
# "Leave X unspecified", "keep X internal": who wants that speaks against asking how X works.
_UNSAID = re.compile(
    r"\b(?:implicit|internal|private|vague|un(?:specified|defined|stated|said|described|explained|"
    r"documented|decided|settled|tested|measured))\b|\bleave\b[^.;:,]{1,120}?\bopen\b",
    re.I,
)

_PART = 3
"""At least one in so many of the keywords of an item has to be the other's as well, and of what a
title puts aside: one keyword of five is a subject on which much can be said in agreement."""


class Opposition(NamedTuple):
    """`rule` is `opposes`, `choice`, `stance` or `rejects`; `evidence` says it in a sentence;
    `terms` are what it is about."""

    rule: str
    evidence: str
    terms: tuple[str, ...] = ()


def said_opposed(first: Item, second: Item) -> Opposition | None:
    """What reviewers themselves said: a link, or choices that exclude each other."""
    for one, other in ((first, second), (second, first)):
        if any(link.relation == "opposes" and link.item == other.id for link in one.links):
            return Opposition("opposes", f"{one.id} says that it opposes {other.id}")
    if first.choice_of is None or second.choice_of is None:
        return None
    decision, _, chosen = first.choice_of.partition("=")
    same, _, rival = second.choice_of.partition("=")
    if decision != same or chosen == rival:
        return None
    return Opposition("choice", f"{first.choice_of} against {second.choice_of}")


class Speech(NamedTuple):
    """What an item says in its keywords and its title: what the title speaks for (`kept`) and
    what it puts aside in so many words, and the same with every form of denial."""

    item: Item
    phrases: Phrases
    keywords: frozenset[str]
    kept: frozenset[str]
    rejected: frozenset[str]
    spoken_for: frozenset[str]
    denied: frozenset[str]


def speech_of(item: Item) -> Speech:
    """An item as its opposition to others is looked for."""
    kept, rejected = map(words.terms, words.split_rejected(item.title))
    spoken_for, denied = map(words.terms, words.split_negated(item.title))
    keywords = words.terms(" ".join(item.keywords))
    return Speech(item, phrases_of(item), keywords, kept, rejected - kept, spoken_for, denied)


def seen_opposed(first: Speech, second: Speech) -> Opposition | None:
    """What can be seen in two items that are about one thing."""
    return _by_stance(first, second) or _by_title(first, second) or _by_title(second, first)


def _by_stance(first: Speech, second: Speech) -> Opposition | None:
    """`do` against `avoid` or `keep`, about keywords of both that are not few among theirs.

    Not when the titles say otherwise: "avoid merging the worker's commits" and "do squash them"
    differ in stance, and agree.
    """
    stances = {first.item.stance, second.item.stance}
    if None in stances or len({stance == "do" for stance in stances}) == 1:
        return None
    about = _subject(first, second)
    doing, other = (first, second) if first.item.stance == "do" else (second, first)
    if not about or _denies_another_thing(other, doing) or _lets_stay(doing, other):
        return None
    if _leans(doing, about) == "against" or _leans(other, about) == "for":
        return None
    if doing.denied & other.denied or (keeps(doing.item.title) and keeps(other.item.title)):
        return None
    if other.denied and _LEAVING_TO.match(doing.item.title):
        return None
    if other.denied and not about & other.denied and not keeps(other.item.title):
        return None
    terms = tuple(sorted(about))
    evidence = (
        f"{doing.item.id} says do, {other.item.id} says {other.item.stance}, "
        f"both about {' '.join(terms)}"
    )
    return Opposition("stance", evidence, terms)


def _denies_another_thing(other: Speech, doing: Speech) -> bool:
    """Whether more than half of what a title denies is nothing that the other speaks for, and
    they share less than half of the keywords.

    The rest of a denial may be all that is denied: who does it "not silently" may well do it.
    """
    if not other.denied or keeps(other.item.title):
        return False
    common = sum(phrase in doing.phrases for phrase in other.phrases)
    if 2 * common >= min(len(doing.phrases), len(other.phrases)):
        return False
    return 2 * len(other.denied & (doing.spoken_for - doing.denied)) < len(other.denied)


def _lets_stay(doing: Speech, other: Speech) -> bool:
    """Whether one asks how a thing works, or builds on it, that the other wants kept.

    Both can be had, unless the one takes for granted that the thing goes, or the other wants it
    left unsaid, or no more of it, or is against some of what the one speaks for.
    """
    title, kept = doing.item.title, other.item.title
    asks, builds = _ASKING.match(title), _BUILDING.match(title)
    ending = words.terms(" ".join(_ENDING.findall(title)))
    if not (asks or builds) or ending - other.spoken_for:
        return False
    if other.item.stance != "keep" and not keeps(kept):
        return False
    if _LEAVING_TO.match(kept) or (_UNSAID.search(kept) if asks else _NO_MORE.match(kept)):
        return False
    return not other.denied & doing.spoken_for and not doing.denied & other.spoken_for


def keeps(title: str) -> bool:
    """Whether a title wants something left as it is."""
    return _KEEPING.match(title) is not None and not words.keeps_out(title)


def _subject(first: Speech, second: Speech) -> frozenset[str]:
    """The keywords of both, if they are what the two are about: they are a third of the keywords
    of one, and a title names them or most keywords are the same."""
    common = [phrase for phrase in first.phrases if phrase in second.phrases]
    if _PART * len(common) < min(len(first.phrases), len(second.phrases)):
        return frozenset()
    about = frozenset[str]().union(*common)
    titles = first.spoken_for | first.denied | second.spoken_for | second.denied
    most = 2 * len(first.keywords & second.keywords) > len(first.keywords | second.keywords)
    return about if most or about & titles else frozenset()


def _leans(one: Speech, about: frozenset[str]) -> str | None:
    """Whether the words of a title are `for` or `against` something; None when it is not told."""
    if about & one.denied:
        return None if about & (one.spoken_for - one.denied) else "against"
    return "for" if one.denied and about & one.spoken_for else None


def _by_title(one: Speech, other: Speech) -> Opposition | None:
    """Rivals of which one at least wants a change: the first puts aside ("X instead of Y") a
    keyword of both that the second speaks for, and little else, and there is no keyword that both
    speak for."""
    if one.item.stance == other.item.stance == "keep":
        return None  # what is there now cannot contradict itself
    common = one.keywords & other.keywords
    terms = tuple(sorted(one.rejected & common & other.spoken_for))
    if not terms or _PART * len(terms) < len(one.rejected):
        return None
    if common & one.kept & other.spoken_for:
        return None
    evidence = f"{one.item.id} puts aside what {other.item.id} speaks for: {' '.join(terms)}"
    return Opposition("rejects", evidence, terms)
