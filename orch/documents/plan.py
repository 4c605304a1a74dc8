"""Plans as documents: read with every problem told by its line."""

import json
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import check_name

from ..runs.config import Config
from ..runs.limits import MAX_PRIORITY, MIN_PRIORITY, MOST_PARALLEL, check_task_body, check_title
from ..runs.names import check_task_key
from ..runs.plan import Link, Opening, Plan, TaskSpec
from .config import ConfigPart, Mailbox
from .parts import Commands, LimitsPart, Part, Tries, checked, validated
from .policy import PolicyPart
from .reading import Source, read_document

MAX_PLAN_BYTES = 128 * 1024 * 1024
MOST_LINKS = 10_000
MOST_BLUEPRINT = 4096


def _check_kind(kind: str) -> None:
    check_name(kind, "kind")


def _as_link(given: Any) -> Any:
    """A bare key stands for a dependency with the usual condition."""
    return {"task": given} if isinstance(given, str) else given


def _as_text(given: Any) -> Any:
    """A schema may stand in a plan as it is, or as text."""
    return json.dumps(given, ensure_ascii=False) if isinstance(given, dict) else given


def _checked_schema(text: str) -> str:
    # Only here: most tasks have none.
    from inbox_orch.inbox.services import accepting

    try:
        return accepting.checked(text)
    except InboxOrchError as error:
        raise ValueError(error.message) from error


Key = Annotated[str, checked(check_task_key)]
Title = Annotated[str, checked(check_title)]
Text = Annotated[str, checked(check_task_body)]
Kind = Annotated[str, checked(_check_kind)]
ResultSchema = Annotated[str, BeforeValidator(_as_text), AfterValidator(_checked_schema)]


class LinkPart(Part):
    """One entry of `depends_on`."""

    task: str
    when: Literal["success", "finished", "failed"] = "success"


class TaskPart(Part):
    """One entry of `tasks`."""

    task: Key
    title: Title
    body: Text = ""
    to: Mailbox | None = None
    kind: Kind = "code"
    depends_on: Annotated[
        list[Annotated[LinkPart, BeforeValidator(_as_link)]], Field(max_length=MOST_LINKS)
    ] = Field([])
    priority: Annotated[int, Field(ge=MIN_PRIORITY, le=MAX_PRIORITY)] = 0
    max_attempts: Tries | None = None
    max_infra_attempts: Tries | None = None
    worktree: bool = True
    allow_empty: bool = False
    checks: Commands | None = None
    limits: LimitsPart = LimitsPart()
    result_schema: Annotated[ResultSchema | None, Field(alias="schema")] = None
    harvest: bool | None = None
    blueprint: Annotated[str, Field(min_length=1, max_length=MOST_BLUEPRINT)] | None = None
    policy: PolicyPart | None = None
    hands_in: Literal["text"] | None = None

    def value(self) -> TaskSpec:
        return TaskSpec(
            self.task,
            self.title,
            self.body,
            self.to,
            self.kind,
            tuple(Link(link.task, link.when) for link in self.depends_on),
            self.priority,
            self.max_attempts,
            self.max_infra_attempts,
            self.worktree,
            self.allow_empty,
            None if self.checks is None else tuple(self.checks),
            self.limits.value(),
            self.result_schema,
            self.harvest,
            self.blueprint,
            policy=None if self.policy is None else self.policy.value(),
            hands_in=self.hands_in,
        )


class RunPart(Part):
    """The run that a plan opens."""

    title: Title
    base: str | None = None
    on_failure: Literal["continue", "fail-fast", "abort"] = "continue"
    max_parallel: Annotated[int, Field(ge=1, le=MOST_PARALLEL)] | None = None
    no_repo: bool = False
    config: ConfigPart | None = None

    def value(self) -> Opening:
        return Opening(
            self.title,
            self.base,
            self.on_failure,
            self.max_parallel,
            self.no_repo,
            Config() if self.config is None else self.config.value(),
        )


class PlanPart(Part):
    """A plan, whole."""

    run: RunPart | None = None
    tasks: list[TaskPart]


def read_plan(path: str) -> tuple[Plan, Source]:
    """The plan in a file of YAML or JSON, and the document with its lines.

    Error `usage` that lists every problem by line.
    """
    source = read_document(path, MAX_PLAN_BYTES)
    part = validated(PlanPart, source)
    run = None if part.run is None else part.run.value()
    return Plan(tuple(task.value() for task in part.tasks), run), source
