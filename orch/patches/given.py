"""What was handed in as text: a unified diff, or edits as JSON. Pure.

The bytes are kept as they came; nothing is stripped from them.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..git.replacing import Edit
from ..git.unified import MAX_TEXT_BYTES, Malformed, check_name

MOST_EDITS = 1000
KEYS = ("patch", "edits")
"""Of a result's payload: one of them has what is handed in, or names the artifact that has it."""
SHAPES = "{path, old, new}, {path, content}, {path, delete: true}"


class Refused(ValueError):
    """What was handed in is neither a diff nor edits. The text says why."""


class Given(NamedTuple):
    """What was handed in: `raw` as it came, and the edits in it; None where it is a diff."""

    raw: bytes
    edits: tuple[Edit, ...] | None = None

    @property
    def way(self) -> str:
        """Of `model.WAYS`."""
        return "diff" if self.edits is None else "edits"


def named_artifact(payload: Mapping[str, Any]) -> str | None:
    """The artifact that a payload names for what is handed in (`{"patch": {"artifact": "x"}}`)."""
    for key in KEYS:
        value = payload.get(key)
        if isinstance(value, dict) and isinstance(value.get("artifact"), str):
            return str(value["artifact"])
    return None


def of_payload(payload: Mapping[str, Any]) -> Given:
    """What a result has in its payload. Raises `Refused`, also where it has both or neither."""
    there = [key for key in KEYS if payload.get(key) is not None]
    if len(there) != 1:
        found = "both of them" if there else "neither of them"
        raise Refused(f"the result has to have `patch` or `edits` in its payload, and has {found}")
    value = payload[there[0]]
    if there[0] == "patch":
        if not isinstance(value, str):
            raise Refused("`patch` is the text of a unified diff")
        return Given(_bytes(value, "`patch`"))
    raw = json.dumps({"edits": value}).encode()
    return _edits(raw, value)


def of_file(content: bytes) -> Given:
    """What a file has: JSON with `edits` or `patch`, or else a diff. Raises `Refused`."""
    if content.lstrip()[:1] != b"{":
        return Given(content)
    if len(content) > MAX_TEXT_BYTES:
        raise Refused(f"it has {len(content)} bytes, and at most {MAX_TEXT_BYTES} are taken")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise Refused(f"it begins like JSON, and is none: {error}") from error
    found = of_payload(value)
    return found if found.edits is None else found._replace(raw=content)


def _edits(raw: bytes, given: Any) -> Given:
    if not isinstance(given, list) or not 1 <= len(given) <= MOST_EDITS:
        raise Refused(f"`edits` is a list of 1 to {MOST_EDITS} edits")
    return Given(raw, tuple(_edit(each, number) for number, each in enumerate(given, 1)))


def _edit(given: Any, number: int) -> Edit:
    shapes: Mapping[frozenset[str], Sequence[str]] = {
        frozenset({"path", "old", "new"}): ("path", "old", "new"),
        frozenset({"path", "content"}): ("path", "content"),
        frozenset({"path", "delete"}): ("path",),
    }
    keys = shapes.get(frozenset(given)) if isinstance(given, dict) else None
    texts = keys is not None and all(isinstance(given[key], str) for key in keys)
    if keys is None or not texts or given.get("delete", True) is not True:
        raise Refused(f"edit {number} is none of {SHAPES}")
    where = f"edit {number}"
    try:
        check_name(_bytes(given["path"], where))
    except Malformed as wrong:
        raise Refused(f"{where}: {wrong}") from wrong
    path = given["path"]
    if "old" in given:
        if not given["old"]:
            raise Refused(f"{where}: `old` is empty")
        return Edit(path, _bytes(given["old"], where), _bytes(given["new"], where))
    return Edit(path, None, _bytes(given["content"], where) if "content" in given else None)


def _bytes(text: str, what: str) -> bytes:
    """Half a pair of surrogates stands for a byte that is not UTF-8 (PEP 383), or for nothing."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise Refused(f"{what}: {text[error.start]!a} is no character") from error
