"""Which paths a gate is about: globs as people write them. Pure.

Without regular expressions: with several `**` those take far too long for a path that is made so.
"""

from collections.abc import Iterable, Sequence


def matches_any(globs: Sequence[str], paths: Iterable[str]) -> bool:
    """Whether one of the paths fits one of the globs. `*` and `?` stay within a folder, `**` goes
    through any number of them; what names a folder, `src/` or `src`, means all below it."""
    wanted = [glob.removeprefix("./").rstrip("/").split("/") for glob in globs]
    return any(_fits(parts, path.split("/")) for path in paths for parts in wanted)


def _fits(glob: Sequence[str], path: Sequence[str]) -> bool:
    """Whether the glob fits the path, or a folder that it lies in. Goes through the glob once, with
    the places in the path that it can have come to."""
    places = {0}
    for part in glob:
        if part == "**":
            places = set(range(min(places), len(path) + 1))
        else:
            places = {at + 1 for at in places if at < len(path) and _is_like(part, path[at])}
        if not places:
            return False
    return True


def _is_like(pattern: str, name: str) -> bool:
    """Whether a name fits a pattern with `*` and `?`: what the last star stands for is made longer
    as long as the rest does not fit."""
    at = here = 0
    star, resumed = -1, 0
    while here < len(name):
        if at < len(pattern) and pattern[at] == "*":
            star, resumed = at, here
            at += 1
        elif at < len(pattern) and pattern[at] in ("?", name[here]):
            at, here = at + 1, here + 1
        elif star >= 0:
            resumed += 1
            at, here = star + 1, resumed
        else:
            return False
    return not pattern[at:].strip("*")
