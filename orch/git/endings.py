"""Line endings of what is handed in as text, brought to those of the file that it is for. Pure.

A file whose lines all end in CR LF keeps that, and one without any gets none: what is handed in
never leaves a file with both, unless it had both.
"""

from collections.abc import Callable, Mapping

from .unified import Diff, Section


def is_crlf(content: bytes) -> bool | None:
    """Whether every line of a file ends in CR LF; False where none does, None where some do, where
    there is no end of a line, and for what is no text."""
    ends = content.count(b"\n")
    if not ends or b"\0" in content:
        return None
    with_cr = content.count(b"\r\n")
    return True if with_cr == ends else None if with_cr else False


def brought(content: bytes, crlf: bool) -> bytes:
    """A text with one kind of line ends."""
    plain = content.replace(b"\r\n", b"\n")
    return plain.replace(b"\n", b"\r\n") if crlf else plain


def fitted(
    diff: Diff, files: Mapping[bytes, bytes], shown: Callable[[bytes], str]
) -> tuple[list[bytes], list[str]]:
    """The lines of a diff as they fit the files that it is for, and what was done to them. `files`
    are the contents before, by name, of those that are there."""
    lines, notes = list(diff.lines), []
    for section in diff.sections:
        content = files.get(section.old) if section.old is not None else None
        crlf = None if content is None else is_crlf(content)
        if content is None or crlf is None:
            continue
        if _fit(lines, section, content, crlf):
            ends = "CR LF" if crlf else "LF"
            notes.append(f"{shown(section.old or b'')}: line ends brought to the file's, {ends}")
    return lines, notes


def _fit(lines: list[bytes], section: Section, content: bytes, crlf: bool) -> bool:
    """Whether lines of the section were changed, in place."""
    body = [
        at for hunk in section.hunks for at in range(hunk.head + 1, hunk.end) if _counts(lines, at)
    ]
    before = [at for at in body if lines[at][:1] != b"+"]
    other = [at for at in body if lines[at].endswith(b"\r") is not crlf]
    if not other:
        return False
    whole = content.count(b"\n") + (not content.endswith(b"\n"))
    removed = sum(lines[at][:1] == b"-" for at in before)
    if not set(other).intersection(before) and removed >= whole:
        return False  # all of the file is replaced: its ends as well
    for at in other:
        lines[at] = (lines[at] or b" ") + b"\r" if crlf else lines[at][:-1] or b" "
    return True


def _counts(lines: list[bytes], at: int) -> bool:
    """Whether a line of a hunk has an end: not the mark for one that has none, nor that one."""
    if lines[at][:1] == b"\\":
        return False
    return not (at + 1 < len(lines) and lines[at + 1].startswith(b"\\ "))
