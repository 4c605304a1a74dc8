"""Pieces in a JSON file: a member of an object, or an item of an array, and what leads there."""

import json
import re
from collections.abc import Sequence
from typing import Any

from . import jsontext
from .edits import Edited, Insertion, UnfitError, cut, newline_of
from .facts import Part
from .jsontext import Child, Node
from .states import Found, covers, digest

_INDENT = "  "


def wanted(part: Part) -> str:
    """The digest of the piece as it should be."""
    return _digest(part.value)


def found(text: str, part: Part) -> Found | None:
    """The piece as it is in the text, None when it is missing. Raises UnfitError."""
    if not text.strip():
        return None
    pieces = [each for _, each in _places(_parsed(text, part), part)]
    if not pieces:
        return None
    value = pieces[0].node.value
    if part.form == "member" and covers(value, part.value):
        return Found(wanted(part))
    return Found(_digest(value) if len(pieces) == 1 else "")


def add(edited: Edited, part: Part) -> tuple[Edited, int]:
    """The text with the piece at its end, and how many objects and arrays were made for it."""
    text = edited.text
    leaf = [part.value] if part.form == "item" else part.value
    containers = len(part.at) - (part.form == "member")
    if not text.strip():
        value = {**part.fresh, **_nested(part.at, leaf)}
        document = json.dumps(value, indent=_INDENT, ensure_ascii=False)
        return edited.insert([(len(text), document + "\n")]), containers
    root = node = _parsed(text, part)
    for depth, name in enumerate(part.at):
        child = _object(node, part).child(name)
        if child is None:
            value = _nested(part.at[depth + 1 :], leaf)
            return edited.insert(_appended(text, root, node, name, value)), containers - depth
        node = child.node
    if not isinstance(node.value, list):
        raise UnfitError(f"has no array at {'.'.join(part.at)}")
    return edited.insert(_appended(text, root, node, None, part.value)), 0


def remove(text: str, part: Part, made: int) -> str:
    """The text without the piece, and without what was `made` for it and is empty now."""
    places = _places(_parsed(text, part), part)
    if not places:
        return text
    container, child = places[0]
    text = _without(text, container, child)
    path = part.at if part.form == "item" else part.at[:-1]
    for depth in range(len(path), len(path) - made, -1):
        above = _walk(_parsed(text, part), path[: depth - 1])
        emptied = above.child(path[depth - 1]) if above is not None else None
        if above is None or emptied is None or _holds_something(emptied.node):
            break
        text = _without(text, above, emptied)
    return text


def is_blank(text: str, part: Part) -> bool:
    """Whether nothing is in the file: no value, or an object that holds nothing, or nothing but
    what a new file begins with."""
    if not text.strip():
        return True
    root = _parsed(text, part)
    return not _holds_something(root) or (bool(part.fresh) and root.value == part.fresh)


def _parsed(text: str, part: Part) -> Node:
    root = jsontext.parse(text, comments=part.comments)
    if not isinstance(root.value, dict):
        raise UnfitError("holds no JSON object")
    return root


def _object(node: Node, part: Part) -> Node:
    if not isinstance(node.value, dict):
        raise UnfitError(f"has something else than objects on the way to {'.'.join(part.at)}")
    return node


def _places(root: Node, part: Part) -> list[tuple[Node, Child]]:
    """Where the piece is: its container, and itself there."""
    if part.form == "member":
        above = _walk(root, part.at[:-1])
        child = None if above is None else _object(above, part).child(part.at[-1])
        return [(above, child)] if above is not None and child is not None else []
    array = _walk(root, part.at)
    if array is None:
        return []
    if not isinstance(array.value, list):
        raise UnfitError(f"has no array at {'.'.join(part.at)}")
    return [(array, each) for each in array.children if _begins(each.node.value, part.mark)]


def _walk(node: Node, path: Sequence[str]) -> Node | None:
    for name in path:
        if not isinstance(node.value, dict):
            raise UnfitError(f"has something else than objects on the way to {'.'.join(path)}")
        child = node.child(name)
        if child is None:
            return None
        node = child.node
    return node


def _begins(value: Any, mark: str) -> bool:
    """Whether any text in the value begins with the mark."""
    if isinstance(value, dict):
        return any(_begins(each, mark) for each in value.values())
    if isinstance(value, list):
        return any(_begins(each, mark) for each in value)
    return isinstance(value, str) and value.startswith(mark)


def _holds_something(node: Node) -> bool:
    """Whether there is a value or a comment between the brackets."""
    return bool(node.children) or node.last != node.start + 1


def _digest(value: Any) -> str:
    return digest(json.dumps(value, sort_keys=True))


def _nested(path: Sequence[str], value: Any) -> Any:
    for name in reversed(path):
        value = {name: value}
    return value


def _appended(text: str, root: Node, into: Node, name: str | None, value: Any) -> list[Insertion]:
    """What makes the value the last of its object or array."""
    lines = "\n" in text[into.start : into.end] or not into.children
    own = _indentation(text, into.start)
    inner = _inner(text, into, own + _unit(text, root))
    body = _written(name, value, _unit(text, root) if lines else None)
    end = newline_of(text)
    body = body.replace("\n", end + inner)
    begin = end + inner if lines else " "
    if not into.children:
        closing = "" if "\n" in text[into.last : into.end] else end + own
        return [(into.last, begin + body + closing)]
    newest = into.children[-1]
    if newest.comma is not None:
        return [(into.last, begin + body + ",")]
    return [(newest.node.end, ","), (into.last + 1, begin + body)]


def _written(name: str | None, value: Any, indent: str | None) -> str:
    body = json.dumps(value, indent=indent, ensure_ascii=False)
    return body if name is None else f"{json.dumps(name, ensure_ascii=False)}: {body}"


def _indentation(text: str, at: int) -> str:
    """What the line of this place begins with."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    found_blank = re.match(r"[ \t]*", line)
    return found_blank[0] if found_blank else ""


def _inner(text: str, node: Node, otherwise: str) -> str:
    """How the first thing in an object or array is indented, if it has a line of its own."""
    if not node.children:
        return otherwise
    start = node.children[0].start
    line = text[text.rfind("\n", 0, start) + 1 : start]
    return line if not line.strip(" \t") and "\n" in text[node.start : start] else otherwise


def _unit(text: str, root: Node) -> str:
    """One step of indentation in this file."""
    return _inner(text, root, _INDENT) or _INDENT


def _without(text: str, container: Node, child: Child) -> str:
    """The text without a member or an item, and without the one comma that is too many then."""
    if child.comma is not None:
        return cut(text, (child.before, child.comma + 1))
    place = container.children.index(child)
    ended = cut(text, (child.before, child.node.end))
    comma = container.children[place - 1].comma if place else None
    return ended if comma is None else cut(ended, (comma, comma + 1))
