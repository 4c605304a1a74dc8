"""Names of tasks and of runs; what is named after them, a `Run` says. ASCII and lower case, so
that they mean the same on every file system."""

import re
import unicodedata

from inbox_orch.shared.errors import usage

_KEY = re.compile(r"[a-z0-9][a-z0-9._-]{0,39}")
_MOST_LETTERS = 40
_NOT_IN_SLUG = re.compile(r"[^a-z0-9]+")
# Letters that are no other letter with a mark.
_SPELLED = str.maketrans(
    {"ß": "ss", "æ": "ae", "œ": "oe", "ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "ı": "i"}
)


def check_task_key(key: str) -> str:
    """A key that can be part of a branch name (git-check-ref-format(1)); error `usage`."""
    if not _KEY.fullmatch(key) or ".." in key or key.endswith((".", ".lock")):
        raise usage(
            f"{key[:60]!r} cannot be the key of a task",
            hint="1 to 40 of a-z, 0-9, '.', '_', '-'; the first a letter or a digit; "
            "no '..', not ending in '.' or '.lock'",
        )
    return key


def task_key(title: str) -> str:
    """A key for a task, made of the words of its title."""
    return _slug(title, _MOST_LETTERS) or "task"


def run_name(title: str, run_id: str) -> str:
    """A readable, unique name: words of the title and the end of the id."""
    return f"{_slug(title, 24) or 'run'}-{run_id[-8:].lower()}"


def _slug(title: str, most: int) -> str:
    """The words of a title with hyphens between them; of a letter with a mark the letter."""
    marked = unicodedata.normalize("NFKD", title.lower().translate(_SPELLED))
    letters = "".join(c for c in marked if not unicodedata.combining(c))
    return _NOT_IN_SLUG.sub("-", letters).strip("-")[:most].strip("-")
