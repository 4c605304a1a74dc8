"""Texts as sets of terms, and how alike two of them are. Integers throughout, so that every
machine comes to the same."""

import functools
import math
import re
import unicodedata
from collections.abc import Collection, Iterable, Mapping
from typing import Any

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_WORD = re.compile(r"[^\W_]+")
# "X instead of Y": what comes after is what the writer does not want.
_REJECTED = re.compile(r"\b(?:instead of|rather than|in place of)\b(.*?)(?:[.;:,]|$)", re.I | re.S)
# "Never X", "leave X out": what comes after is what the writer speaks against.
_NEGATED = re.compile(
    r"\b(?:never|not|no|without|avoid\w*|stop|don['’]?t|doesn['’]?t|cannot|can['’]?t|drop|remove|"
    r"nothing|refuse|reject|forbid|disable|exclude|defer|postpone)\b(.*?)(?:[.;:,]|$)",
    re.I | re.S,
)
# "Keep X out of Y", "take X out of Y": it speaks against X, and Y is a place that it speaks neither
# for nor against.
_KEPT_OUT = re.compile(r"\b(?:leave|keep|take|move|pull)\b([^.;:,]{1,120}?)\bout\b[^.;:,]*", re.I)
_STOP_WORDS = frozenset(
    """
    a about above after again all also an and any are as at be because been before being below
    between both but by can could did do does doing don down during each every few for from
    further had has have having he her here hers him his how i if in instead into is it its itself
    just let may me more most must my no nor not now of off on once one only or other our out over
    own per rather s same she should so some such t than that the their them then there these they
    this those through to too under until up use used using very via was we were what when where
    which while who whom why will with would you your
    """.split()  # noqa: SIM905 - prose reads better than a list
)


def terms(text: str) -> frozenset[str]:
    """The different stems of a text's words."""
    return frozenset(listed(text))


def listed(text: str) -> list[str]:
    """The stems of a text's words in order: NFKC, camelCase split, folded, without stop words."""
    return [stem(word) for word in _written(text)]


def whole(texts: Iterable[str]) -> dict[str, str]:
    """For each stem in the texts the word that is most often written for it, of two equal ones the
    first: stems are for counting, people read words."""
    forms: dict[str, dict[str, int]] = {}
    for text in texts:
        for word in _written(text):
            counts = forms.setdefault(stem(word), {})
            counts[word] = counts.get(word, 0) + 1
    return {term: max(counts, key=lambda word: counts[word]) for term, counts in forms.items()}


def _written(text: str) -> list[str]:
    normal = _CAMEL.sub(" ", unicodedata.normalize("NFKC", text)).casefold()
    return [word for word in _WORD.findall(normal) if word not in _STOP_WORDS]


@functools.lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """The Snowball stem of an English word."""
    return str(_stemmer().stemWord(word))


@functools.cache
def _stemmer() -> Any:
    # Only a tally needs it, and it takes longer to import than many a command.
    import snowballstemmer

    return snowballstemmer.stemmer("english")


def split_negated(text: str) -> tuple[str, str]:
    """What a text speaks for, and what it speaks against in whatever form: puts aside, denies,
    leaves out, takes away or puts off."""
    kept, rejected = split_rejected(text)
    left_out = _KEPT_OUT.findall(kept)
    kept = _KEPT_OUT.sub(" ", kept)
    denied = " ".join((rejected, *left_out, *_NEGATED.findall(kept)))
    return _NEGATED.sub(" ", kept), denied


def keeps_out(text: str) -> bool:
    """Whether it says that something is kept out, which leaves nothing as it is."""
    return _KEPT_OUT.search(text) is not None


def split_rejected(text: str) -> tuple[str, str]:
    """What a text speaks for, and what it puts aside ("instead of …", "rather than …")."""
    return _REJECTED.sub(" ", text), " ".join(_REJECTED.findall(text))


def weights(documents: Collection[Iterable[str]], unseen: int = 0) -> dict[str, int]:
    """How telling each term is among these documents: round(1000·ln(1 + n/df)).

    Taken inside one council, so that what it is all about counts little. `unseen` documents that
    have none of the terms are added, so that among few a term that two have is not yet common.
    """
    frequency: dict[str, int] = {}
    for document in documents:
        for term in set(document):
            frequency[term] = frequency.get(term, 0) + 1
    number = len(documents) + unseen
    return {term: round(1000 * math.log(1 + number / df)) for term, df in frequency.items()}


def likeness(one: frozenset[str], other: frozenset[str], weight: Mapping[str, int]) -> int:
    """The weighted Jaccard likeness of two sets of terms, per mille."""
    whole = sum(weight[term] for term in one | other)
    return 1000 * sum(weight[term] for term in one & other) // whole if whole else 0
