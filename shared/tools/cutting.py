"""Results of tools that are too long for a client: what is left out, and how it is had.

A client hands all of a result to its model, and some refuse one of more than 25,000 tokens, about
80 kB of text. So a long text is cut, and after that a long list; what was cut is kept for a while,
and a tool of its own reads on in it. Knows no protocol.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..errors import InboxOrchError, not_found, usage
from .tools import VERBATIM, Described, Tool

MOST_TEXT_BYTES = 32 * 1024
"""Of one text; of an object that somebody else wrote, as JSON; and of what is read on at once."""
MOST_BYTES = 64 * 1024
"""Of a whole result, as JSON."""
_SHORTER = [MOST_TEXT_BYTES >> times for times in range(6)]
_MOST_KEPT, _MOST_KEPT_BYTES = 64, 64 * 1024 * 1024
_SLACK_BYTES = 200  # what is said of a cut
Path = tuple[str | int, ...]


class _Cut(NamedTuple):
    """A place where a result is cut: the whole as text, and how many of its bytes are there."""

    path: Path
    whole: str
    shown_bytes: int
    ref: str


class Rests:
    """What has been cut off lately, by the references that were given out."""

    def __init__(self, tool: str) -> None:
        """`tool` is the name of the one that reads on."""
        self._tool = tool
        self._kept: dict[str, bytes] = {}
        self._given = 0

    def shortened(self, content: dict[str, Any]) -> dict[str, Any]:
        """A result as it is, or cut, with `cut` before everything else."""
        if _size(content) <= MOST_TEXT_BYTES:
            return content
        shape, cuts = content, list[_Cut]()
        for most in _SHORTER:
            cuts = []
            shape = self._short(content, most, (), cuts)
            if _size(shape) + _SLACK_BYTES * len(cuts) <= MOST_BYTES:
                break
        while _size(shape) + _SLACK_BYTES * len(cuts) > MOST_BYTES:
            path = _longest_list(shape)
            if path is None:
                break
            cuts = self._shorten_list(shape, path, content, cuts)
        if not cuts:
            return content
        for cut in cuts:
            self._keep(cut)
        return {"cut": [_said(cut) for cut in cuts], **shape}

    def _short(self, value: Any, most: int, path: Path, cuts: list[_Cut]) -> Any:
        """The value with its long texts cut, a copy."""
        if isinstance(value, list):
            return [self._short(v, most, (*path, n), cuts) for n, v in enumerate(value)]
        if isinstance(value, dict) and not _is_verbatim(path):
            return {k: self._short(v, most, (*path, k), cuts) for k, v in value.items()}
        whole = value if isinstance(value, str) else _text(value) if isinstance(value, dict) else ""
        content = whole.encode(errors="replace")
        if len(content) <= most:
            return value
        ref = self._next_ref(cuts)
        if isinstance(value, dict):
            cuts.append(_Cut(path, whole, 0, ref))
            return {"cut": f"{self._tool} with ref {ref} has it"}
        begun = content[:most].decode(errors="ignore")
        cuts.append(_Cut(path, whole, len(begun.encode()), ref))
        return f"{begun}… [cut here: {len(content)} bytes in all, {self._tool} has the rest]"

    def _shorten_list(
        self, shape: dict[str, Any], path: Path, content: Any, cuts: list[_Cut]
    ) -> list[_Cut]:
        """Leave off the end of a list; the cuts that there are then."""
        shown, whole = _at(shape, path), _at(content, path)
        room = MOST_BYTES - _size(shape) + _size(shown) - _SLACK_BYTES * (len(cuts) + 1)
        count = 1
        for each in shown[1:]:
            room -= _size(each) + 1
            if room < _size(shown[0]):
                break
            count += 1
        del shown[count:]
        gone = len(path)
        left = [c for c in cuts if c.path[:gone] != path or _place(c.path[gone]) < count]
        return [*left, _Cut(path, _text(whole[count:]), 0, self._next_ref(cuts))]

    def _next_ref(self, cuts: list[_Cut]) -> str:
        last = int(cuts[-1].ref[1:]) if cuts else self._given
        return f"r{last + 1}"

    def _keep(self, cut: _Cut) -> None:
        self._given = max(self._given, int(cut.ref[1:]))
        self._kept[cut.ref] = cut.whole.encode(errors="replace")
        while len(self._kept) > 1 and (
            len(self._kept) > _MOST_KEPT or sum(map(len, self._kept.values())) > _MOST_KEPT_BYTES
        ):
            del self._kept[next(iter(self._kept))]

    def answer(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The next part of what was cut, as a command answers."""
        try:
            return {"ok": True, "data": self._part(given)}
        except InboxOrchError as error:
            return {"ok": False, "error": error.as_json()}

    def _part(self, given: Mapping[str, Any]) -> dict[str, Any]:
        ref, offset = given.get("ref"), given.get("offset", 0)
        if not isinstance(ref, str) or isinstance(offset, bool) or not isinstance(offset, int):
            raise usage("ref is a text, and offset a whole number", hint="`cut` has both")
        kept = self._kept.get(ref)
        if kept is None:
            raise not_found("text", ref[:40], hint="it is kept no longer: call the tool again")
        if not 0 <= offset <= len(kept):
            raise usage(f"offset must be from 0 to {len(kept)}, not {offset}")
        end = min(offset + MOST_TEXT_BYTES, len(kept))
        while end < len(kept) and kept[end] & 0xC0 == 0x80:
            end -= 1  # not inside of a character
        text = kept[offset:end].decode(errors="ignore")
        shape: dict[str, Any] = {"text": text, "bytes": len(kept)}
        return shape if end == len(kept) else {**shape, "next": end}


def rest_tool(program: str) -> Described:
    """The tool that reads on, as a client is told of it."""
    return Described(
        Tool("mcp", reads=True),
        f"{program}_rest",
        "Read on where a result says `cut`.",
        (),
        {
            "type": "object",
            "properties": {
                "ref": {"type": "string", "description": "From `cut`."},
                "offset": {"type": "integer", "description": "`shown`, then `next`."},
            },
            "additionalProperties": False,
            "required": ["ref"],
        },
        {
            "type": "object",
            "properties": {"text": {"type": "string"}, "bytes": {"type": "integer"}},
            "required": ["text", "bytes"],
        },
    )


def _said(cut: _Cut) -> dict[str, Any]:
    """What a result says of a cut. Of a list what is left off is text from its beginning on."""
    said = ""
    for part in cut.path:
        said += f"[{part}]" if isinstance(part, int) else f".{part}"
    size = len(cut.whole.encode(errors="replace"))
    return {"at": said.lstrip("."), "bytes": size, "shown": cut.shown_bytes, "ref": cut.ref}


def _longest_list(value: Any, path: Path = ()) -> Path | None:
    """Where the list is that takes most room, of those with more than one item."""
    found: list[tuple[int, Path]] = []

    def look(value: Any, path: Path) -> None:
        if isinstance(value, list) and len(value) > 1:
            found.append((_size(value), path))
        if isinstance(value, list):
            for number, each in enumerate(value):
                look(each, (*path, number))
        elif isinstance(value, dict) and not _is_verbatim(path):
            for name, each in value.items():
                look(each, (*path, name))

    look(value, path)
    return max(found)[1] if found else None


def _is_verbatim(path: Path) -> bool:
    """Whether what is there is somebody else's object; what stands beside an error is ours."""
    return path != ("data",) and path[-1:] != () and path[-1] in VERBATIM


def _at(value: Any, path: Path) -> Any:
    for part in path:
        value = value[part]
    return value


def _place(part: str | int) -> int:
    return part if isinstance(part, int) else 0


def _text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _size(value: Any) -> int:
    """In bytes, as JSON."""
    return len(_text(value).encode(errors="replace"))
