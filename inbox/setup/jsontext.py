"""JSON as a text with places: where each value begins and ends, so that text can be put between.

Comments and trailing commas are read where the agent reads them, too. Nothing is ever written
anew: who wants a change inserts text, or takes out what was inserted.
"""

import json
import re
from typing import Any, NamedTuple

from .edits import UnfitError

_DEEPEST = 100
_DECODER = json.JSONDecoder()
_SPACE = re.compile(r"[ \t\r\n]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_WORD = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|true|false|null")


class Child(NamedTuple):
    """A member or an item. `before` is where the thing before it ends (a bracket, comma or
    comment), `start` where its name or value begins, `comma` where its comma stands, if any."""

    name: str | None
    before: int
    start: int
    node: "Node"
    comma: int | None


class Node(NamedTuple):
    """A value from `start` to `end`. Of an object or array, `last` is where the last thing before
    its closing bracket ends."""

    start: int
    end: int
    value: Any
    children: tuple[Child, ...]
    last: int

    def child(self, name: str) -> Child | None:
        """The member of this name."""
        return next((each for each in self.children if each.name == name), None)


def parse(text: str, *, comments: bool) -> Node:
    """The value that is the whole text; raises UnfitError. A byte order mark may be in front."""
    reader = _Reader(text, comments)
    at, _ = reader.skip(1 if text.startswith("\ufeff") else 0)
    node = reader.value(at, 0)
    at, _ = reader.skip(node.end)
    if at != len(text):
        raise reader.wrong(at, "there is something behind the value")
    return node


class _Reader:
    def __init__(self, text: str, comments: bool) -> None:
        self.text, self.comments = text, comments

    def wrong(self, at: int, why: str) -> UnfitError:
        line = self.text.count("\n", 0, at) + 1
        return UnfitError(f"is not JSON: line {line}: {why}")

    def skip(self, at: int) -> tuple[int, int | None]:
        """(where the next token begins, where the last comment before it ends)."""
        ended = None
        while True:
            at = _match(_SPACE, self.text, at)
            comment = _COMMENT.match(self.text, at) if self.comments else None
            if comment is None:
                return at, ended
            at = ended = comment.end()

    def peek(self, at: int) -> str:
        return self.text[at : at + 1]

    def value(self, at: int, depth: int) -> Node:
        if depth > _DEEPEST:
            raise self.wrong(at, "too many levels")
        if self.peek(at) in ("{", "["):
            return self.container(at, depth)
        if self.peek(at) == '"':
            value, end = self.string(at)
        else:
            end = _match(_WORD, self.text, at)
            if end == at:
                raise self.wrong(at, "a value is expected")
            value = json.loads(self.text[at:end])
        return Node(at, end, value, (), end)

    def string(self, at: int) -> tuple[str, int]:
        try:
            value, end = _DECODER.raw_decode(self.text, at)
        except ValueError as error:
            raise self.wrong(at, "a string does not end, or has a wrong character") from error
        assert isinstance(value, str)
        return value, end

    def container(self, start: int, depth: int) -> Node:
        closing = "}" if self.peek(start) == "{" else "]"
        children: list[Child] = []
        at, comment = self.skip(start + 1)
        last = comment or start + 1
        while self.peek(at) != closing:
            if children and children[-1].comma is None:
                raise self.wrong(at, "a comma is expected")
            child, at, last = self.entry(at, last, closing, depth)
            children.append(child)
        if children and children[-1].comma is not None and not self.comments:
            raise self.wrong(at, "a comma stands before the closing bracket")
        names = [each.name for each in children]
        if closing == "}" and len(set(names)) != len(names):
            raise self.wrong(start, "a name stands twice in one object")
        value: Any = [each.node.value for each in children]
        if closing == "}":
            value = dict(zip(names, value, strict=True))
        return Node(start, at + 1, value, tuple(children), last)

    def entry(self, start: int, before: int, closing: str, depth: int) -> tuple[Child, int, int]:
        """(a member or an item, where the next token begins, where the last thing ends)."""
        name, at = None, start
        if closing == "}":
            if self.peek(at) != '"':
                raise self.wrong(at, "a name in quotes is expected")
            name, at = self.string(at)
            at, _ = self.skip(at)
            if self.peek(at) != ":":
                raise self.wrong(at, "a colon is expected")
            at, _ = self.skip(at + 1)
        node = self.value(at, depth + 1)
        at, comment = self.skip(node.end)
        last, comma = comment or node.end, None
        if self.peek(at) == ",":
            comma = at
            at, comment = self.skip(at + 1)
            last = comment or comma + 1
        return Child(name, before, start, node, comma), at, last


def _match(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return at if found is None else found.end()
