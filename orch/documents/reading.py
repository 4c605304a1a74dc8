"""Text of a document as plain values, with the line of each.

YAML is read by its events, one after the other: nothing recurses, an alias is not expanded, and
every tag but that of text is refused. Scalars mean what YAML 1.2's core schema says, so that
`yes`, `on` and dates are text.
"""

import bisect
import functools
import json
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import yaml

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import printable
from inbox_orch.shared.inputs import read_input
from inbox_orch.shared.json_words import whole_number, words_of

from .problems import Path, Problem, refusal

MOST_DEPTH = 20
MOST_VALUES = 5_000_000
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TEXT_TAG = "tag:yaml.org,2002:str"
_WHOLE = re.compile(r"[-+]?[0-9]{1,18}")
_NUMBER = re.compile(r"[-+]?(\.[0-9]{1,40}|[0-9]{1,40}(\.[0-9]{0,40})?)([eE][-+]?[0-9]{1,4})?")
_WORDS = {
    "": None,
    "~": None,
    **dict.fromkeys(("null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


class Source(NamedTuple):
    """A document: how it is called in errors, what it says, and on which line (from 1)."""

    name: str
    value: Any
    line_of: Callable[[Path], int]

    def refusal(self, problems: list[Problem]) -> InboxOrchError:
        """The error for problems of this document."""
        return refusal(self.name, problems, self.line_of)


def read_document(path: str, most_bytes: int) -> Source:
    """The document in a file, or on standard input (`-`). JSON by the name `*.json`, or when it
    begins like it and is; else YAML.

    Error `usage`, with the line, for what cannot be read.
    """
    name = "standard input" if path == "-" else path
    content = read_input(path, most_bytes)
    if len(content) > most_bytes:
        raise _refused(name, 1, f"it has more than {most_bytes} bytes")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        message = f"it is not UTF-8: byte {error.start} is 0x{content[error.start]:02x}"
        raise _refused(name, line, message) from error
    if path.endswith(".json"):
        return _json(name, text)
    if text.lstrip()[:1] in ("{", "["):
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            return _yaml(name, text)
        return _json(name, text)
    return _yaml(name, text)


def _refused(name: str, line: int, message: str, instead: str | None = None) -> InboxOrchError:
    return refusal(name, [Problem((), message, instead, line=line)], lambda path: line)


# -- YAML ----------------------------------------------------------------------------------


def _yaml(name: str, text: str) -> Source:
    builder = _Builder(name)
    try:
        loader = _LOADER(text)
        try:
            while (event := loader.get_event()) is not None:
                builder.take(event)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark is not None else _bad_line(text, error)
        said = getattr(error, "problem", None) or getattr(error, "reason", None) or str(error)
        raise _refused(name, line, f"it is not YAML: {printable(said)}") from error
    if builder.repeated:
        raise refusal(name, builder.repeated, builder.line_of)
    return Source(name, builder.value, builder.line_of)


def _bad_line(text: str, error: yaml.YAMLError) -> int:
    position = getattr(error, "position", 0)
    return text[:position].count("\n") + 1


class _Level(NamedTuple):
    value: Any
    lines: Any
    anchor: str | None
    started: int


class _Builder:
    """Values from the events of one document."""

    def __init__(self, name: str) -> None:
        self.value: Any = None
        self.repeated: list[Problem] = []
        self._name = name
        self._lines: dict[int, Any] = {}
        self._levels: list[_Level] = []
        self._keys: list[str | None] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._count = 0
        self._documents = 0

    def take(self, event: Any) -> None:
        """The next event."""
        line = event.start_mark.line + 1
        if isinstance(event, yaml.ScalarEvent):
            self._scalar(event, line)
        elif isinstance(event, yaml.MappingStartEvent):
            self._open({}, {None: line}, event, line)
        elif isinstance(event, yaml.SequenceStartEvent):
            self._open([], [line], event, line)
        elif isinstance(event, yaml.AliasEvent):
            self._alias(event, line)
        elif isinstance(event, yaml.CollectionEndEvent):
            self._close()
        elif isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                raise _refused(self._name, line, "a second document begins here", "keep one")

    def line_of(self, path: Path) -> int:
        """The line of what is at a path, or of the nearest thing around it."""
        value = self.value
        line = 1
        for part in path:
            lines = self._lines.get(id(value))
            if lines is None:
                break
            own = lines[None] if isinstance(lines, dict) else lines[0]
            try:
                line = lines[part] if isinstance(lines, dict) else lines[1 + int(part)]
                value = value[part]
            except (KeyError, IndexError, ValueError, TypeError):
                return int(own)
        return int(line)

    def _scalar(self, event: Any, line: int) -> None:
        in_mapping = self._levels and isinstance(self._levels[-1].value, dict)
        self._check_tag(event.tag, line)
        if in_mapping and self._keys[-1] is None:
            self._key(event.value, line)
            return
        plain = event.implicit[0] and event.tag is None
        value = _resolved(event.value) if plain else event.value
        if event.anchor is not None:
            self._anchors[event.anchor] = (value, 1)
        self._put(value, line)

    def _key(self, key: str, line: int) -> None:
        level = self._levels[-1]
        if key in level.value:
            message = f"the key stands here again, first on line {level.lines[key]}"
            self.repeated.append(Problem((printable(key),), message, "keep one", line=line))
        level.lines[key] = line
        self._keys[-1] = key

    def _open(self, value: Any, lines: Any, event: Any, line: int) -> None:
        self._check_tag(event.tag, line)
        if self._keys and self._keys[-1] is None and isinstance(self._levels[-1].value, dict):
            raise _refused(self._name, line, "a key must be text")
        if len(self._levels) >= MOST_DEPTH:
            raise _refused(self._name, line, f"it is nested more than {MOST_DEPTH} deep")
        self._lines[id(value)] = lines
        self._levels.append(_Level(value, lines, event.anchor, self._count))
        self._keys.append(None)

    def _close(self) -> None:
        level = self._levels.pop()
        self._keys.pop()
        if level.anchor is not None:
            self._anchors[level.anchor] = (level.value, self._count - level.started + 1)
        line = level.lines[None] if isinstance(level.lines, dict) else level.lines[0]
        self._put(level.value, line)

    def _alias(self, event: Any, line: int) -> None:
        if self._keys and self._keys[-1] is None and isinstance(self._levels[-1].value, dict):
            raise _refused(self._name, line, "a key must be text, not an alias")
        if event.anchor not in self._anchors:
            message = f"the alias *{printable(event.anchor)} names nothing that ended before it"
            raise _refused(self._name, line, message)
        value, size = self._anchors[event.anchor]
        # As many as if it had been written out, so that a few lines cannot become a billion.
        self._count += size - 1
        self._put(value, line)

    def _put(self, value: Any, line: int) -> None:
        self._count += 1
        if self._count > MOST_VALUES:
            raise _refused(self._name, line, f"it has more than {MOST_VALUES} values")
        if not self._levels:
            self.value = value
            return
        level = self._levels[-1]
        if isinstance(level.value, dict):
            key = self._keys[-1]
            level.value[key] = value
            self._keys[-1] = None
        else:
            level.value.append(value)
            level.lines.append(line)

    def _check_tag(self, tag: str | None, line: int) -> None:
        if tag not in (None, _TEXT_TAG, "!"):
            raise _refused(
                self._name, line, f"the tag {printable(tag)} is not read", "leave it out"
            )


def _resolved(text: str) -> Any:
    """A plain scalar by the core schema, but for octal, hexadecimal and infinite numbers."""
    if text in _WORDS:
        return _WORDS[text]
    if text[:1] not in "+-.0123456789":
        return text
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _NUMBER.fullmatch(text) else text


# -- JSON ----------------------------------------------------------------------------------


def _json(name: str, text: str) -> Source:
    repeated = False

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeated
        found = dict(pairs)
        repeated = repeated or len(found) != len(pairs)
        return found

    try:
        value = json.loads(
            text, object_pairs_hook=unique, parse_constant=_no_number, parse_int=whole_number
        )
    except json.JSONDecodeError as error:
        raise _refused(name, error.lineno, f"it is not JSON: {_lower(error.msg)}") from error
    except (ValueError, RecursionError) as error:
        raise _refused(name, 1, f"it is not JSON that is read here: {words_of(error)}") from error
    if repeated:
        raise refusal(name, _Positions(text).repeated, lambda path: 1)
    # Only a problem needs lines: they are looked for then, once.
    positions = functools.cache(lambda: _Positions(text))
    return Source(name, value, lambda path: positions().line_of(path))


def _lower(message: str) -> str:
    return message[:1].lower() + message[1:]


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number")


_LINE_END = re.compile("\n")
_SPACE = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"')
_ATOM = re.compile(r"[^\s,\]}]+")


class _Positions:
    """The offset of every value in a text that is known to be JSON."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._ends = [found.start() for found in _LINE_END.finditer(text)]
        self._offsets: dict[Path, int] = {}
        self.repeated: list[Problem] = []
        self._scan()

    def line_of(self, path: Path) -> int:
        while path not in self._offsets and path:
            path = path[:-1]
        return self._line(self._offsets.get(path, 0))

    def _line(self, offset: int) -> int:
        return bisect.bisect_left(self._ends, offset) + 1

    def _scan(self) -> None:
        """One pass; `above` holds the containers around the place, with the key or index now.

        What is nested deeper than any document may be has the place of what is around it.
        """
        text, above, position = self._text, list[list[Any]](), 0
        fresh = True  # a value is due, not a comma or an end
        while (position := _after_space(text, position)) < len(text):
            character = text[position]
            if character in "]}":
                above.pop()
                position, fresh = position + 1, False
            elif character == ",":
                if isinstance(above[-1][0], int):
                    above[-1][0] += 1
                position, fresh = position + 1, True
            elif above and above[-1][1] is not None and fresh:
                position, fresh = self._key(above, position), False
            else:
                if len(above) <= MOST_DEPTH:
                    self._offsets.setdefault(tuple(level[0] for level in above), position)
                position, fresh = self._value(above, position)

    def _key(self, above: list[list[Any]], position: int) -> int:
        matched = _match(_STRING, self._text, position)
        key, end = json.loads(matched[0]), matched.end()
        level = above[-1]
        if key in level[1]:
            first = self._line(level[1][key])
            message = f"the key stands here again, first on line {first}"
            line = self._line(position)
            self.repeated.append(Problem((printable(key),), message, "keep one", line=line))
        level[0], level[1][key] = key, position
        if len(above) <= MOST_DEPTH:
            self._offsets[tuple(each[0] for each in above)] = position
        return _after_space(self._text, end) + 1

    def _value(self, above: list[list[Any]], position: int) -> tuple[int, bool]:
        character = self._text[position]
        if character == "{":
            above.append([None, {}])
            return position + 1, True
        if character == "[":
            above.append([0, None])
            return position + 1, True
        pattern = _STRING if character == '"' else _ATOM
        return _match(pattern, self._text, position).end(), False


def _after_space(text: str, position: int) -> int:
    return _match(_SPACE, text, position).end()


def _match(pattern: re.Pattern[str], text: str, position: int) -> re.Match[str]:
    matched = pattern.match(text, position)
    assert matched is not None
    return matched
