"""Reading plain command lines without click.

Plain is: known options by their whole names, each with a value that is right, and the arguments.
Whatever else there is (help, `--`, a name that is not known, a value that is missing or wrong) is
not read here at all, so that everything that is said about a call is said by click.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ..errors import InboxOrchError
from ..ids import named_by
from .declaring import Declared, Parameter, common
from .values import NAME, Choice, FilePath, Number, Text

_UNDERSTOOD = frozenset(
    {"default", "envvar", "is_flag", "multiple", "required", "type"}
    # These say nothing about what is read.
    | {"help", "is_eager", "metavar", "show_default"}
)
_TYPES = (Choice, FilePath, Number, Text)
# What the words give a command, and what they have said to every command, by name.
Line = tuple[dict[str, Any], dict[str, Any]]


class _NotPlain(Exception):
    """Click has to look at this line."""


def read(command: Declared, words: Iterable[str]) -> Line | None:
    """What the words after a command's name give it; None when they are not plain."""
    shared = common(agent=command.agent)
    try:
        options = _by_name([*command.parameters, *shared.values()])
        given, rest = _sorted_out(options, words)
        for parameter in command.parameters:
            if parameter.kind == "argument":
                given[parameter] = [rest.pop(0)] if rest else []
        if rest:
            return None
        values = {_name_of(p): _value(p, given.get(p, [])) for p in command.parameters}
        said = {f: _value(p, given[p]) for f, p in shared.items() if p in given}
    except (_NotPlain, InboxOrchError, ValueError):
        return None
    return values, said


def _by_name(parameters: Iterable[Parameter]) -> dict[str, Parameter]:
    """The options by what is typed for each."""
    options = {}
    for each in parameters:
        typed = [name for name in each.names if not name.isidentifier()]
        kind = each.keywords.get("type", NAME)
        known = isinstance(kind, _TYPES) and each.keywords.keys() <= _UNDERSTOOD
        if not known or not isinstance(each.keywords.get("default", 0), (int, float)):
            raise _NotPlain
        if each.kind == "option":
            (name,) = typed
            options[name] = each
    return options


def _sorted_out(
    options: Mapping[str, Parameter], words: Iterable[str]
) -> tuple[dict[Parameter, list[str]], list[str]]:
    """The texts that are given for each option, and the words that are arguments."""
    given: dict[Parameter, list[str]] = {}
    rest: list[str] = []
    following = iter(words)
    for word in following:
        if word[:1] != "-":
            rest.append(word)
            continue
        name, equals, text = word.partition("=")
        is_flag = name in options and options[name].keywords.get("is_flag", False)
        if name not in options or (is_flag and equals):
            raise _NotPlain
        # The next word is the value, whatever it looks like.
        value = name if is_flag else text if equals else next(following, None)
        if value is None:
            raise _NotPlain
        if options[name] in given and not is_flag and not options[name].keywords.get("multiple"):
            raise _NotPlain
        given.setdefault(options[name], []).append(value)
    return given, rest


def _value(parameter: Parameter, texts: list[str]) -> Any:
    """What a parameter comes to, from its text, from the environment or by default."""
    keywords = parameter.keywords
    if keywords.get("is_flag"):
        return bool(texts)
    variable = keywords.get("envvar")
    from_environment = None if texts or variable is None else named_by(variable)
    if from_environment is not None:
        texts = [from_environment]
    kind = keywords.get("type", NAME)
    if keywords.get("multiple"):
        return tuple(kind.read(text, None) for text in texts)
    if texts:
        return kind.read(texts[0], None)
    if keywords.get("required", parameter.kind == "argument"):
        raise _NotPlain
    return keywords.get("default")


def _name_of(parameter: Parameter) -> str:
    """The name under which the function takes it."""
    given = [name for name in parameter.names if name.isidentifier()]
    return given[0] if given else parameter.names[0].lstrip("-").replace("-", "_")
