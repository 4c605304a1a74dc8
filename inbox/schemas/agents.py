"""The `data` of the commands that are about agents, shells and help."""

from typing import Annotated, Any, Literal

from pydantic import Field

from .things import Name, Shape, Ulid


class DatabaseNamed(Shape):
    """Which database it is."""

    path: str
    id: Ulid


class Primed(Shape):
    """`prime`: `text` has at most 2,000 bytes."""

    text: Annotated[str, Field(max_length=2_000)]
    database: DatabaseNamed | None
    agent: Name | None


class Guide(Shape):
    """`guide`."""

    text: str


class Skill(Shape):
    """A skill by its name, and its text."""

    id: str
    text: str


class SkillPrinted(Shape):
    """`skill print`."""

    skill: Skill


class SkillAt(Shape):
    """A skill by its name, and the file that it is in."""

    id: str
    path: str


class SkillInstalled(Shape):
    """`skill install`: `changed` is false when the file was there already, just so."""

    skill: SkillAt
    changed: bool


class Hooked(Shape):
    """A hook: what it would print without --json, null for nothing."""

    event: Literal["session-start", "stop", "post-tool"]
    decision: dict[str, Any] | None


class SetUpItem(Shape):
    """What a file has of a part of a set-up. `changed`: another has written or changed it;
    `written`: the file was written by this call."""

    path: str
    part: Literal["skill", "hooks", "lines", "mcp"]
    state: Literal["in_place", "missing", "older", "changed"]
    written: bool


class SetUp(Shape):
    """`setup`, as it stands afterwards. `notes` and `left_out` are about the agent, in words."""

    agent: str
    scope: Literal["project", "user"]
    root: str
    items: list[SetUpItem]
    notes: list[str]
    left_out: list[str]
    truncated: Literal[False]
    next_cursor: None


class Completion(Shape):
    """`completion`: code for the shell."""

    shell: Literal["bash", "zsh", "fish"]
    source: str


class ToolDescribed(Shape):
    """A tool that `mcp` serves. `command` is what it runs; `reads`: it changes nothing."""

    name: str
    command: str
    description: str
    input_schema: dict[str, Any]
    reads: bool


class Toolset(Shape):
    """`mcp --tools`."""

    items: list[ToolDescribed]
    truncated: Literal[False]
    next_cursor: None
