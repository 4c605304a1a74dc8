"""What is odd in a policy that can be gone by. Pure."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from inbox_orch.shared.ids import counted

from ..runs.policies import RULES, Named
from .patterns import Patterns


class Oddity(NamedTuple):
    """Something of a layer that is hardly meant so."""

    layer: str
    rule: str
    text: str


def oddities(layers: Sequence[Named], paths: Sequence[str] | None = None) -> list[Oddity]:
    """What is odd in some layers; `paths` are those of a repository, on which patterns are tried,
    None without one."""
    return [found for layer in layers for found in _of_layer(layer, paths)]


def _of_layer(layer: Named, paths: Sequence[str] | None) -> Iterator[Oddity]:
    name, given = layer
    if given.get("allow_paths") == []:
        yield Oddity(name, "allow_paths", "it names nothing, so that nothing may be changed")
    for rule in ("max_files", "max_lines"):
        if given.get(rule) == 0:
            yield Oddity(name, rule, "at 0 nothing may be changed")
    if name == "run" and "ask_paths" in given:
        default = RULES["ask_paths"].default
        left = [pattern for pattern in default if pattern not in given["ask_paths"]]
        if left:
            text = f"it replaces the built-in list: {counted(len(left), 'pattern')} of it counts no"
            yield Oddity(name, "ask_paths", f"{text} more, like {left[0]}")
    both = set(given.get("allow_paths", ())) & set(given.get("forbid_paths", ()))
    for pattern in sorted(both):
        text = f"{pattern} is allowed and forbidden: it is forbidden"
        yield Oddity(name, "forbid_paths", text)
    if paths is not None:
        yield from _without_effect(layer, paths)


def _without_effect(layer: Named, paths: Sequence[str]) -> Iterator[Oddity]:
    """Patterns that fit no file that is there. They may be meant for files to come, but for one
    that is allowed: often that is a mistyped folder."""
    name, given = layer
    pairs = [("allow_paths", pattern) for pattern in given.get("allow_paths", ())]
    pairs += [("tests_for", pattern) for pattern in given.get("tests_for", {})]
    for rule, pattern in pairs:
        if not pattern.startswith("!"):
            fits = Patterns((pattern,)).found
            if not any(fits(path) is not None for path in paths):
                yield Oddity(name, rule, f"{pattern} fits no file that is there")
