"""What may have been meant by a name that is unknown. Pure."""

from collections.abc import Iterable


def nearest(word: str, known: Iterable[str], likeness: float = 0.6) -> str | None:
    """The known name that is most like `word`, None when none is (`likeness` is from 0 to 1).
    A difference of case alone is the nearest of all."""
    import difflib

    names = list(known)
    folded = {name.lower(): name for name in reversed(names)}
    if word.lower() in folded:
        return folded[word.lower()]
    found = difflib.get_close_matches(word, names, n=1, cutoff=likeness)
    return found[0] if found else None


def did_you_mean(word: str, known: Iterable[str], otherwise: str) -> str:
    """A hint: the nearest name as a question, else what to do instead."""
    near = nearest(word, known)
    return otherwise if near is None else f"did you mean {near}?"
