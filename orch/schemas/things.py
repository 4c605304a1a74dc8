"""The things of the scheduler in JSON, each with one shape wherever it appears.

In them `task` is an id, and `key` a task's key.
"""

from typing import Annotated, Any, Literal

from pydantic import Field

from inbox_orch.inbox.schemas import Author, Count, Event, Message, Name, Seconds, Shape, Time, Ulid

Key = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,39}$")]
Commit = Annotated[str, Field(pattern="^([0-9a-f]{40}|[0-9a-f]{64})$", description="A commit id.")]
Positive = Annotated[int, Field(ge=1)]

RunState = Literal["open", "paused", "cancelling", "closed"]
TaskState = Literal["pending", "active", "blocked", "succeeded", "failed", "cancelled", "skipped"]
StandingState = Literal[
    "ready",
    "waiting",
    "backing_off",
    "base_conflict",
    "unreachable",
    "active",
    "blocked",
    "succeeded",
    "failed",
    "cancelled",
    "skipped",
]
AttemptState = Literal[
    "allocating",
    "provisioned",
    "offered",
    "running",
    "blocked",
    "submitted",
    "verifying",
    "ending",
    "succeeded",
    "rejected",
    "failed",
    "timed_out",
    "lost",
    "cancelled",
    "provision_failed",
]
Outcome = Literal["running", "succeeded", "failed", "partial", "cancelled", "stuck"]
BaseSource = Literal["option", "run", "HEAD", "task", "merge", "integration", "attempt"]
Condition = Literal["success", "finished", "failed"]


class Run(Shape):
    """A set of tasks for one repository (or for none)."""

    id: Ulid
    name: str
    title: str
    state: RunState
    leader: Name
    repository: str | None
    base_ref: str | None
    base_commit: Commit | None
    worktree_root: str | None
    on_failure: Literal["continue", "fail-fast", "abort"]
    max_parallel: Positive | None
    created_at: Time
    closed_at: Time | None
    cancelled_at: Time | None


class Limits(Shape):
    """Seconds after which an attempt, or a check, is ended; null: never."""

    queue_seconds: Seconds | None
    run_seconds: Seconds | None
    silent_seconds: Seconds | None
    block_seconds: Seconds | None
    check_seconds: Seconds | None


class IntegrationConflict(Shape):
    """What an attempt did not merge with, and where."""

    onto: Commit
    paths: list[str]


class Task(Shape):
    """One piece of work of a run. `harvest`, whether what its workers leave uncommitted is
    committed for them, `blueprint`, the id of the one that its attempts go by, `policy`, what
    its changes have to satisfy beyond what its run asks for, and `result_schema`, what its result
    has to satisfy, are there where the task says them; the schema not in lists.
    `hands_in` is there where what its workers change stands in their result."""

    id: Ulid
    key: Key
    title: str
    kind: str
    mailbox: Name
    state: TaskState
    priority: int
    worktree: bool
    allow_empty: bool
    checks: list[str]
    limits: Limits
    attempts: Count
    max_attempts: Positive
    max_infra_attempts: Positive
    work_failures: Count
    infra_failures: Count
    not_before: Time | None
    accepted_attempt: Ulid | None
    accepted_head: Commit | None
    next_base: Commit | None
    next_base_source: BaseSource | None
    reason: str | None
    created_at: Time
    updated_at: Time
    result_schema: dict[str, Any] | None = None
    harvest: bool = False
    blueprint: str | None = None
    policy: dict[str, Any] | None = None
    hands_in: Literal["text"] | None = None


class Standing(Task):
    """A task, and how it stands now. `because`: keys of the tasks that it waits for, or that
    made it unreachable; `until`: the end of a back-off; `conflict_paths`: where what it depends
    on does not merge."""

    standing: StandingState
    because: list[Key]
    until: Time | None
    conflict_paths: list[str]


class Attempt(Shape):
    """One try at a task. `ending_as`: what it becomes once no worker can be working on it.
    `details` has `harvest` where what the worker leaves uncommitted is to be committed for it, and
    `harvested`, with `commit` and `files`, where that was done. `stage` is there where it goes by a
    blueprint: that of its live visit, or of its last one; `details` then has `unverified` where
    accepted work was not judged as it should have been, and `ignored` where gates saw files that
    are not in its commit."""

    id: Ulid
    run: Ulid
    task: Ulid
    number: Positive
    state: AttemptState
    ending_as: Literal["cancelled", "timed_out"] | None
    mailbox: Name
    thread: Ulid | None
    branch: str | None
    worktree: str | None
    base_ref: str | None
    base_commit: Commit | None
    base_source: BaseSource | None
    dirty_paths: list[str]
    head_commit: Commit | None
    commits_ahead: Count | None
    reason: str | None
    details: dict[str, Any] | None
    fatal: bool
    clock: Literal["queue", "run", "silent", "block"] | None
    conflict: IntegrationConflict | None
    salvage_commit: Commit | None
    created_at: Time
    updated_at: Time
    ended_at: Time | None
    removed_at: Time | None
    stage: str | None = None


class LastWords(Shape):
    """The result or failure with which an attempt's work has ended, at most 4 KiB of it."""

    kind: Literal["result", "failure"]
    sender: Author
    created_at: Time
    body: str | None
    body_truncated: bool


class Work(Shape):
    """The work on an attempt. `worker` holds it, or did last; by a blueprint, it is who holds it,
    or, where nobody does, who wrote it last, and `message` is an author's. `workers` are all who
    ever held it, in order; `lost_leases`: how many leases have run out; `changed_at`: when the
    attempt last changed, what clean-up and integration note of it left aside."""

    worker: Name | None
    workers: list[Name]
    deliveries: Count
    lost_leases: Count
    message: LastWords | None
    changed_at: Time


class GateFound(Shape):
    """What a gate came to. `failures` are those that count, `known` those that the base has, too,
    `flaky` what failed once and then passed; `reused`: this tree was judged before."""

    gate: str
    state: Literal["passed", "failed", "skipped", "error"]
    reason: str | None
    failures: Count
    known: Count
    flaky: list[str]
    tests: Count | None
    seconds: Annotated[float, Field(ge=0)]
    reused: bool
    mode: str


class Decided(Shape):
    """Why a decision was asked for, and what came of it; null while nobody has answered. `rule` is
    the one of a policy that was released, `parts` are the tasks that the task was split into."""

    cause: str
    about: str
    resume: str | None
    answer: str | None
    hint: str | None
    mailbox: Name | None
    by: Name | None
    rule: str | None = None
    parts: list[Key] | None = None


class Session(Shape):
    """The session of an agent in which a visit was done, by its `id` there; `agent` is null for a
    command that is none of those that are known. `resumed`: it is that of the visit before; `lost`:
    the id of one that was to be gone on with, and was not there any more."""

    id: str
    agent: str | None
    resumed: bool
    lost: str | None


class Visit(Shape):
    """One entry of a stage in an attempt that goes by a blueprint; `nth` counts those of its stage.
    `verdict`: of a review what it says, of a decision what was answered. `failures`: for each gate
    how often what failed. `gates` are there for visits of gates; `decision` for those in which
    somebody decides: `cause`, the stage that it is `about`, where a yes goes on (`resume`), and
    the `answer` with its `hint`, `by` whom. `session` is there where the worker has said it."""

    number: Positive
    stage: str
    nth: Positive
    kind: Literal["agent", "gates", "action", "council", "decision"]
    state: Literal["live", "succeeded", "failed", "error", "skipped", "lost", "void", "cancelled"]
    mailbox: Name | None
    thread: Ulid | None
    tree_before: Commit | None
    tree_after: Commit | None
    snapshot: Commit | None
    head: Commit | None
    worker: Name | None
    verdict: str | None
    reason: str | None
    created_at: Time
    ended_at: Time | None
    failures: dict[str, dict[str, Count]]
    gates: list[GateFound] | None = None
    decision: Decided | None = None
    session: Session | None = None


PatchState = Literal[
    "created",
    "validated",
    "queued",
    "apply_failed",
    "applied",
    "verified",
    "committed",
    "quarantined",
    "rolled_back",
    "dropped",
]
Way = Literal["commits", "harvest", "diff", "edits", "gate", "reverse"]


class PatchFacts(Shape):
    """What a patch changes: how many files and lines, the bytes of the new contents, the first 200
    paths. `notes` are there where something was done to bring it in."""

    files: Count
    insertions: Count
    deletions: Count
    bytes: Count
    paths: list[str]
    notes: list[str] | None = None


class Patch(Shape):
    """A change that was handed in, from `base` to `tree`; both trees are git's. `number` counts
    those of the attempt, `name` is KEY/ATTEMPT/NUMBER; `way` is how it came, `head` a commit that
    has the tree, `author` who wrote it, `text` the artifact that has it where it came as text.
    `replaces` is the refused patch that it came in instead of, `rollback_of` the one that it
    undoes. `reason`: why it stands as it does."""

    id: Ulid
    run: Ulid
    attempt: Ulid
    number: Positive
    visit: Positive | None
    way: Way
    base: Commit
    base_tree: Commit
    tree: Commit | None
    head: Commit | None
    author: str | None
    facts: PatchFacts
    text: str | None
    replaces: Ulid | None
    rollback_of: Ulid | None
    created_at: Time
    name: str
    key: Key
    state: PatchState
    reason: str | None


class WorkedOn(Attempt):
    """An attempt, and the work on it; null while it was never handed out. `visits` are there where
    it goes by a blueprint, `patches` where a policy is in force, or they say more than the attempt
    does."""

    work: Work | None
    visits: list[Visit] | None = None
    patches: list[Patch] | None = None


class HandedOut(Attempt):
    """An attempt with everything that its worker needs; no brief before it is offered."""

    key: Key
    db: str
    db_id: Ulid
    brief: str | None


class Planned(Shape):
    """An attempt that a dry run would make."""

    task: Ulid
    key: Key
    number: Positive
    state: Literal["planned"]
    mailbox: Name
    branch: str | None
    base_ref: str | None
    base_commit: Commit | None
    base_source: BaseSource | None


class BaseConflict(Shape):
    """A task whose base cannot be merged, and the paths."""

    task: Ulid
    key: Key
    paths: list[str]


class Dependency(Shape):
    """`key` waits for `upstream_key`."""

    task: Ulid
    key: Key
    upstream: Ulid
    upstream_key: Key
    condition: Condition


class Decision(Shape):
    """A decision that a blueprint asks for. `visit` is its number; `sentence` says why, `about` in
    which stage; `answers` may be given, `meanings` says what each does; `resume` is the stage at
    which a plain yes goes on. `patches` are there where a policy asks for it: those to approve;
    `rules` where it has refused one: those that keep it out, and that `relax` releases."""

    visit: Positive
    cause: str
    sentence: str
    about: str
    answers: list[str]
    resume: str | None
    meanings: dict[str, str]
    patches: list[Ulid] | None = None
    rules: list[str] | None = None


class Question(Shape):
    """A worker's open question; `attempt` is its id. With `decision`, which is there only then, it
    is no worker's: somebody has to decide (`orch answer --decide`); its `message` has the beginning
    of what there is to know, and in `task show` the whole, with a `payload`."""

    task: Ulid
    key: Key
    attempt: Ulid
    number: Positive
    thread: Ulid
    asked_by: Author
    message: Message
    deadline: Time | None
    decision: Decision | None = None


class Change(Event):
    """An event about a task or an attempt, with the task's key."""

    key: Key


class StatusRow(Standing):
    """A task with its newest attempt and who holds it; `worker` is who does, or has done, that.
    Where it goes by a blueprint, `stage` is that of the live visit, or of the last one, and
    `visits` how many there were."""

    attempt: Attempt | None
    holder: Name | None
    progress: Annotated[int, Field(ge=0, le=100)] | None
    worker: Name | None
    stage: str | None = None
    visits: Count | None = None
