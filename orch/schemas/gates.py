"""The `data` of the commands about gates."""

from typing import Literal

from inbox_orch.inbox.schemas import Count, Name, Seconds, Shape

from .plans import Gate
from .things import Key, Positive


class ListedGate(Gate):
    """A gate of a run. `source`: whether the config says it or it was found. `usable`, `base` and
    `says`: whether it could judge when it was tried last on a base, how it ended there, and that in
    a sentence; null where it was not tried."""

    source: Literal["config", "found"]
    usable: bool | None
    base: Literal["passed", "failed", "skipped", "error"] | None
    says: str | None


class GateList(Shape):
    """`gate list`."""

    run: Name
    items: list[ListedGate]
    truncated: bool
    next_cursor: None


class GateResult(Shape):
    """What a gate has come to. `failures`: those that count, by their ids, and how often;
    `texts` has a line for most of them; `known`: how many more the base has, too; `flaky`: ids
    that failed once and then passed; `tests`: how many have run, null where that is not told;
    `output`: the last of its output; `artifact`: name, SHA-256 and bytes of all of it, null where
    it is not kept; `reused`: the tree was judged before; `wrote`: paths that the gate changed."""

    gate: Name
    state: Literal["passed", "failed", "skipped", "error"]
    reason: str | None
    failures: dict[str, Positive]
    texts: dict[str, str]
    known: Count
    flaky: list[str]
    tests: Count | None
    seconds: Seconds
    output: str
    artifact: tuple[str, str, Count] | None
    reused: bool
    wrote: list[str]
    mode: Literal["block", "warn"]


class GatesRun(Shape):
    """`gate run`. `attempt` is KEY/N. Exit 11 when a gate has failures that count, or could not be
    judged."""

    run: Name
    task: Key
    attempt: str
    gates: list[GateResult]
