"""Blueprints in JSON."""

from typing import Any, Literal

from inbox_orch.inbox.schemas import Count, Seconds, Shape, Ulid

from .things import AttemptState, Key, Positive, Run, Visit


class BlueprintStage(Shape):
    """A stage. Routes name a stage or `done`, `fail`, `pause`; `on_reject` is null where nothing
    can be rejected. `gates`: null for all that the action means."""

    id: Key
    type: Literal["deterministic", "agent", "council"]
    action: str | None
    run: str | None
    goal: str | None
    role: str | None
    toolset: str | None
    hands_in: str | None = None
    writes: bool
    reviews: bool
    inputs: list[str]
    outputs: list[str]
    gates: list[str] | None
    max_visits: Positive | None
    timeout_seconds: Seconds | None
    approval: Literal["none", "before", "after"]
    on_success: str
    on_failure: str
    on_error: str
    on_skip: str
    on_reject: str | None
    policy: dict[str, Any] | None = None


class Blueprint(Shape):
    """A blueprint. `most_visits`: how many visits of agents and councils an attempt has at most, as
    long as nobody answers `continue`."""

    id: Key
    title: str
    version: Positive
    max_total_visits: Positive
    on_diverging: Literal["go_on", "pause"]
    stages: list[BlueprintStage]
    most_visits: Count


class BlueprintShown(Shape):
    """`blueprint show`, `blueprint validate`."""

    blueprint: Blueprint


class Convergence(Shape):
    """How a loop that mends gets on. `stops`: somebody has to decide."""

    word: Literal["passed", "oscillating", "exhausted", "begun", "improving", "stalled"]
    stops: bool
    sentence: str


class ExplainedVisit(Shape):
    """A visit, the `route` that its stage took after it (of a decision what was answered), and the
    `target` of that: a stage, `done`, `fail` or `decision`; null while it lives, and where the
    attempt ended otherwise."""

    visit: Visit
    route: str | None
    target: str | None
    convergence: Convergence | None
    why: str | None


class BlueprintExplained(Shape):
    """`blueprint explain`. `next`: what comes next, in words; `visits`: how many of agents and
    councils there were; `most_visits` as in a blueprint."""

    run: Run
    task: Ulid
    key: Key
    attempt: Ulid
    number: Positive
    state: AttemptState
    blueprint: str
    items: list[ExplainedVisit]
    truncated: bool
    next_cursor: None
    next: str
    visits: Count
    most_visits: Count
    max_total_visits: Positive


class BlueprintGraph(Shape):
    """`blueprint graph`. `text`: the picture."""

    blueprint: Blueprint
    format: Literal["text", "mermaid", "dot"]
    text: str


class BlueprintEntry(Shape):
    """A blueprint that can be named. `error`: why it cannot be used; then the title and both
    numbers are null."""

    id: str
    source: Literal["native", "repository"]
    path: str
    title: str | None
    stage_count: Positive | None
    most_visits: Count | None
    error: str | None


class BlueprintList(Shape):
    """`blueprint list`."""

    items: list[BlueprintEntry]
    truncated: bool
    next_cursor: None
