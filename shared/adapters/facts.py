"""What is known of the agents: `agents.toml`, read once into values."""

import functools
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

CODING, READONLY = "coding", "readonly"
TOOLSETS = (CODING, READONLY)
OBJECT, LINES = "object", "lines"
_VERSION = 1

Shape = Mapping[str, Any]
"""What an object has to have: values by path; `*` is any value but null."""


class Place(NamedTuple):
    """A path within the objects of a shape."""

    shape: Shape
    path: str


class Sign(NamedTuple):
    """How an outcome shows: in objects of a shape, by an exit code, or by a pattern in the reason
    of a failure."""

    shapes: tuple[Shape, ...]
    exits: tuple[int, ...]
    patterns: tuple[str, ...]


class Bare(NamedTuple):
    """How a command line of an agent looks that somebody gave by hand: it has a word of each of
    `words`, and changes files only with one of `edits`."""

    words: tuple[tuple[str, ...], ...]
    edits: tuple[str, ...]


Sums = tuple[tuple[Place, ...], ...]


class Prints(NamedTuple):
    """What an agent prints; `exits`: an exit code other than 0 is always a failure."""

    form: str
    exits: bool
    ok: tuple[Shape, ...]
    failed: tuple[Shape, ...]
    places: Mapping[str, tuple[Place, ...]]
    sums: Mapping[str, Sums]
    means: Mapping[str, Sign]


SESSION = "{session}"
"""Stands in the arguments that go on with a session for its id."""
_MODEL, _NAME = "{model}", "{name}"


class Agent(NamedTuple):
    """An agent. `version` and `log_in` are arguments of calls that are cheap and offline; those of
    `resume` go on with a session, those of `model` name a model in either."""

    name: str
    title: str
    program: str
    arguments: Mapping[str, tuple[str, ...]]
    resume: Mapping[str, tuple[str, ...]]
    bare: Bare | None
    model: tuple[str, ...]
    version: tuple[str, ...]
    log_in: tuple[str, ...]
    log_in_by: str
    prints: Prints
    sources: tuple[Mapping[str, str], ...]

    def starting(self, toolset: str, model: str | None = None) -> tuple[str, ...]:
        """The arguments with which it begins, with a model by its own name for it."""
        return tuple(self._with_model(self.arguments[toolset], model))

    def resuming(self, toolset: str, session: str, model: str | None = None) -> tuple[str, ...]:
        """The arguments with which it goes on with a session."""
        words = self._with_model(self.resume[toolset], model)
        return tuple(word.replace(SESSION, session) for word in words)

    def _with_model(self, words: Iterable[str], model: str | None) -> Iterator[str]:
        named = () if model is None else [word.replace(_NAME, model) for word in self.model]
        for word in words:
            yield from named if word == _MODEL else (word,)


@functools.cache
def agents() -> Mapping[str, Agent]:
    """All agents, by name."""
    path = os.path.join(os.path.dirname(__file__), "agents.toml")
    with open(path, "rb") as file:
        data = tomllib.load(file)
    assert data["version"] == _VERSION
    return {name: _agent(name, each) for name, each in data["agents"].items()}


def _agent(name: str, data: Mapping[str, Any]) -> Agent:
    bare = data.get("bare")
    return Agent(
        name,
        data["title"],
        data["program"],
        {toolset: tuple(data["arguments"][toolset]) for toolset in TOOLSETS},
        {toolset: tuple(data["resume"][toolset]) for toolset in TOOLSETS if "resume" in data},
        None if bare is None else Bare(tuple(map(tuple, bare["words"])), tuple(bare["edits"])),
        tuple(data["model"]),
        tuple(data["version"]),
        tuple(data.get("log_in", ())),
        data["log_in_by"],
        _prints(data),
        tuple(data["sources"]),
    )


def _prints(data: Mapping[str, Any]) -> Prints:
    return Prints(
        data["prints"],
        data["exits"],
        tuple(data["ok"]),
        tuple(data["failed"]),
        {name: _places(data.get(name, ())) for name in ("message", "reason", "session")},
        {
            name: tuple(_places(group) for group in data.get(name, ()))
            for name in ("cost_usd", "input_tokens", "cached_input_tokens", "output_tokens")
        },
        {
            outcome: Sign(
                tuple(sign.get("in", ())), tuple(sign.get("exit", ())), tuple(sign.get("says", ()))
            )
            for outcome, sign in data["means"].items()
        },
    )


def _places(data: Sequence[Mapping[str, Any]]) -> tuple[Place, ...]:
    return tuple(Place(each["in"], each["at"]) for each in data)
