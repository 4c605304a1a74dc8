"""What commands say of themselves, in the words of tools: a client has no command line. Pure."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from .tools import Described

_CALL = re.compile(r"`(?P<program>[a-z]+) (?P<words>[^`]+)`|`(?P<command>[a-z]+(?:-[a-z]+)*)`")
_PIECES = re.compile(r"`[^`]*`?|[^`]+")
_OPTION = re.compile(r"--(?P<name>[a-z]+(?:-[a-z]+)*)(?:[ =][A-Z][A-Z|]*\b)?")
_EXIT = re.compile(r"\b[Ee]xit (?P<code>\d+)\b")


class Wording(NamedTuple):
    """The tools of one program: their names by the words of their commands, and the names of the
    arguments that any of them takes."""

    program: str
    tools: dict[str, str]
    arguments: frozenset[str]

    def of(self, text: str) -> str:
        """The text with tools for commands, arguments for options and the key `exit_code` for
        exits. What no tool is for stays as it is."""
        return "".join(
            self._quoted(piece) if piece.startswith("`") else self._plain(piece)
            for piece in _PIECES.findall(text)
        )

    def _plain(self, text: str) -> str:
        text = _OPTION.sub(self._option, text)
        return _EXIT.sub(lambda found: f"exit_code {found['code']}", text)

    def _quoted(self, text: str) -> str:
        """A call, a command or an option in backticks."""
        option = _OPTION.fullmatch(text.strip("`"))
        return _CALL.sub(self._call, text) if option is None else self._option(option)

    def _call(self, found: re.Match[str]) -> str:
        if found["command"] is not None:
            return self.tools.get(found["command"], found[0])
        if found["program"] != self.program:
            return found[0]
        words = found["words"].split()
        for count in range(len(words), 0, -1):
            tool = self.tools.get(" ".join(words[:count]))
            if tool is not None:
                return f"the input schema of {tool}" if "--help" in words else tool
        return found[0]

    def _option(self, found: re.Match[str]) -> str:
        name = found["name"].replace("-", "_").removesuffix("_file")
        return f"`{name}`" if name in self.arguments else found[0]


def wording_of(program: str, found: Sequence[Described]) -> Wording:
    """The wording of these tools. Of two for one command the first counts."""
    tools: dict[str, str] = {}
    for each in found:
        tools.setdefault(each.tool.command, each.name)
    names = frozenset(argument.name for each in found for argument in each.arguments)
    return Wording(program, tools, names)


def worded(found: Sequence[Described], wording: Wording) -> tuple[Described, ...]:
    """The tools with descriptions in their own words."""
    return tuple(
        each._replace(
            description=wording.of(each.description), takes=_described(each.takes, wording)
        )
        for each in found
    )


def _described(takes: dict[str, Any], wording: Wording) -> dict[str, Any]:
    properties = {
        name: {**schema, "description": wording.of(schema["description"])}
        if "description" in schema
        else schema
        for name, schema in takes["properties"].items()
    }
    return {**takes, "properties": properties}
