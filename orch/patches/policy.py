"""Policies, and what they object to, as values. Pure.

A policy is what its layers say, from the outermost: the built-in one, the run's, the task's, the
stage's. Each path and number has to satisfy all of them.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from inbox_orch.shared.digests import sha256_hex

from ..runs.config import Config
from ..runs.model import Task
from ..runs.policies import layers_of, stored
from .model import Summary

OUTCOMES = ("allowed", "asked", "denied")
"""What becomes of a patch, from the mildest."""


class Layer(NamedTuple):
    """What one place says: `name` as people know it (`run`, `task parser`), `given` the rules that
    it has."""

    name: str
    given: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        return {"name": self.name, "given": dict(self.given)}


class Policy(NamedTuple):
    """What is in force for a task, or a stage of it. Without layers only the floor is held."""

    layers: tuple[Layer, ...] = ()

    @property
    def is_more_than_the_floor(self) -> bool:
        """Whether anybody asks for more than what holds everywhere."""
        return bool(self.layers)

    @property
    def keeps_history(self) -> bool:
        """Whether the worker's own commits are judged, each, and accepted."""
        said = [layer.given["history"] for layer in self.layers if "history" in layer.given]
        return bool(said) and all(word == "keep" for word in said)

    def canonical(self) -> str:
        """The one text of it; equal for equal policies."""
        layers = [layer.as_json() for layer in self.layers]
        return json.dumps(layers, sort_keys=True, ensure_ascii=False, separators=(",", ":"))

    @property
    def digest(self) -> str:
        """By which it is known."""
        return sha256_hex(self.canonical().encode("utf-8", "surrogateescape"))


class Objection(NamedTuple):
    """A rule that a patch breaks: its name, the layer that says so, whether that is denied or asked
    for (of `OUTCOMES`), the first of the paths that it is about, in words, and how it could be
    allowed."""

    rule: str
    layer: str
    outcome: str
    paths: tuple[str, ...]
    text: str
    remedy: str

    def as_json(self) -> dict[str, Any]:
        return {**self._asdict(), "paths": list(self.paths)}


def naming_rule(rule: str, layer: str, text: str) -> str:
    """What an objection says, with its rule and layer; those are put in front only where the text
    does not name the rule itself."""
    return text if f"`{rule}`" in text else f"{rule} ({layer}): {text}"


NO_NAME = "PATCH"
"""Stands in a remedy for the name of a patch, as long as there is none."""


def naming_patch(remedy: str, name: str) -> str:
    """A remedy with the name of the patch that it is for, so that it can be called as it stands."""
    for verb in ("approve", "release"):
        call = f"`orch patch {verb}"
        remedy = remedy.replace(f"{call} {NO_NAME}", f"{call} {name}")
        # As earlier releases have stored it.
        remedy = remedy.replace(f"{call}`", f"{call} {name}`")
        remedy = remedy.replace(f"{call} --", f"{call} {name} --")
    return remedy


class Examined(NamedTuple):
    """What a change is, and what a policy objects to."""

    summary: Summary
    objections: tuple[Objection, ...]

    @property
    def outcome(self) -> str:
        """The gravest of the objections', of `OUTCOMES`."""
        found = {objection.outcome for objection in self.objections}
        return next((word for word in reversed(OUTCOMES) if word in found), OUTCOMES[0])

    def named(self, name: str) -> "Examined":
        """With the name of the patch in every remedy."""
        every = (o._replace(remedy=naming_patch(o.remedy, name)) for o in self.objections)
        return self._replace(objections=tuple(every))

    @property
    def reason(self) -> str | None:
        """The objections that count, in a line; None without one."""
        texts = [o.text for o in self.objections if o.outcome == self.outcome]
        return "; ".join(texts) or None


class HasPolicy(Protocol):
    """A stage of a blueprint, as far as its policy goes."""

    @property
    def id(self) -> str: ...

    @property
    def policy(self) -> Mapping[str, Any] | None: ...


def of_task(config: Config, task: Task, *, staged: bool, stage: HasPolicy | None = None) -> Policy:
    """What is in force for a task, `staged` if it goes by a blueprint, and for one stage of it.
    Empty, which is the floor alone, as long as neither the run nor the task gives a policy and no
    blueprint is gone by."""
    named = layers_of(config.policy, (task.key, stored(task.policy)), staged=staged)
    layers = [Layer(name, given) for name, given in named]
    return Policy((*layers, *of_stage(stage).layers))


def of_stage(stage: HasPolicy | None) -> Policy:
    """What a stage alone asks for: of its own change, from its start to its end."""
    if stage is None or stage.policy is None:
        return Policy()
    return Policy((Layer(f"stage {stage.id}", stage.policy),))


def from_canonical(text: str) -> Policy:
    """The policy that `Policy.canonical` has made the text of."""
    return Policy(tuple(Layer(each["name"], each["given"]) for each in json.loads(text)))
