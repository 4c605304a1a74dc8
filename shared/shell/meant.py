"""What may have been meant by a word that is no command. Pure."""

from collections.abc import Iterable, Mapping, Sequence

from .nearest import nearest


def hint_at(word: str, path: str, known: Iterable[str], meant: Mapping[str, Sequence[str]]) -> str:
    """A hint: what is `meant` by a word by agreement, else the nearest name that is `known`, else
    where all are listed. `path` is how the program is called."""
    calls = [_called(path, name) for name in meant.get(word.lower(), ())]
    near = None if calls else nearest(word, known)
    if near is not None:
        calls = [_called(path, near)]
    if not calls:
        return f"`{path} --help` lists the commands"
    return f"did you mean {' or '.join(calls)}?"


def _called(path: str, name: str) -> str:
    return f"`{name}`" if name.startswith("inbox ") else f"`{path} {name}`"
