"""What is known of the agents: `agents.toml`, read once into values."""

import functools
import os
import tomllib
from collections.abc import Mapping
from typing import Any, NamedTuple

PROJECT, USER = "project", "user"
_FORM = 1


class Part(NamedTuple):
    """A piece of a set-up, as `agents.toml` describes it. `paths` are by scope; none: left out."""

    part: str
    form: str
    paths: Mapping[str, tuple[str, ...]]
    text: str | None
    value: Any
    at: tuple[str, ...]
    mark: str
    comments: bool
    fresh: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The name of the piece within its file."""
        return ".".join((self.part, *self.at))


class Agent(NamedTuple):
    """An agent: `moved` are folders of the home folder, by the variable that puts them elsewhere;
    `left_out` is what could not be verified, in words."""

    name: str
    title: str
    parts: tuple[Part, ...]
    moved: Mapping[str, str]
    notes: tuple[str, ...]
    left_out: tuple[str, ...]
    sources: tuple[Mapping[str, str], ...]


@functools.cache
def agents() -> Mapping[str, Agent]:
    """All agents, by name."""
    path = os.path.join(os.path.dirname(__file__), "agents.toml")
    with open(path, "rb") as file:
        data = tomllib.load(file)
    assert data["form"] == _FORM
    return {name: _agent(name, each) for name, each in data["agents"].items()}


def _agent(name: str, data: Mapping[str, Any]) -> Agent:
    return Agent(
        name,
        data["title"],
        tuple(_part(each) for each in data["parts"]),
        data.get("moved", {}),
        tuple(data.get("notes", ())),
        tuple(data["left_out"]),
        tuple(data["sources"]),
    )


def _part(data: Mapping[str, Any]) -> Part:
    paths = {scope: tuple(data[scope]) for scope in (PROJECT, USER) if scope in data}
    return Part(
        data["part"],
        data["form"],
        paths,
        data.get("text"),
        data.get("value"),
        tuple(data.get("at", ())),
        data.get("mark", ""),
        data.get("comments", False),
        data.get("fresh", {}),
    )
