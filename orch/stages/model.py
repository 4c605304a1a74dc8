"""Blueprints as frozen values, with their one form as JSON. Pure.

A blueprint is read from a file by `documents.blueprint`, and checked by `checking` before anything
goes by it.
"""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

TYPES = ("deterministic", "agent", "council")
ACTIONS = (
    "build_context_pack",
    "apply_patch",
    "run_gates",
    "run_linters",
    "run_tests",
    "generate_diff_report",
    "prepare_review_bundle",
    "summarize_run",
    "commit_changes",
)
GATE_ACTIONS = ("run_gates", "run_linters", "run_tests")
ENDS = ("done", "fail", "pause")
"""Targets that are no stages."""
APPROVALS = ("none", "before", "after")
ROUTES = ("on_success", "on_failure", "on_error", "on_skip", "on_reject")
MAX_TOTAL_VISITS = 12
FIRST_STAGE = "work"
"""The stage of a task without a blueprint: its one visit."""
SURROUNDINGS = "surroundings"
"""The visit before all others, in which each gate is tried on the base. No stage is called so."""


class Stage(NamedTuple):
    """One stage. `type` is of `TYPES`; a deterministic one has an `action` or a `run` (a line for
    the shell), an agent one a `goal`. `reviews`: its result is a verdict. `hands_in` is `text`
    where its workers have no files: what they change is in their result. `gates` are names; None
    are those that the action means. `max_visits` is how often it may be entered in a row of its
    loop, None: not bounded by itself. `policy` is what its change has to satisfy beyond what its
    task asks for. Routes are ids of stages, or of `ENDS`; None is the default:
    see `target`.
    """

    id: str
    type: str
    action: str | None = None
    run: str | None = None
    goal: str | None = None
    role: str | None = None
    toolset: str | None = None
    writes: bool = True
    reviews: bool = False
    hands_in: str | None = None
    inputs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    gates: tuple[str, ...] | None = None
    max_visits: int | None = None
    timeout_seconds: float | None = None
    approval: str = "none"
    on_success: str | None = None
    on_failure: str | None = None
    on_error: str | None = None
    on_skip: str | None = None
    on_reject: str | None = None
    policy: Mapping[str, Any] | None = None

    @property
    def runs_gates(self) -> bool:
        """Whether it judges a tree by gates."""
        return self.action in GATE_ACTIONS or self.run is not None

    @property
    def judges(self) -> bool:
        """Whether its result is a verdict on the change."""
        return self.reviews or self.type == "council"

    def target(self, route: str) -> str:
        """Where it goes on from here: what the stage says, and otherwise: after success `done`;
        after a failure `pause` for an agent stage and `fail` for another; what could not be judged
        pauses; what was skipped goes on as after success; a reject pauses."""
        said: str | None = getattr(self, route)
        if said is not None:
            return said
        if route == "on_skip":
            return self.target("on_success")
        if route == "on_failure":
            return "fail" if self.type == "deterministic" else "pause"
        return "done" if route == "on_success" else "pause"

    def as_json(self) -> dict[str, Any]:
        """Only what is said."""
        defaults = Stage("", "")
        found = {}
        for name, value in self._asdict().items():
            if name in ("id", "type") or value != getattr(defaults, name):
                found[name] = list(value) if isinstance(value, tuple) else value
        return found

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "Stage":
        """What `as_json` has made."""
        values: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in stored.items()
        }
        return cls(**values)


class Blueprint(NamedTuple):
    """Stages in order: the first is where an attempt begins. `max_total_visits` bounds the visits
    of agents in an attempt, `on_diverging` is `go_on` or `pause`."""

    id: str
    stages: tuple[Stage, ...]
    title: str = ""
    version: int = 1
    max_total_visits: int = MAX_TOTAL_VISITS
    on_diverging: str = "go_on"

    @property
    def first(self) -> str:
        """Where an attempt begins."""
        return self.stages[0].id

    @property
    def by_id(self) -> dict[str, Stage]:
        """The stages by their ids."""
        return {stage.id: stage for stage in self.stages}

    def as_json(self) -> dict[str, Any]:
        facts = self._asdict()
        return {**facts, "stages": [stage.as_json() for stage in self.stages]}

    def canonical(self) -> str:
        """The one text that a run keeps; equal for equal blueprints."""
        return json.dumps(self.as_json(), sort_keys=True, ensure_ascii=False)


PLAIN = Blueprint(
    FIRST_STAGE,
    (Stage(FIRST_STAGE, "agent", goal="Do the task.", on_failure="fail"),),
    "The task, and nothing else",
)
"""What an attempt without a blueprint goes by once somebody has to approve of it."""


def from_canonical(text: str) -> Blueprint:
    """What `Blueprint.canonical` was made of."""
    stored = json.loads(text)
    stages = tuple(Stage.from_json(each) for each in stored.pop("stages"))
    return Blueprint(stages=stages, **stored)
