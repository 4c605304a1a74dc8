"""Patches in JSON."""

from typing import Annotated, Any, Literal

from pydantic import Field

from inbox_orch.inbox.schemas import Count, Name, Shape, Time, Ulid

from .things import Attempt, Commit, Patch, PatchFacts, PatchState, Positive, Task, Way

Digest = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class PatchEntry(Shape):
    """What was said of a patch, `by` whom and why; `policy` is the digest of the one that it was
    judged by."""

    number: Positive
    kind: str
    outcome: str
    by: Name
    reason: str | None
    at: Time
    facts: dict[str, Any] | None = None
    policy: Digest | None = None


class PatchList(Shape):
    """`patch list`."""

    items: list[Patch]
    truncated: bool
    next_cursor: None


class PatchShown(Shape):
    """`patch show`. `diff` is there with `--diff`: at most 1 MiB of it, with secrets masked;
    `diff_truncated`: there is more."""

    patch: Patch
    entries: list[PatchEntry]
    diff: str | None = None
    diff_truncated: bool | None = None


class PatchLog(Shape):
    """`patch log`: what was said of a patch, in order."""

    patch: Patch
    items: list[PatchEntry]
    truncated: bool
    next_cursor: None


class PatchSaid(Shape):
    """`patch approve`, `patch refuse`, `patch release`, `patch drop`. `patch` is an id. `missing`:
    how many more have to approve; `denied_by`: rules that are not released yet; `next`: a call,
    with what it does, null where nothing of this patch is left to be done."""

    patch: Ulid
    name: str
    state: PatchState
    missing: Count
    denied_by: list[str]
    next: str | None = None


class Objection(Shape):
    """A rule that a change breaks: which layer says so, the first of the paths that it is about, in
    words, and how it could be allowed."""

    rule: str
    layer: str
    outcome: Literal["asked", "denied"]
    paths: list[str]
    text: str
    remedy: str


class PatchChecked(Shape):
    """`patch check`: what would be said of a change on the commit `base`. With exit 9 and 11, too,
    as `error.data`."""

    verdict: Literal["allowed", "asked", "denied"]
    way: Way
    base: Commit
    facts: PatchFacts
    objections: list[Objection]


class PatchSubmitted(Shape):
    """`patch submit`: the attempt that was made, its patch by its name and how that stands; null
    where nothing of the run is recorded. With exit 9 and 11, too, as `error.data`."""

    task: Task
    attempt: Attempt
    patch: str | None
    patch_state: PatchState | None
    replayed: bool = False


class PatchExported(Shape):
    """`patch export`. `raw`: the text is what was handed in, and not made of the trees; bytes that
    are not UTF-8 are halves of surrogates in it."""

    patch: Patch
    raw: bool
    text: str


class PatchRolledBack(Shape):
    """`patch rollback`. The branch `branch` has come from `before` to `tip`, by the patch
    `rolled_back_by`, which changes `paths`. `builds_on`: attempts, as KEY/N, whose work has the
    patch in its history and is in no integration yet; `next`: a call, with what it does."""

    patch: Ulid
    name: str
    rolled_back_by: Ulid
    by_name: str
    branch: str
    before: Commit
    tip: Commit
    paths: list[str]
    builds_on: list[str]
    next: str


class RollbackHeld(Shape):
    """Beside the error `approval_needed` of `patch rollback`: the patch that would undo it, and
    what somebody is asked about."""

    patch: Ulid
    name: str
    objections: list[dict[str, Any]]
