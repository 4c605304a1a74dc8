"""The text of a unified diff, as git writes it, taken apart before git sees it. Pure.

The whole text has to be the diff: git would pass over prose, a fence or the head of a mail, and
with them over what somebody meant to hand in. What can be mended without a doubt is, and is noted.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from .base85 import sizes_of

MAX_TEXT_BYTES = 32 * 1024 * 1024
MAX_CONTENT_BYTES = 256 * 1024 * 1024
"""So much may the binary contents of a patch come to, all together."""
_NOTHING = b"/dev/null"
_SIDES = b"abciow12"
"""What stands before names: of `git diff`, also with `diff.mnemonicPrefix`."""
_EXTENDED = (
    *(b"index ", b"old mode ", b"new mode ", b"deleted file mode ", b"new file mode "),
    *(b"similarity index ", b"dissimilarity index "),
)
_NAMED = (b"rename from ", b"rename to ", b"copy from ", b"copy to ")
_SHOWN = 60
_BODY = (b" ", b"+", b"-", b"\\")


class Malformed(ValueError):
    """The text is no diff, or none that may be applied. The text says why, with the line."""


class Hunk(NamedTuple):
    """Lines of a text, by their indices: its head is at `head`, what it has goes up to `end`.
    `bare`: there is no line of context in it."""

    head: int
    end: int
    bare: bool


class Section(NamedTuple):
    """What the text says of one file: names without the folder before them, None where there is no
    such file, or no such name; `line` is where it begins, from 1."""

    line: int
    old: bytes | None
    new: bytes | None
    creates: bool
    hunks: tuple[Hunk, ...]


class Diff(NamedTuple):
    """A text that is a diff: its lines without their ends, and what was mended. `bare`: some hunk
    of a file that stays has no context."""

    lines: list[bytes]
    sections: tuple[Section, ...]
    notes: tuple[str, ...]

    @property
    def bare(self) -> bool:
        """Whether the place of some hunk is told by its numbers alone."""
        kept = (s for s in self.sections if not s.creates and s.new is not None)
        return any(hunk.bare for section in kept for hunk in section.hunks)

    def text(self, lines: Sequence[bytes] | None = None) -> bytes:
        """As git is given it."""
        return b"".join(line + b"\n" for line in (self.lines if lines is None else lines))


def taken_apart(text: bytes) -> Diff:
    """The parts of a diff. Raises `Malformed`."""
    if len(text) > MAX_TEXT_BYTES:
        raise Malformed(f"the patch has {len(text)} bytes, and at most {MAX_TEXT_BYTES} are taken")
    if not text.strip():
        raise Malformed("the patch is empty")
    lines, notes = _lines_of(text)
    return _Reader(lines, notes).read()


def _lines_of(text: bytes) -> tuple[list[bytes], list[str]]:
    notes = []
    if not text.endswith(b"\n"):
        text += b"\n"
        notes.append("the last line of the text had no end, and was given one")
    lines = text[:-1].split(b"\n")
    if all(line.endswith(b"\r") for line in lines):
        lines = [line[:-1] for line in lines]
        notes.append("every line of the text ended in CR LF: read as LF")
    return lines, notes


class _Reader:
    """Goes through the lines of a text once. `at` is the index of the next one."""

    def __init__(self, lines: list[bytes], notes: list[str]) -> None:
        self.lines, self.notes, self.at = lines, notes, 0
        self.miscounted: list[int] = []
        self.content_bytes = 0

    def read(self) -> Diff:
        sections: list[Section] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if not line.strip(b"\r"):
                self.at += 1
            elif sections and self._is_signature():
                self.lines = self.lines[: self.at]
                self.notes.append("the signature of a mail at the end was left out")
            else:
                sections.append(self._section())
        if self.miscounted:
            first = ", ".join(str(number) for number in self.miscounted[:5])
            self.notes.append(f"the counts in the heads of hunks were wrong (line {first}): mended")
        _refuse_twice(sections)
        return Diff(self.lines, tuple(sections), tuple(self.notes))

    # -- one file --------------------------------------------------------------------------

    def _section(self) -> Section:
        begun, names = self.at, _Names()
        line = self.lines[self.at]
        if line.startswith((b"diff --git ", b"diff -")) and not line.startswith(b"diff --c"):
            if line.startswith(b"diff --git "):
                names.old, names.new = _names_in(line[11:], begun + 1)
            self.at += 1
            self._extended(names)
        elif not line.startswith(b"--- "):
            raise self._no_part()
        hunks: list[Hunk] = []
        if self._next_is(b"--- "):
            hunks = self._changed(names)
        elif self._next_is(b"GIT binary patch"):
            self._binary()
        elif self._next_is(b"Binary files "):
            raise self._wrong(
                "it says that binary files differ, and does not have them: `git diff --binary`"
                " writes them"
            )
        if self.at <= begun + 1:
            raise self._wrong("nothing is said of this file", begun)
        return Section(begun + 1, names.old, names.new, names.creates, tuple(hunks))

    def _changed(self, names: "_Names") -> list[Hunk]:
        """The names of a file before and after, and its hunks."""
        names.old = self._name(b"--- ")
        if not self._next_is(b"+++ "):
            raise self._wrong("`+++` and a name have to stand here")
        names.new = self._name(b"+++ ")
        if names.old is None and names.new is None:
            raise self._wrong("a file is neither before nor after", self.at - 1)
        names.creates = names.creates or names.old is None
        if not self._next_is(b"@@ "):
            raise self._wrong("the head of a hunk (`@@ -1,3 +1,4 @@`) has to stand here")
        hunks = []
        while self._next_is(b"@@ "):
            hunks.append(self._hunk())
        return hunks

    def _extended(self, names: "_Names") -> None:
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.startswith(_NAMED):
                name = _unquoted(line.split(b" ", 2)[2].rstrip(b"\r"))
                check_name(name, self.at + 1)
                if line.split(b" ", 2)[1] == b"to":
                    names.new = name
                else:
                    names.old = name
            elif line.startswith(b"new file mode "):
                names.creates, names.old = True, None
            elif line.startswith(b"deleted file mode "):
                names.new = None
            elif not line.startswith(_EXTENDED):
                return
            self.at += 1

    def _name(self, word: bytes) -> bytes | None:
        """The name after `---` or `+++`, and on to the next line."""
        name = _unquoted(self.lines[self.at][len(word) :].split(b"\t", 1)[0].rstrip(b"\r "))
        self.at += 1
        return None if name == _NOTHING else _without_side(name, self.at)

    # -- hunks -----------------------------------------------------------------------------

    def _hunk(self) -> Hunk:
        head = self.at
        found = re.match(
            rb"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@(.*)", self.lines[head]
        )
        if found is None:
            raise self._wrong("this is no head of a hunk (`@@ -1,3 +1,4 @@`)")
        counts = tuple(1 if each is None else int(each) for each in found.group(2, 4))
        end = self._end_by_counts(head + 1, *counts)
        if end is None:
            end = self._end_by_looks(head + 1)
            self._recount(head, end, found)
        self.at = end
        body = [line if line != b"\r" else b" \r" for line in self.lines[head + 1 : end]]
        self.lines[head + 1 : end] = body  # git knows an empty line for context, and none with a CR
        if not any(line[:1] in (b"+", b"-") for line in body):
            raise self._wrong("this hunk changes nothing", head)
        return Hunk(head, end, not any(line[:1] not in (b"+", b"-", b"\\") for line in body))

    def _end_by_counts(self, at: int, old: int, new: int) -> int | None:
        """None where the counts are wrong."""
        while (old > 0 or new > 0) and at < len(self.lines):
            first = _first(self.lines[at])
            if first not in _BODY:
                return None
            old -= first in (b" ", b"-")
            new -= first in (b" ", b"+")
            at += 1
        if old or new:
            return None
        if at < len(self.lines) and self.lines[at].startswith(b"\\ "):
            at += 1
        return at if self._may_follow(at) else None

    def _may_follow(self, at: int) -> bool:
        """Whether what stands there is no more of the hunk before."""
        while at < len(self.lines) and not self.lines[at].strip(b"\r"):
            at += 1
        if at >= len(self.lines) or self.lines[at][:1] not in _BODY:
            return True
        return self._begins_file(at) or self._is_signature(at)

    def _begins_file(self, at: int) -> bool:
        following = [line[:4] for line in self.lines[at : at + 3]]
        return following[:2] == [b"--- ", b"+++ "] and following[2:] in ([], [b"@@ -"])

    def _end_by_looks(self, at: int) -> int:
        """The end of a hunk whose counts are wrong."""
        while at < len(self.lines) and _first(self.lines[at]) in _BODY:
            if self._begins_file(at) or self._is_signature(at):
                break
            at += 1
        while not self.lines[at - 1].strip(b"\r"):
            at -= 1
        return at

    def _recount(self, head: int, end: int, found: "re.Match[bytes]") -> None:
        firsts = [_first(line) for line in self.lines[head + 1 : end]]
        old = sum(first in (b" ", b"-") for first in firsts)
        new = sum(first in (b" ", b"+") for first in firsts)
        at = (int(found.group(1)), old, int(found.group(3)), new)
        self.lines[head] = b"@@ -%d,%d +%d,%d @@" % at + found.group(5)
        self.miscounted.append(head + 1)

    def _is_signature(self, at: int | None = None) -> bool:
        """Whether the rest is what git-format-patch(1) ends a mail with: two dashes and a blank,
        and its version."""
        rest = self.lines[self.at if at is None else at :]
        while rest and not rest[-1].strip(b"\r"):
            rest = rest[:-1]
        return (
            len(rest) == 2
            and rest[0].rstrip(b"\r") == b"-- "
            and re.match(rb"\d+\.\d[\w.() -]*\r?$", rest[1]) is not None
        )

    # -- binary contents ---------------------------------------------------------------------

    def _binary(self) -> None:
        self.at += 1
        blocks = 0
        while blocks < 2 and self._next_is((b"literal ", b"delta ")):
            begun = self.at
            self.at += 1
            while self.at < len(self.lines) and self.lines[self.at].strip(b"\r"):
                self.at += 1
            try:
                found = sizes_of([line.rstrip(b"\r") for line in self.lines[begun : self.at]])
            except ValueError as error:
                raise self._wrong(str(error), begun) from error
            self.content_bytes += max(found)
            if self.content_bytes > MAX_CONTENT_BYTES:
                most = f"at most {MAX_CONTENT_BYTES} bytes of binary content are taken"
                raise self._wrong(f"it comes to {max(found)} bytes, and {most}", begun)
            if self.at >= len(self.lines):
                # Git wants the empty line that ends it.
                self.lines.append(b"")
            self.at += 1
            blocks += 1
        if not blocks:
            raise self._wrong("`literal` or `delta` and a size have to stand here")

    # -- what is wrong -----------------------------------------------------------------------

    def _next_is(self, words: bytes | tuple[bytes, ...]) -> bool:
        return self.at < len(self.lines) and self.lines[self.at].startswith(words)

    def _wrong(self, why: str, at: int | None = None) -> Malformed:
        number = self.at if at is None else at
        line = self.lines[number] if number < len(self.lines) else b""
        ends = "" if number < len(self.lines) else " (the text ends here)"
        return Malformed(f"line {number + 1}: {why}{ends}{_quoted(line)}")

    def _no_part(self) -> Malformed:
        line = self.lines[self.at]
        if line.lstrip(b" ").startswith((b"```", b"~~~")):
            return self._wrong("a fence is no part of a diff: hand in what is inside alone")
        if re.match(rb"From [0-9a-f]{40,64} ", line):
            return self._wrong(
                "this is the head of a mail: hand in the diff alone, as `git diff` writes it"
            )
        if line.startswith((b"diff --cc", b"diff --combined", b"@@@")):
            return self._wrong("this is the diff of a merge: hand in that to one parent")
        return self._wrong("this is no part of a unified diff: hand in the diff alone")


def _first(line: bytes) -> bytes:
    """What a line of a hunk is: context may have lost its blank."""
    return line[:1] if line.strip(b"\r") else b" "


class _Names:
    """What is known of the names of one file."""

    def __init__(self) -> None:
        self.old: bytes | None = None
        self.new: bytes | None = None
        self.creates = False


# -- names -----------------------------------------------------------------------------------


def _names_in(rest: bytes, line: int) -> tuple[bytes | None, bytes | None]:
    """The names after `diff --git`: they are the same but for what stands before them, or stand
    once more below."""
    rest = rest.rstrip(b"\r")
    if rest.startswith(b'"') or rest.endswith(b'"'):
        parts = re.fullmatch(rb'("(?:[^"\\]|\\.)*"|\S+) ("(?:[^"\\]|\\.)*"|\S.*)', rest)
        if parts is None:
            raise Malformed(f"line {line}: two names have to stand here{_quoted(rest)}")
        old, new = (_unquoted(each) for each in parts.groups())
        return _without_side(old, line), _without_side(new, line)
    if not _has_side(rest):
        _without_side(rest.split(b" ", 1)[0], line)
    middle = len(rest) // 2
    old, new = rest[:middle], rest[middle + 1 :]
    if rest[middle : middle + 1] != b" " or old[2:] != new[2:]:
        return None, None
    return _without_side(old, line), _without_side(new, line)


def _has_side(name: bytes) -> bool:
    return name[1:2] == b"/" and name[:1] in tuple(bytes([side]) for side in _SIDES)


def _without_side(name: bytes, line: int) -> bytes:
    if name.startswith(b"/"):
        raise Malformed(f"line {line}: {_said(name)} is absolute: names count from the top")
    if not _has_side(name):
        raise Malformed(
            f"line {line}: {_said(name)} has to begin with a/ or b/, as `git diff` writes names"
        )
    check_name(name[2:], line)
    return name[2:]


def check_name(name: bytes, line: int | None = None) -> None:
    """Raises `Malformed` for a path that does not lead to a file below the top, or into what is
    git's own."""
    where, parts = "" if line is None else f"line {line}: ", name.split(b"/")
    if name.startswith(b"/"):
        raise Malformed(f"{where}{_said(name)} is absolute: names count from the top")
    if any(part in (b"", b".", b"..") for part in parts) or b"\0" in name:
        raise Malformed(f"{where}{_said(name)} does not lead to a file below the top")
    if any(part.lower() == b".git" for part in parts):
        raise Malformed(f"{where}{_said(name)} belongs to git itself")


_ESCAPES = dict(zip(b'abtnvfr"\\', b'\a\b\t\n\v\f\r"\\', strict=True))


def _unquoted(name: bytes) -> bytes:
    """A name as git quotes it (git-config(1), core.quotePath), without that."""
    if not (len(name) >= 2 and name.startswith(b'"') and name.endswith(b'"')):
        return name

    def meant(found: "re.Match[bytes]") -> bytes:
        digits = found.group(1)
        if digits[:1].isdigit():
            return bytes([int(digits, 8) & 0xFF])
        return bytes([_ESCAPES.get(digits[0], digits[0])])

    return re.sub(rb"\\([0-7]{1,3}|.)", meant, name[1:-1], flags=re.DOTALL)


def _refuse_twice(sections: Sequence[Section]) -> None:
    """Git makes a file that is created twice the second one, and says nothing."""
    there: set[bytes] = set()
    for section in sections:
        if section.creates and section.new is not None and section.new in there:
            raise Malformed(
                f"line {section.line}: {_said(section.new)} is created, and is in this patch before"
            )
        if section.new is not None:
            there.add(section.new)
        elif section.old is not None:
            there.discard(section.old)


def _said(name: bytes) -> str:
    return repr(name[:200].decode("utf-8", "backslashreplace"))


def _quoted(line: bytes) -> str:
    return f": {line[:_SHOWN].decode('utf-8', 'backslashreplace')!r}" if line else ""
