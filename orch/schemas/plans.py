"""Plans and the config of runs in JSON."""

from typing import Annotated, Any, Literal

from pydantic import Field

from inbox_orch.inbox.schemas import Count, Name, Seconds, Shape

from .things import Limits, Positive, Run


class Setup(Shape):
    """A shell command that is run once in each new worktree."""

    command: str
    timeout_seconds: Seconds


class MailboxLimit(Shape):
    """How many attempts a mailbox may have at once."""

    max_parallel: Positive


class Gate(Shape):
    """A gate as a config says it; keys that are not there have their defaults. `run`: words, or a
    line for the shell; no words for one that is judged without a command."""

    name: Name
    run: list[str] | str
    reads: Literal["exit", "junit", "ruff", "mypy", "sarif", "lines"] = "exit"
    timeout_seconds: Annotated[float, Field(gt=0)] = 900.0
    paths: list[str] = Field([])
    mode: Literal["block", "warn"] = "block"
    writes: Literal["put_back", "keep"] = "put_back"
    clean: bool = False
    strict: bool = False
    pattern: str | None = None
    min_tests: Literal["base"] | None = None


class Role(Shape):
    """Who does the stages of a role in blueprints: a mailbox (without one the role has one of its
    own in each run), and what its workers run; only what is said."""

    mailbox: Name | None = None
    command: list[str] | None = None
    adapter: str | None = None
    toolset: Literal["coding", "readonly"] | None = None
    model: str | None = None


class Config(Shape):
    """What a run was opened with. `environment`: for set-up and checks; the values of
    `secrets` are masked. `harvest`, `notify`, `otel`, `gates`, `finds`, `roles` and `policy`
    are there where they are used. `finds`: what is looked for in the repository for blueprints."""

    copied: list[str] = Field(alias="copy")
    setup: Setup | None
    limits: Limits
    max_attempts: Positive
    max_infra_attempts: Positive
    checks: list[str]
    mailboxes: dict[Name, MailboxLimit]
    environment: dict[str, str]
    secrets: list[str]
    submodules: bool
    lfs: Literal["skip", "smudge"]
    cancel_grace_seconds: Annotated[float, Field(ge=0)]
    harvest: bool = False
    notify: list[str] = Field([])
    otel: bool = False
    gates: list[Gate] = Field([])
    finds: list[Literal["setup", "gates"]] = Field(["setup", "gates"])
    roles: dict[Name, Role] = Field({})
    policy: dict[str, Any] = Field({})


class PlanImported(Shape):
    """`plan import`. `run` is null when a dry run would open one."""

    run: Run | None
    run_opened: bool
    task_count: Count
    dependency_count: Count
    dry_run: bool
    replayed: bool = False


class PlanExported(Shape):
    """`plan export`. `plan`: the document as values, `text`: as it is written, unless it was
    written to the file `path`."""

    run: Run
    plan: dict[str, Any]
    format: Literal["yaml", "json"]
    text: str | None
    path: str | None
