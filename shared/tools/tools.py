"""Commands as tools for an agent's client: names, what they take, what they give.

All of it comes from the commands themselves and from the models of their output: there is no
second grammar. Knows no protocol, and runs nothing.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import click

from ..errors import InboxOrchError, usage
from ..shell.commandline import StandIn
from ..shell.nearest import nearest
from ..shell.values import Number

MOST_WAIT_SECONDS = 50
"""Clients give up on a call after a minute, if they are not told otherwise."""
DEFAULT_WAIT_SECONDS = 45

# What is theirs who wrote it, and handed on as it is.
VERBATIM = frozenset({"config", "data", "details", "payload", "policy", "result_schema"})
_ENVIRONMENT = re.compile(r"\s*\[env: \w+\]")
_FILE = "_file"
# The keywords of JSON Schema that say how a value is built, and those with names of the caller's.
_NAMED = ("properties", "$defs")
_STRUCTURE = frozenset({*_NAMED, "$ref", "anyOf", "const", "enum", "items", "required", "type"})

Result = Mapping[str, Any]


class Tool(NamedTuple):
    """One command as a tool.

    `command`: its words. `name`: where it is not made of them. `only`: the arguments that it has,
    else all of the command's; `without`: those that it has not. `needs`: those that have to be
    given, unless a variable of the command's gives them. `fixed`: options that are always given.
    `defaults`: other ones than the command's. `waits`: by default, too. `reads`: changes nothing.
    `destroys`: ends what others do. `repeats`: has no further effect when it is called again.
    `result`: which of the command's results; `either`: or the one after it. `undo`: the words that
    take a result back which was not received. `texts`: the arguments for files of text, where
    others are of objects.
    """

    command: str
    name: str | None = None
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    fixed: tuple[str, ...] = ()
    defaults: Mapping[str, int] = {}
    waits: bool = False
    reads: bool = False
    destroys: bool = False
    repeats: bool = False
    result: int = 0
    either: bool = False
    about: str | None = None
    undo: Callable[[Result], Sequence[str]] | None = None
    texts: frozenset[str] = frozenset()


class Argument(NamedTuple):
    """One argument of a tool. `file` is set where what it says goes into a file for the command:
    an object, or with `text` a text as it is."""

    name: str
    parameter: click.Parameter
    file: bool
    text: bool = False

    @property
    def many(self) -> bool:
        """Whether it is a list."""
        return self.parameter.nargs == -1 or bool(getattr(self.parameter, "multiple", False))

    @property
    def document(self) -> bool:
        """Whether it is an object that the command takes as JSON."""
        return bool(getattr(self.parameter.type, "document", False))

    @property
    def flag(self) -> bool:
        """Whether it is yes or no."""
        return bool(getattr(self.parameter, "is_flag", False))

    @property
    def waiting(self) -> bool:
        """Whether it says how long to wait."""
        kind = self.parameter.type
        return isinstance(kind, Number) and kind.forever


class Described(NamedTuple):
    """A tool with everything that a client is told about it."""

    tool: Tool
    name: str
    description: str
    arguments: tuple[Argument, ...]
    takes: dict[str, Any]
    gives: dict[str, Any]


def described(
    program: click.Group,
    tool: Tool,
    about_arguments: Mapping[str, str],
    gives: Callable[[str, int], dict[str, Any]],
) -> Described:
    """What a client is told. `about_arguments` describes those that have no help, or one that is
    about command lines, by name, or by `COMMAND: NAME` for one tool; `gives` is the JSON Schema of
    a command's nth result."""
    command = command_of(program, tool)
    arguments = tuple(_arguments(tool, command))
    words = tool.command.replace("-", "_").split()
    given = gives(tool.command, tool.result)
    if tool.either:
        given = _common(given, gives(tool.command, tool.result + 1))
    return Described(
        tool,
        tool.name or "_".join((program.name or "", *words)),
        tool.about or _plain(command.help),
        arguments,
        _takes(tool, arguments, about_arguments),
        lean_schema(given),
    )


def command_of(program: click.Group, tool: Tool) -> click.Command:
    """The command that a tool stands for."""
    found: click.Command | None = program
    for word in tool.command.split():
        assert isinstance(found, click.Group)
        found = found.get_command(click.Context(found), word)
    assert found is not None, f"there is no command {tool.command}"
    return found


# -- what it takes -------------------------------------------------------------------------


def _arguments(tool: Tool, command: click.Command) -> Iterator[Argument]:
    exposed = [p for p in command.params if p.expose_value and not isinstance(p, StandIn)]
    names = {_name(p) for p in exposed}
    for parameter in exposed:
        name = _name(parameter)
        file = name.endswith(_FILE)
        if file and name.removesuffix(_FILE) in names:
            continue  # the text itself is given
        name = name.removesuffix(_FILE)
        if name not in tool.without and (tool.only is None or name in tool.only):
            text = name in tool.texts
            yield Argument(name, parameter, file or text, text)


def _name(parameter: click.Parameter) -> str:
    """As the option is called, which is how errors call it, too."""
    if isinstance(parameter, click.Argument):
        return str(parameter.name)
    longest = max(parameter.opts, key=len)
    return longest.lstrip("-").replace("-", "_")


def _takes(tool: Tool, arguments: Sequence[Argument], about: Mapping[str, str]) -> dict[str, Any]:
    required = [a.name for a in arguments if a.parameter.required or _is_needed(tool, a)]
    return {
        "type": "object",
        "properties": {a.name: _schema_of(tool, a, about) for a in arguments},
        "additionalProperties": False,
        **({"required": required} if required else {}),
    }


def _is_needed(tool: Tool, argument: Argument) -> bool:
    """Whether it has to be given, because no variable gives it."""
    variable = argument.parameter.envvar
    given = isinstance(variable, str) and os.environ.get(variable)
    return argument.name in tool.needs and not given


def _schema_of(tool: Tool, argument: Argument, about: Mapping[str, str]) -> dict[str, Any]:
    schema = _type_of(argument)
    if argument.many:
        schema = {"type": "array", "items": schema}
    text = (
        about.get(f"{tool.command}: {argument.name}")
        or about.get(argument.name)
        or getattr(argument.parameter, "help", None)
    )
    if argument.waiting:
        text = f"Seconds to wait for it; 0 looks once. At most {MOST_WAIT_SECONDS}."
        if tool.waits:
            schema["default"] = DEFAULT_WAIT_SECONDS
    elif argument.name in tool.defaults:
        schema["default"] = tool.defaults[argument.name]
    elif isinstance(argument.parameter.default, (str, int, float)) and not argument.flag:
        schema["default"] = argument.parameter.default
    if text:
        schema["description"] = _plain(text).removesuffix("; repeatable.")
    return schema


def _type_of(argument: Argument) -> dict[str, Any]:
    kind = argument.parameter.type
    if argument.file:
        return {"type": "string" if argument.text else "object"}
    if argument.document:
        return {"type": "object"}
    if argument.flag:
        return {"type": "boolean"}
    if isinstance(kind, click.Choice):
        return {"type": "string", "enum": [str(choice) for choice in kind.choices]}
    if isinstance(kind, Number):
        most = MOST_WAIT_SECONDS if argument.waiting else kind.high
        limits = {"minimum": kind.low, "maximum": most}
        return {"type": "integer" if kind.whole else "number", **limits}
    return {"type": "string"}


def _plain(text: str | None) -> str:
    return " ".join(_ENVIRONMENT.sub("", text or "").split())


# -- the words of a command line -----------------------------------------------------------


def words_for(
    about: Described, given: Mapping[str, Any], in_a_file: Callable[[str], str]
) -> list[str]:
    """The words that call the command; `in_a_file` puts a text into a file and names it.

    Errors: `usage` for what is no argument, is missing, or is of another type.
    """
    given = {name: value for name, value in given.items() if value is not None}
    _refuse_unknown(about, given)
    options, positional = [*about.tool.fixed], []
    for argument in about.arguments:
        values = _values(about.tool, argument, given, in_a_file)
        if isinstance(argument.parameter, click.Argument):
            positional += values
        elif argument.flag:
            options += [argument.parameter.opts[0]] * bool(values)
        else:
            options += [f"{argument.parameter.opts[0]}={value}" for value in values]
    return [*about.tool.command.split(), *options, "--", *positional]


def _refuse_unknown(about: Described, given: Mapping[str, Any]) -> None:
    names = [argument.name for argument in about.arguments]
    for name in given:
        if name not in names:
            near = nearest(name, names)
            hint = f"did you mean {near}?" if near else f"it takes {', '.join(names)}"
            raise usage(f"{about.name} takes no {name[:40]!r}", hint=hint)
    for argument in about.arguments:
        if argument.name in about.takes.get("required", ()) and argument.name not in given:
            raise usage(f"{argument.name} is missing", hint=f"{about.name} needs it")


def _values(
    tool: Tool, argument: Argument, given: Mapping[str, Any], in_a_file: Callable[[str], str]
) -> list[str]:
    if argument.name not in given:
        default = DEFAULT_WAIT_SECONDS if argument.waiting and tool.waits else None
        default = tool.defaults.get(argument.name, default)
        return [] if default is None else [str(default)]
    value = given[argument.name]
    if argument.file:
        return [in_a_file(_text(argument, value) if argument.text else _object(argument, value))]
    if argument.document:
        return [_object(argument, value)]
    if argument.flag:
        if not isinstance(value, bool):
            raise _wrong(argument, "true or false")
        return ["yes"] if value else []
    if argument.waiting and isinstance(value, (int, float)) and value > MOST_WAIT_SECONDS:
        return [str(MOST_WAIT_SECONDS)]
    values = value if argument.many and isinstance(value, list) else [value]
    return [_word(argument, each) for each in values]


def _word(argument: Argument, value: object) -> str:
    """As it would stand on a command line, in the bytes of UTF-8."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise _wrong(
            argument, "a number" if isinstance(argument.parameter.type, Number) else "text"
        )
    try:
        return os.fsdecode(str(value).encode())
    except UnicodeEncodeError as error:
        raise usage(
            f"{argument.name} is not UTF-8: half a character at {error.start}",
            hint="send whole characters",
        ) from error


def _text(argument: Argument, value: object) -> str:
    if not isinstance(value, str):
        raise _wrong(argument, "text")
    os.fsencode(_word(argument, value))  # refuses half characters
    return value


def _object(argument: Argument, value: object) -> str:
    if not isinstance(value, dict):
        raise _wrong(argument, "an object")
    return json.dumps(value)


def _wrong(argument: Argument, kind: str) -> InboxOrchError:
    return usage(
        f"{argument.name} must be {kind}", hint="the tool's schema has the type of each argument"
    )


# -- what it gives -------------------------------------------------------------------------


def lean(value: Any) -> Any:
    """A result without what is null or false, which a reader can do without. A list that is empty
    stays one: that there is nothing is an answer."""
    if isinstance(value, list):
        return [lean(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        name: each if name in VERBATIM else lean(each)
        for name, each in value.items()
        if each is not None and each is not False
    }


def lean_schema(schema: Any) -> Any:
    """The structure of lean results: what may be left out is not required. Neither prose nor
    limits: `schema COMMAND` of the command line has them."""
    if isinstance(schema, list):
        return [lean_schema(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    shorter = {
        k: {name: lean_schema(each) for name, each in v.items()} if k in _NAMED else lean_schema(v)
        for k, v in schema.items()
        if k in _STRUCTURE
    }
    if "properties" in shorter:
        properties = shorter["properties"]
        required = [n for n in schema.get("required", ()) if not _may_be_left_out(properties[n])]
        shorter["required"] = required
    return shorter


def _common(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """What two schemas of objects say alike of their properties."""
    also, required = other["properties"], other.get("required", ())
    alike = {name: each for name, each in one["properties"].items() if also.get(name) == each}
    return {
        "$defs": {**one.get("$defs", {}), **other.get("$defs", {})},
        "type": "object",
        "properties": alike,
        "required": [n for n in alike if n in one.get("required", ()) and n in required],
    }


def _may_be_left_out(schema: Mapping[str, Any]) -> bool:
    kinds = [each.get("type") for each in (schema, *schema.get("anyOf", ()))]
    return bool({"null", "boolean"} & set(kinds)) or schema.get("const") is False


def outline(schema: Mapping[str, Any]) -> dict[str, Any]:
    """What is always there on a lean schema's first level. The whole would be four fifths of what a
    client has to read of all tools."""
    required = schema.get("required", [])
    return {"type": "object", **({"required": required} if required else {})}
