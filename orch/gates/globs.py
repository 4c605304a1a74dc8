"""Which paths a gate is about: globs as people write them. Pure."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

_PARTS = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")
_MEANINGS = {"**/": r"(?:.*/)?", "**": r".*", "*": r"[^/]*", "?": r"[^/]"}


def matches_any(globs: Sequence[str], paths: Iterable[str]) -> bool:
    """Whether one of the paths fits one of the globs. `*` and `?` stay within a folder, `**` goes
    through any number of them; what names a folder, `src/` or `src`, means all below it."""
    return any(_pattern(glob).fullmatch(path) for path in paths for glob in globs)


@lru_cache(maxsize=256)
def _pattern(glob: str) -> re.Pattern[str]:
    # Several stars in a row mean no more than two, and would take long to match.
    plain = re.sub(r"(?:\*\*/)+", "**/", re.sub(r"\*{3,}", "**", glob.removeprefix("./")))
    parts = _PARTS.findall(plain.rstrip("/"))
    whole = "".join(_MEANINGS.get(part) or re.escape(part) for part in parts)
    return re.compile(rf"{whole}(?:/.*)?", re.DOTALL)
