"""Patterns of paths as gitignore(5) has them. Pure, and never slow: no regular expressions, with
which a pattern of many stars can take for ever.

A pattern that fits a folder fits all below it, and what lies in a folder that is fitted cannot be
taken out again by a later `!`. Of several patterns the last that fits decides.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from . import folding

_STAR, _ANY, _DEEP = "*", "?", "**"


class _Class(NamedTuple):
    """`[a-z]`: single characters and ranges, or all but these."""

    ranges: tuple[tuple[str, str], ...]
    negated: bool

    def has(self, letter: str) -> bool:
        return any(low <= letter <= high for low, high in self.ranges) is not self.negated


_Token = str | _Class
_Part = str | tuple[_Token, ...]
"""A name as it is, `**`, or its tokens."""


class Pattern(NamedTuple):
    """One pattern: `parts` between its slashes, `anchored` where it counts from the top,
    `folders` where it fits folders alone, `negated` with a `!` before it."""

    text: str
    parts: tuple[_Part, ...]
    anchored: bool
    folders: bool
    negated: bool
    folded: bool


def fault(text: str) -> str | None:
    """What is wrong with a pattern; None for one that can be gone by."""
    if not text.strip() or not text.isprintable():
        return "a pattern is text without control characters, like src/**"
    if text.startswith("#"):
        return "a line that begins with # is a comment in such files; \\# means the character"
    rest = text.removeprefix("!")
    if not rest.strip("/"):
        return "it names nothing"
    if any(part in (".", "..") for part in rest.split("/")):
        return "it cannot lead upwards: paths count from the top of the repository"
    if "//" in rest:
        return "it has an empty name between two slashes"
    if rest.startswith("./"):
        return "paths count from the top of the repository, without ./"
    if rest.count("\\") and (len(rest) - len(rest.rstrip("\\"))) % 2:
        return "it ends with a backslash, which has to have something after it"
    return None


def parsed(text: str, *, folded: bool = False) -> Pattern:
    """The pattern that a text is; `folded`: upper and lower case are one."""
    negated = text.startswith("!")
    rest = (
        folding.folded(text[1:] if negated else text) if folded else text[1:] if negated else text
    )
    folders = rest.endswith("/")
    rest = rest.rstrip("/")
    anchored = "/" in rest
    parts = tuple(_part(part) for part in rest.removeprefix("/").split("/"))
    if anchored and parts[0] == _DEEP and len(parts) == 2 and parts[1] != _DEEP:
        parts, anchored = parts[1:], False
    return Pattern(text, parts, anchored, folders, negated, folded)


def _part(text: str) -> _Part:
    if text == _DEEP:
        return _DEEP
    tokens: list[_Token] = []
    plain, at = True, 0
    while at < len(text):
        letter, after = text[at], at + 1
        if letter == "\\" and after < len(text):
            tokens.append("\\" + text[after])
            after += 1
        elif letter == "[":
            found, after = _bracket(text, at)
            tokens.append(found)
            plain = plain and isinstance(found, str)
        elif letter in (_STAR, _ANY):
            plain = False
            if letter != _STAR or tokens[-1:] != [_STAR]:
                tokens.append(letter)
        else:
            tokens.append("\\" + letter)
        at = after
    if plain:
        return "\\" + "".join(str(token)[1:] for token in tokens)
    return tuple(tokens)


def _bracket(text: str, at: int) -> tuple[_Token, int]:
    """The class that begins here, and what comes after it; without an end it is the character."""
    inside, after = [], at + 1
    negated = text[after : after + 1] in ("!", "^")
    after += negated
    first = after
    while after < len(text) and (text[after] != "]" or after == first):
        if text[after] == "\\" and after + 1 < len(text):
            after += 1
        inside.append(text[after])
        after += 1
        if text[after : after + 1] == "-" and text[after + 1 : after + 2] not in ("", "]"):
            high = after + 1 + (text[after + 1] == "\\" and after + 2 < len(text))
            inside[-1] += text[high]
            after = high + 1
    if after >= len(text):
        return "\\[", at + 1
    return _Class(tuple((each[0], each[-1]) for each in inside), negated), after + 1


def _fits_name(part: _Part, name: str) -> bool:
    if isinstance(part, str):
        return part == _DEEP or part[1:] == name
    at = here = 0
    star, resumed = -1, 0
    while here < len(name):
        token = part[at] if at < len(part) else None
        if token == _STAR:
            star, resumed = at, here
            at += 1
        elif token is not None and _fits_letter(token, name[here]):
            at, here = at + 1, here + 1
        elif star >= 0:
            resumed += 1
            at, here = star + 1, resumed
        else:
            return False
    return all(token == _STAR for token in part[at:])


def _fits_letter(token: _Token, letter: str) -> bool:
    if isinstance(token, _Class):
        return token.has(letter)
    return token == _ANY or token == "\\" + letter


def _may_fit(part: _Part, name: str) -> bool:
    """Whether a folded name fits, or is the short one of a name that does."""
    if _fits_name(part, name):
        return True
    found = folding.short(name)
    if found is None:
        return False
    if isinstance(part, str):
        return folding.is_of(found, part[1:])
    return folding.is_of_some(found, _literal(part), _literal(part[::-1])[::-1])


def _literal(tokens: Sequence[_Token]) -> str:
    """The plain letters that tokens begin with."""
    plain = itertools.takewhile(lambda t: isinstance(t, str) and t[0] == "\\", tokens)
    return "".join(str(token)[1:] for token in plain)


def fitted(
    pattern: Pattern, names: Sequence[str], fits: Callable[[_Part, str], bool] = _fits_name
) -> set[int]:
    """How many of the first names of a path a pattern fits, as a folder or as the whole: `a/*`
    fits two of `a/b/c`. `fits` says whether a name fits a part of it."""
    if not pattern.anchored:
        return {place for place, name in enumerate(names, 1) if fits(pattern.parts[0], name)}
    places = {0}
    for number, part in enumerate(pattern.parts):
        if part == _DEEP:
            # At the end it means all that lies below, and not the folder itself.
            least = min(places) + (number == len(pattern.parts) - 1 and number > 0)
            places = set(range(least, len(names) + 1))
        else:
            places = {p + 1 for p in places if p < len(names) and fits(part, names[p])}
        if not places:
            break
    return places


class Patterns:
    """Several patterns, asked of many paths. `strict_about` says on which side to err where names
    are one on some disks (see `folding`): `found` lets a path be found by any name that some disk
    takes for it, `allowed` only by its own, None is as gitignore(5) has it."""

    def __init__(self, texts: Sequence[str], strict_about: str | None = None) -> None:
        self.texts = tuple(texts)
        self._folds = strict_about == "found"
        patterns = [parsed(text, folded=_is_folded(text, strict_about)) for text in texts]
        self._every = patterns
        negating = any(pattern.negated for pattern in patterns)
        # Most patterns are a name, or the way to one: those are looked up.
        self._ways: dict[str, Pattern] = {}
        self._names: dict[str, Pattern] = {}
        self._others: list[Pattern] = []
        for pattern in patterns:
            way = None if negating else _plain_way(pattern)
            if way is None:
                self._others.append(pattern)
            else:
                known = self._ways if pattern.anchored else self._names
                if way not in known or known[way].folders:
                    known[way] = pattern
        self._folders: dict[str, Pattern | None] = {"": None}

    def found(self, path: str) -> str | None:
        """The pattern that fits a file, or a folder that it lies in; None where none does."""
        pattern = self._found(path)
        if pattern is None and self._folds:
            pattern = self._found_elsewhere(path)
        return None if pattern is None else pattern.text

    def _found(self, path: str) -> Pattern | None:
        return self._of_folder(path.rpartition("/")[0]) or self._of_file(path)

    def _found_elsewhere(self, path: str) -> Pattern | None:
        """By the names that Windows takes for the same: hardly any path has such a name."""
        plain = folding.of_windows(path)
        if plain is not None and (pattern := self._found(plain)) is not None:
            return pattern
        if "~" not in path:
            return None
        names = [folding.folded(name) for name in (plain or path).split("/")]
        if not any(map(folding.short, names)):
            return None
        wild = [(each, fitted(each, names, _may_fit)) for each in self._every]
        for number in range(1, len(names) + 1):
            found = _last(wild, number, is_folder=number < len(names))
            if found is not None:
                return found
        return None

    def _of_folder(self, folder: str) -> Pattern | None:
        if folder not in self._folders:
            names = folder.split("/")
            wild = self._wild(names)
            found = None
            for number in range(1, len(names) + 1):
                found = self._looked_up("/".join(names[:number]), is_folder=True)
                found = found or _last(wild, number, is_folder=True)
                if found is not None:
                    break
            self._folders[folder] = found
        return self._folders[folder]

    def _of_file(self, path: str) -> Pattern | None:
        known = self._looked_up(path, is_folder=False)
        if known is not None or not self._others:
            return known
        names = path.split("/")
        return _last(self._wild(names), len(names), is_folder=False)

    def _looked_up(self, path: str, *, is_folder: bool) -> Pattern | None:
        folded = folding.folded(path) if self._folds else path
        for known in (self._ways.get(folded), self._names.get(folded.rpartition("/")[2])):
            if known is not None and (is_folder or not known.folders):
                return known
        return None

    def _wild(self, names: list[str]) -> list[tuple[Pattern, set[int]]]:
        folded = [folding.folded(name) for name in names] if self._others else []
        return [(each, fitted(each, folded if each.folded else names)) for each in self._others]


def _last(wild: list[tuple[Pattern, set[int]]], number: int, *, is_folder: bool) -> Pattern | None:
    """The last pattern that fits so many names, unless that is a negated one."""
    for pattern, places in reversed(wild):
        if number in places and (is_folder or not pattern.folders):
            return None if pattern.negated else pattern
    return None


def _plain_way(pattern: Pattern) -> str | None:
    """The one path, or name, that a pattern fits; None where it has a wildcard."""
    names = [part[1:] for part in pattern.parts if isinstance(part, str) and part != _DEEP]
    return "/".join(names) if len(names) == len(pattern.parts) else None


def _is_folded(text: str, strict_about: str | None) -> bool:
    if strict_about is None:
        return False
    return (strict_about == "found") is not text.startswith("!")
