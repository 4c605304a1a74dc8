"""The `data` of the commands about policies."""

from typing import Any, Literal

from pydantic import Field

from inbox_orch.inbox.schemas import Count, Name, Shape

from .things import Key

Outcome = Literal["allowed", "asked", "denied"]


class Layer(Shape):
    """What one place says: `name` is built-in, run, task KEY or stage ID; `given` its rules."""

    name: str
    given: dict[str, Any]


class Said(Shape):
    """What a layer says by a rule."""

    rule: str
    value: Any
    layer: str
    meaning: str


class PolicyShown(Shape):
    """`policy show`. `layers` stand from the outermost, those of stages last; there are none where
    only the floor is held. `run` and `task` are null for what a file says."""

    run: Name | None
    task: Key | None
    layers: list[Layer]
    items: list[Said]
    truncated: bool
    next_cursor: None


class Spoken(Shape):
    """What a layer says of a path; `pattern` is the one that fits, null where none does."""

    layer: str
    rule: str
    outcome: Outcome
    pattern: str | None


class PolicyExplained(Shape):
    """`policy explain`. What stages say of a path counts for them alone, and not in `outcome`."""

    run: Name | None
    task: Key | None
    path: str
    outcome: Outcome
    items: list[Spoken]
    truncated: bool
    next_cursor: None


class PatchFacts(Shape):
    """How much a change is: `bytes` of the new contents, and the first 200 of the paths."""

    files: Count
    insertions: Count
    deletions: Count
    size: Count = Field(alias="bytes")
    paths: list[str]
    notes: list[str] = Field([])


class Objection(Shape):
    """A rule that a change breaks, in `layer`, with the first of the paths, in words, and how it
    could be allowed."""

    rule: str
    layer: str
    outcome: Literal["asked", "denied"]
    paths: list[str]
    text: str
    remedy: str


class PolicyChecked(Shape):
    """`policy check`. `policy` is the digest of what it was judged by. Exit 11 when somebody has to
    approve; where it is denied (exit 9) the same stands in `details` of the error."""

    run: Name | None
    task: Key | None
    what: str
    outcome: Outcome
    facts: PatchFacts
    objections: list[Objection]
    policy: str


class Oddity(Shape):
    """Something of a layer that is hardly meant so."""

    layer: str
    rule: str
    text: str


class PolicyLinted(Shape):
    """`policy lint`: the policies of the file `path`, and what is odd in them."""

    path: str
    layers: list[Layer]
    items: list[Oddity]
    truncated: bool
    next_cursor: None
