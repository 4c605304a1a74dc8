"""Patches and edits as workers hand them in, checked before git sees them. Pure.

A patch is a unified diff and nothing else: no prose, no fence. Nothing in it may lead out of the
tree that it is for.
"""

from collections.abc import Mapping, Sequence
from typing import Any

MAX_PATCH_BYTES = 4 * 1024 * 1024
MOST_EDITS = 1000
_HEADERS = (
    *("diff --git ", "index ", "old mode ", "new mode ", "deleted file mode ", "new file mode "),
    *("similarity index ", "dissimilarity index ", "rename from ", "rename to ", "copy from "),
    *("copy to ", "--- ", "+++ "),
)
_NOTHING = "/dev/null"


class Refused(ValueError):
    """What was handed in is no patch, or none that may be applied. The text says why."""


def check_patch(text: str) -> None:
    """Raises `Refused` for what is more, or something else, than a unified diff of text, and for
    names that lead out of the tree."""
    if len(text.encode("utf-8", "surrogateescape")) > MAX_PATCH_BYTES:
        raise Refused(f"the patch has more than {MAX_PATCH_BYTES} bytes")
    if not text.strip():
        raise Refused("the patch is empty")
    removed = added = 0
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        if removed > 0 or added > 0:
            removed, added = _inside(line, number, removed, added)
        elif line.startswith("@@ "):
            removed, added = _begun(line, number)
        elif line.startswith("\\ "):
            continue
        elif line.startswith(("GIT binary patch", "Binary files ")):
            raise Refused(f"line {number}: binary content is not applied here")
        elif not line.startswith(_HEADERS):
            raise Refused(f"line {number} is no part of a unified diff: {line[:60]!r}")
        else:
            _check_header(line, number)
    if removed or added:
        raise Refused("the patch ends in the middle of a hunk")


def _begun(line: str, number: int) -> tuple[int, int]:
    import re

    found = re.match(r"@@ -\d{1,9}(?:,(\d{1,9}))? \+\d{1,9}(?:,(\d{1,9}))? @@", line)
    if found is None:
        raise Refused(f"line {number} is no head of a hunk: {line[:60]!r}")
    return tuple(1 if each is None else int(each) for each in found.groups())  # type: ignore[return-value]


def _inside(line: str, number: int, removed: int, added: int) -> tuple[int, int]:
    first = line[:1]
    if first == "\\":
        return removed, added
    if first in ("", " ", "\r"):
        return removed - 1, added - 1
    if first == "-":
        return removed - 1, added
    if first == "+":
        return removed, added - 1
    raise Refused(f"line {number} is no line of a hunk: {line[:60]!r}")


def _check_header(line: str, number: int) -> None:
    word, _, rest = line.partition(" ")
    if word in ("---", "+++"):
        name = rest.partition("\t")[0].rstrip("\r")
        if name != _NOTHING and not name.startswith('"'):
            check_path(name.partition("/")[2] if not name.startswith("/") else name, number)
    elif line.startswith(("rename ", "copy ")):
        name = line.split(" ", 2)[2].rstrip("\r")
        if not name.startswith('"'):
            check_path(name, number)


def check_path(path: str, number: int | None = None) -> None:
    """Raises `Refused` for a path that does not lead to a file below the top, or into what is
    git's own."""
    where = "" if number is None else f"line {number}: "
    parts = path.split("/")
    if path.startswith("/"):
        raise Refused(f"{where}{path[:200]!r} is absolute: names count from the top")
    if not path or any(part in ("", ".", "..") for part in parts) or "\0" in path:
        raise Refused(f"{where}{path[:200]!r} does not lead to a file below the top")
    if any(part.lower() == ".git" for part in parts):
        raise Refused(f"{where}{path[:200]!r} belongs to git itself")


def edits_of(given: Any) -> list[tuple[str, str | None, str | None]]:
    """(path, old, new) of each edit, as `git.applying.Edit` has them. `given` is a list of
    `{path, old, new}`, `{path, content}` or `{path, delete: true}`; raises `Refused` otherwise."""
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_EDITS:
        raise Refused(f"`edits` is a list of 1 to {MOST_EDITS} edits")
    return [_edit(each, number) for number, each in enumerate(given, 1)]


def _edit(given: Any, number: int) -> tuple[str, str | None, str | None]:
    shapes: Mapping[frozenset[str], Sequence[str]] = {
        frozenset({"path", "old", "new"}): ("path", "old", "new"),
        frozenset({"path", "content"}): ("path", "content"),
        frozenset({"path", "delete"}): ("path",),
    }
    keys = shapes.get(frozenset(given)) if isinstance(given, dict) else None
    texts = keys is not None and all(isinstance(given[key], str) for key in keys)
    if keys is None or not texts or given.get("delete", True) is not True:
        known = "{path, old, new}, {path, content}, {path, delete: true}"
        raise Refused(f"edit {number} is none of {known}")
    try:
        check_path(given["path"])
    except Refused as refused:
        raise Refused(f"edit {number}: {refused}") from refused
    if "old" in given:
        if not given["old"]:
            raise Refused(f"edit {number}: `old` is empty")
        return given["path"], given["old"], given["new"]
    return given["path"], None, given.get("content")
