"""Pictures of a run in JSON."""

from typing import Annotated, Literal

from pydantic import Field

from inbox_orch.inbox.schemas import Count, Message, Shape, Time, Ulid

from .things import (
    AttemptState,
    Dependency,
    Key,
    Outcome,
    Patch,
    Positive,
    Run,
    StandingState,
    Visit,
    Work,
)

Lasted = Annotated[float, Field(ge=0)]


class GraphNode(Shape):
    """A task in a graph."""

    task: Ulid
    key: Key
    title: str
    standing: StandingState


class Graph(Shape):
    """`graph`. `text`: the picture, unless it was written to the file `path`."""

    run: Run
    outcome: Outcome
    items: list[GraphNode]
    truncated: bool
    next_cursor: None
    dependencies: list[Dependency]
    stale: bool
    format: Literal["text", "mermaid", "dot", "svg"]
    text: str | None
    path: str | None


class CriticalStep(GraphNode):
    """A task on the critical path; `estimated`: it has not been worked on yet."""

    seconds: Lasted | None
    estimated: bool


class CriticalPath(Shape):
    """`critical-path`, first to last. `measure`: what the length is taken from."""

    run: Run
    measure: Literal["durations", "estimated", "count"]
    seconds: Lasted | None
    items: list[CriticalStep]
    truncated: bool
    next_cursor: None
    stale: bool


class VisitBar(Shape):
    """A visit over time, as an attempt."""

    number: Positive
    stage: str
    nth: Positive
    kind: str
    state: str
    begin: Time
    end: Time | None
    seconds: Lasted


class Bar(Shape):
    """An attempt over time; `end` is null for a live one."""

    attempt: Ulid
    task: Ulid
    key: Key
    number: Positive
    state: AttemptState
    begin: Time
    end: Time | None
    seconds: Lasted


class TimelineBar(Bar):
    """An attempt over time, with its visits where it goes by a blueprint."""

    visits: list[VisitBar] | None = None


class Timeline(Shape):
    """`timeline`. `text`: the picture, unless it was written to the file `path`."""

    run: Run
    outcome: Outcome
    items: list[TimelineBar]
    truncated: bool
    next_cursor: None
    stale: bool
    format: Literal["text", "svg"]
    text: str | None
    path: str | None


class Changed(Shape):
    """How much an attempt changed against its base; lines of text files alone."""

    files: Count
    added_lines: Count
    removed_lines: Count


class Cost(Shape):
    """What workers said that it has cost."""

    usd: Annotated[float, Field(ge=0)] | None
    input_tokens: Count | None
    output_tokens: Count | None


class Told(Bar):
    """An attempt in a report; `changed` is null where git cannot tell. Where it goes by a
    blueprint, `visits` are there, and `unverified`: why accepted work was not judged as it should
    have been, null when it was."""

    reason: str | None
    commits: Count | None
    changed: Changed | None
    cost: Cost | None
    work: Work | None
    visits: list[Visit] | None = None
    unverified: str | None = None


class Exchange(Shape):
    """A question on the attempt `name`, and the message that ended it."""

    name: str
    question: Message
    answer: Message | None


class Asked(Shape):
    """A decision that the attempt `name` asked for: its visit, with what was answered."""

    name: str
    visit: Visit


class Report(Shape):
    """`report`. `needs`: the keys of the tasks that go no further without somebody, the most
    urgent first; `text`: the page, unless it was written to the file `path`; `decisions` is there
    where attempts go by a blueprint: those that were asked for, answered or open; `patches` where
    some wait, are refused, fit nothing, or were taken back."""

    run: Run
    outcome: Outcome
    counts: dict[StandingState, Count]
    items: list[Told]
    truncated: bool
    next_cursor: None
    needs: list[Key]
    questions: list[Exchange]
    cost: Cost
    stale: bool
    format: Literal["text", "html"]
    text: str | None
    path: str | None
    decisions: list[Asked] | None = None
    patches: list[Patch] | None = None
