"""What a worker is told of a policy, so that nothing is handed in that cannot be let in. Pure."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..runs.policies import BUILT_IN
from .policy import Layer, Policy

_MOST_PATTERNS = 20


_MOST_LINES = 60


def with_policy(text: str, policy: Policy) -> str:
    """The text of a task, and below it what its change has to keep to."""
    lines = told(policy)
    if not lines:
        return text
    listed = "\n".join(f"- {line}" for line in lines[:_MOST_LINES])
    return (
        f"{text}\n\nThe change has to keep to this, or it is not let in:\n{listed}\n"
        "`orch policy check` in the worktree says what would become of what lies there."
    )


def told(policy: Policy) -> tuple[str, ...]:
    """A line for each rule that somebody has given; none for what is built in, which hardly any
    work meets."""
    layers = [layer for layer in policy.layers if layer.name != BUILT_IN]
    return tuple(line for of_rule in _LINES for line in of_rule(layers))


def _patterns(rule: str, words: str) -> Callable[[Sequence[Layer]], list[str]]:
    def lines(layers: Sequence[Layer]) -> list[str]:
        return [words.format(_list(layer.given[rule])) for layer in layers if rule in layer.given]

    return lines


def _list(patterns: Sequence[str]) -> str:
    more = len(patterns) - _MOST_PATTERNS
    shown = ", ".join(patterns[:_MOST_PATTERNS]) or "nothing"
    return f"{shown} and {more} more" if more > 0 else shown


def _smallest(rule: str, words: str) -> Callable[[Sequence[Layer]], list[str]]:
    def lines(layers: Sequence[Layer]) -> list[str]:
        said = [layer.given[rule] for layer in layers if rule in layer.given]
        return [words.format(min(said))] if said else []

    return lines


def _words(layers: Sequence[Layer]) -> list[str]:
    names = {
        "binary": "files that are not text",
        "deletes": "deleting files",
        "renames": "renaming files",
        "mode_changes": "making files executable",
        "symlinks": "symbolic links",
        "submodules": "submodules",
    }
    found: Mapping[str, set[Any]] = {
        word: {n for n in names for layer in layers if layer.given.get(n) == word}
        for word in ("deny", "ask")
    }
    asked = [names[n] for n in names if n in found["ask"] - found["deny"]]
    denied = [names[n] for n in names if n in found["deny"]]
    lines = [f"not allowed: {', '.join(denied)}"] if denied else []
    return lines + ([f"needs approval: {', '.join(asked)}"] if asked else [])


def _tests(layers: Sequence[Layer]) -> list[str]:
    pairs = [pair for layer in layers for pair in layer.given.get("tests_for", {}).items()]
    return [
        f"a change of {paths} comes with one of {tests if isinstance(tests, str) else _list(tests)}"
        for paths, tests in pairs
    ]


def _musts(layers: Sequence[Layer]) -> list[str]:
    words = {
        "ascii_only": "only ASCII in added lines and new names",
        "issue_ref": "the message of a commit names an issue, like #17",
    }
    return [text for rule, text in words.items() if any(lay.given.get(rule) for lay in layers)]


_LINES: tuple[Callable[[Sequence[Layer]], list[str]], ...] = (
    _patterns("allow_paths", "change nothing but: {}"),
    _patterns("forbid_paths", "do not change: {}"),
    _patterns("ask_paths", "needs approval: {}"),
    _smallest("max_files", "at most {} files"),
    _smallest("max_lines", "at most {} lines, added and removed together"),
    _words,
    _tests,
    _musts,
)
