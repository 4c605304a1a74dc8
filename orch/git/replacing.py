"""One edit of one file: what it has becomes something else, byte for byte. Pure."""

from typing import NamedTuple

from .endings import brought, is_crlf

_MOST_NAMED = 5
_MOST_LINES = 20_000
_MOST_SHOWN = 100


class Edit(NamedTuple):
    """A change of one file: the one occurrence of `old` becomes `new`; or, where `old` is None,
    `new` is all that the file has; None there takes the file away. Bytes that are not UTF-8 are
    surrogates in the path."""

    path: str
    old: bytes | None
    new: bytes | None


class NotFitting(ValueError):
    """What is looked for is not there exactly once. The text says where it nearly is; `code` is
    `edit_not_found` or `edit_ambiguous`."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def replaced(before: bytes | None, edit: Edit) -> tuple[bytes, str | None]:
    """What a file has then, and what was done to the edit, if anything. Raises `NotFitting`."""
    assert edit.new is not None
    if before is None or edit.old is None:
        return edit.new, None
    old, new, note = edit.old, edit.new, None
    crlf = is_crlf(before)
    if crlf is not None and (brought(old, crlf) != old or brought(new, crlf) != new):
        old, new = brought(old, crlf), brought(new, crlf)
        note = f"line ends brought to the file's, {'CR LF' if crlf else 'LF'}"
    at = before.find(old) if old else -1
    if at < 0:
        raise NotFitting("edit_not_found", f"`old` is not there{_nearest(before, old)}")
    found = _places(before, old, at)
    if len(found) > 1:
        numbers = ", ".join(str(before.count(b"\n", 0, place) + 1) for place in found)
        more = "more than " if len(found) > _MOST_NAMED else ""
        times = f"{more}{min(len(found), _MOST_NAMED)} times"
        raise NotFitting(
            "edit_ambiguous",
            f"`old` is there {times} (lines {numbers}): take in more lines around it",
        )
    return before[:at] + new + before[at + len(old) :], note


def _places(before: bytes, old: bytes, first: int) -> list[int]:
    """Where it is, also where one overlaps the next; no more than can be named, and one."""
    found: list[int] = []
    at = first
    while at >= 0 and len(found) <= _MOST_NAMED:
        found.append(at)
        at = before.find(old, at + 1)
    return found


def _nearest(before: bytes, old: bytes) -> str:
    """The lines of a file that are most like the first of those that were looked for."""
    import difflib

    wanted = next((line.strip() for line in old.splitlines() if line.strip()), b"")
    if not wanted or b"\0" in before:
        return ""
    lines = [line.strip() for line in before.splitlines()[:_MOST_LINES]]
    same = [number for number, line in enumerate(lines, 1) if line == wanted][:_MOST_NAMED]
    if same:
        return f"; its first line is like {_named(lines, same)}: compare blanks and what follows"
    text = wanted[:400].decode("utf-8", "replace")
    texts = {line[:400].decode("utf-8", "replace"): n for n, line in enumerate(lines, 1) if line}
    likely = [each for each in texts if 2 * len(each) > len(text) and len(each) < 2 * len(text)]
    near = difflib.get_close_matches(text, likely[:2000], n=2, cutoff=0.6)
    if not near:
        return "; no line of the file is like its first one"
    return f"; nearest: {_named(lines, sorted(texts[each] for each in near))}"


def _named(lines: list[bytes], numbers: list[int]) -> str:
    named = (
        f"line {number} {lines[number - 1].decode('utf-8', 'backslashreplace')[:_MOST_SHOWN]!r}"
        for number in numbers
    )
    return ", ".join(named)
