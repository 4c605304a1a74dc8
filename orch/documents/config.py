"""The config of a run as a document."""

import re
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, model_validator

from inbox_orch.shared.errors import usage
from inbox_orch.shared.ids import check_name, quoted

from ..runs.config import (
    DECIDE_WITHIN_SECONDS,
    DEFAULT_SETUP_SECONDS,
    FINDS,
    Config,
    from_given,
)
from ..runs.limits import CANCEL_GRACE_SECONDS, MOST_CHECKS, MOST_PARALLEL, check_commands
from .gates import Gates
from .parts import (
    ClockSeconds,
    Command,
    Commands,
    LimitsPart,
    Part,
    Seconds,
    Tries,
    checked,
    validated,
)
from .policy import PolicyPart
from .reading import read_document

MAX_CONFIG_BYTES = 256 * 1024
MOST_ENTRIES = 1000
MAX_VALUE_BYTES = 32 * 1024
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")
# They lead git to another repository, or our commands to another database.
_RESERVED = re.compile(
    r"GIT_(DIR|WORK_TREE|INDEX_FILE|COMMON_DIR|OBJECT_DIRECTORY|NAMESPACE|CEILING_DIRECTORIES)"
    r"|INBOX_.*|ORCH_.*"
)


def _check_path(path: str) -> None:
    parts = path.split("/")
    if not path.isprintable() or len(path.encode("utf-8", "replace")) > 4096:
        raise usage("a path is text without control characters")
    if path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise usage(
            f"{quoted(path)} must lead from the top of the repository to a file below it",
            hint="without a leading '/', './', '..', and without '/' at the end",
        )
    if parts[0].lower() == ".git":
        raise usage("what belongs to git itself is not copied")


def _check_variable(name: str) -> None:
    if not _VARIABLE.fullmatch(name):
        raise usage(
            f"{quoted(name)} cannot be the name of an environment variable",
            hint="letters, digits and '_', the first not a digit",
        )


def _check_settable(name: str) -> None:
    _check_variable(name)
    if _RESERVED.fullmatch(name):
        raise usage(f"{name} is set by orch itself", hint="leave it out")


def _check_value(value: str) -> None:
    if "\0" in value or len(value.encode("utf-8", "replace")) > MAX_VALUE_BYTES:
        raise usage(f"a value has at most {MAX_VALUE_BYTES} bytes and no NUL")
    if any(0xD800 <= ord(c) < 0xE000 for c in value):
        raise usage("a value must be valid text")


def _check_mailbox(name: str) -> None:
    check_name(name, "mailbox")


def _check_role(name: str) -> None:
    check_name(name, "role")


def _check_word(text: str) -> None:
    _check_value(text)
    if not text:
        raise usage("a word of a command is empty")


def _check_adapter(name: str) -> None:
    from inbox_orch.shared.adapters.commands import agent_named

    agent_named(name)


def _check_model(name: str) -> None:
    from inbox_orch.shared.adapters.commands import check_model

    check_model(name)


def _check_notifier(text: str) -> None:
    check_commands([text], "notifier", "run")


RelativePath = Annotated[str, checked(_check_path)]
Variable = Annotated[str, checked(_check_variable)]
Notifier = Annotated[str, checked(_check_notifier)]
Settable = Annotated[str, checked(_check_settable)]
Value = Annotated[str, checked(_check_value)]
RoleName = Annotated[str, checked(_check_role)]
Mailbox = Annotated[str, checked(_check_mailbox)]
Word = Annotated[str, checked(_check_word)]
Adapter = Annotated[str, checked(_check_adapter)]
Model = Annotated[str, checked(_check_model)]


class SetupPart(Part):
    """A command to run in each new worktree."""

    command: Command
    timeout_seconds: ClockSeconds = DEFAULT_SETUP_SECONDS


class MailboxPart(Part):
    """What holds for one mailbox."""

    max_parallel: Annotated[int, Field(ge=1, le=MOST_PARALLEL)]


class RolePart(Part):
    """Who has the stages of one role, and what its workers run."""

    mailbox: Mailbox | None = None
    command: Annotated[list[Word], Field(min_length=1, max_length=MOST_ENTRIES)] | None = None
    adapter: Adapter | None = None
    toolset: Literal["coding", "readonly"] | None = None
    model: Model | None = None

    @model_validator(mode="after")
    def _says_something(self) -> "RolePart":
        if self.command is not None and self.adapter is not None:
            raise ValueError("`command` and `adapter` are two ways to say one thing\nkeep one")
        for key in ("toolset", "model"):
            if getattr(self, key) is not None and self.adapter is None:
                raise ValueError(
                    f"`{key}` is for an agent that is known by `adapter`\n"
                    "name one, or say it in the words of `command`"
                )
        if self.mailbox is None and self.command is None and self.adapter is None:
            raise ValueError(
                "says nothing about who does its stages\n"
                "give it `mailbox`, `adapter` or `command`, or leave the role out"
            )
        return self


class DecisionsPart(Part):
    """What becomes of a decision that nobody takes."""

    on_no_answer: Literal["wait", "abandon"] = "wait"
    within_seconds: ClockSeconds = DECIDE_WITHIN_SECONDS

    @model_validator(mode="after")
    def _has_an_end(self) -> "DecisionsPart":
        if self.on_no_answer == "wait" and "within_seconds" in self.model_fields_set:
            raise ValueError(
                "`within_seconds` says nothing while `on_no_answer` is `wait`\n"
                "write `on_no_answer: abandon` beside it, or leave it out"
            )
        return self


class ConfigPart(Part):
    """A config, whole; also as `run.config` of a plan."""

    copy_: Annotated[list[RelativePath], Field(max_length=MOST_ENTRIES)] = Field([], alias="copy")
    setup: SetupPart | None = None
    limits: LimitsPart = LimitsPart()
    max_attempts: Tries | None = None
    max_infra_attempts: Tries | None = None
    checks: Commands = Field([])
    mailboxes: Annotated[dict[Mailbox, MailboxPart], Field(max_length=MOST_ENTRIES)] = Field({})
    environment: Annotated[dict[Settable, Value], Field(max_length=MOST_ENTRIES)] = Field({})
    secrets: Annotated[list[Variable], Field(max_length=MOST_ENTRIES)] = Field([])
    submodules: bool = False
    lfs: Literal["skip", "smudge"] = "smudge"
    cancel_grace_seconds: Annotated[Seconds, Field(ge=0, le=24 * 3600)] = CANCEL_GRACE_SECONDS
    harvest: bool = False
    notify: Annotated[list[Notifier], Field(max_length=MOST_CHECKS)] = Field([])
    otel: bool = False
    gates: Gates = Field({})
    roles: Annotated[dict[RoleName, RolePart], Field(max_length=MOST_ENTRIES)] = Field({})
    finds: Annotated[list[Literal["setup", "gates"]], Field(max_length=len(FINDS))] = Field(
        ["setup", "gates"]
    )
    decisions: DecisionsPart = DecisionsPart()
    policy: PolicyPart | None = None

    @model_validator(mode="after")
    def _each_once(self) -> "ConfigPart":
        lists: tuple[tuple[str, Sequence[str]], ...] = (
            ("copy", self.copy_),
            ("secrets", self.secrets),
            ("finds", self.finds),
        )
        for name, entries in lists:
            twice = sorted({entry for entry in entries if list(entries).count(entry) > 1})
            if twice:
                raise ValueError(f"`{name}` names {quoted(twice[0])} twice\nkeep one")
        return self

    def value(self) -> Config:
        """The config as the frozen value that the services read."""
        given = self.model_dump(by_alias=True, exclude_unset=True, exclude={"gates"})
        gates = [part.value(name).as_json() for name, part in self.gates.items()]
        return from_given({**given, **({"gates": gates} if gates else {})})


def read_config(path: str) -> Config:
    """The config in a file of YAML or JSON; error `usage` that lists every problem by line."""
    source = read_document(path, MAX_CONFIG_BYTES)
    if source.value is None:
        return Config()
    return validated(ConfigPart, source).value()
