"""Runs, tasks, dependencies and attempts as frozen values, and their one shape in JSON."""

import json
from typing import Any, NamedTuple

from inbox_orch.shared.clock import rfc3339

_MOST_OF_A_NAME = 40
DECISION = "decision"
"""The stage of an attempt whose blueprint asks somebody to decide."""


class Run(NamedTuple):
    """A set of tasks for one repository. Times are wall-clock milliseconds. `patches`: whether its
    patches are judged and recorded, 0 for one that was opened before that was done."""

    id: str
    name: str
    title: str
    state: str
    leader: str
    repository: str | None
    repository_identity: str | None
    base_ref: str | None
    base_commit: str | None
    worktree_root: str | None
    on_failure: str
    max_parallel: int | None
    config: str
    created_at: int
    closed_at: int | None
    cancelled_at: int | None
    patches: int = 0

    @property
    def mark(self) -> str:
        """The ref that keeps what it begins at, and tells whose run it is."""
        return f"refs/orch/run/{self.id}"

    @property
    def refs(self) -> tuple[str, str]:
        """Refs that are of this run alone: its mark, and what those of its branches begin with."""
        return self.mark, f"refs/heads/orch/{self.name}/"

    def branch_of(self, key: str, number: int) -> str:
        """The branch of an attempt: the `number`th at the task with this key."""
        return f"orch/{self.name[:_MOST_OF_A_NAME]}/t/{key}/{number}"

    def folder_of(self, key: str, number: int) -> str:
        """The folder of that attempt, below the root of the worktrees."""
        return f"{self.name}/{key}-{number}"

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "title": self.title,
            "state": self.state,
            "leader": self.leader,
            "repository": self.repository,
            "base_ref": self.base_ref,
            "base_commit": self.base_commit,
            "worktree_root": self.worktree_root,
            "on_failure": self.on_failure,
            "max_parallel": self.max_parallel,
            "created_at": rfc3339(self.created_at),
            "closed_at": rfc3339(self.closed_at),
            "cancelled_at": rfc3339(self.cancelled_at),
        }


class Limits(NamedTuple):
    """For how many seconds an attempt may wait for a worker, be worked on (less the time blocked),
    be silent, wait for an answer, and each check may run; None: for ever."""

    queue_seconds: float | None = None
    run_seconds: float | None = None
    silent_seconds: float | None = None
    block_seconds: float | None = None
    check_seconds: float | None = None

    def as_json(self) -> dict[str, float | None]:
        return self._asdict()


class Task(NamedTuple):
    """One piece of work of a run. `next_base` is where its next attempt starts instead of at the
    computed base; `result_schema` the text of the JSON Schema that its result has to satisfy;
    `harvest` whether what its workers leave uncommitted is committed for them, None where it does
    not say; `blueprint` the id of the one that its attempts go by; `policy` what it forbids beyond
    its run, as JSON; `hands_in` is `text` where its workers have no worktree, and what they change
    stands in their result."""

    id: str
    number: int
    run_id: str
    key: str
    title: str
    body: str
    kind: str
    mailbox: str
    state: str
    priority: int
    worktree: bool
    allow_empty: bool
    checks: tuple[str, ...]
    limits: Limits
    max_attempts: int
    max_infra_attempts: int
    attempts: int
    work_failures: int
    infra_failures: int
    not_before: int | None
    accepted_attempt: str | None
    accepted_head: str | None
    next_base: str | None
    next_base_source: str | None
    reason: str | None
    created_at: int
    updated_at: int
    result_schema: str | None = None
    harvest: bool | None = None
    blueprint: str | None = None
    policy: str | None = None
    hands_in: str | None = None

    @property
    def text(self) -> str:
        """The title, and below it the body where there is one."""
        return f"{self.title}\n\n{self.body}" if self.body else self.title

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "key": self.key,
            "title": self.title,
            "kind": self.kind,
            "mailbox": self.mailbox,
            "state": self.state,
            "priority": self.priority,
            "worktree": self.worktree,
            "allow_empty": self.allow_empty,
            "checks": list(self.checks),
            "limits": self.limits.as_json(),
            "attempts": self.attempts,
            "max_attempts": self.max_attempts,
            "max_infra_attempts": self.max_infra_attempts,
            "work_failures": self.work_failures,
            "infra_failures": self.infra_failures,
            "not_before": rfc3339(self.not_before),
            "accepted_attempt": self.accepted_attempt,
            "accepted_head": self.accepted_head,
            "next_base": self.next_base,
            "next_base_source": self.next_base_source,
            "reason": self.reason,
            "created_at": rfc3339(self.created_at),
            "updated_at": rfc3339(self.updated_at),
            **self.asked_of_the_result,
            **({} if self.harvest is None else {"harvest": self.harvest}),
            **({} if self.blueprint is None else {"blueprint": self.blueprint}),
            **({} if self.policy is None else {"policy": json.loads(self.policy)}),
            **({} if self.hands_in is None else {"hands_in": self.hands_in}),
        }

    @property
    def asked_of_the_result(self) -> dict[str, Any]:
        """The schema, where there is one, as JSON."""
        return (
            {} if self.result_schema is None else {"result_schema": json.loads(self.result_schema)}
        )


class Dependency(NamedTuple):
    """`task_id` waits for `upstream_id` under a condition: success, finished or failed."""

    task_id: str
    upstream_id: str
    condition: str


class Conflict(NamedTuple):
    """What accepted work did not merge with: the commit that was integrated before it, and the
    paths in which they conflict."""

    onto: str
    paths: tuple[str, ...]

    def column(self) -> str:
        """The column `conflict` of an attempt."""
        return json.dumps(self.as_json(), ensure_ascii=False)

    def as_json(self) -> dict[str, Any]:
        return {"onto": self.onto, "paths": list(self.paths)}


class Attempt(NamedTuple):
    """One try at a task: one thread, and for a code task one branch and one worktree.

    `clock` is the one that ran out; `goes_back`: it was reassigned, so that its end counts
    nothing and its task is pending again; `conflict` what the attempt did not merge with when it
    was integrated; `removed_at` when clean-up took the worktree away, and `salvage_commit` what
    was kept of it then. `stage` is that of its live visit, or of its last one, None without a
    blueprint; `thread_id` and `mailbox` are those of its live visit, or of the last that had some.
    """

    id: str
    run_id: str
    task_id: str
    number: int
    state: str
    ending_as: str | None
    mailbox: str
    thread_id: str | None
    branch: str | None
    worktree_path: str | None
    base_ref: str | None
    base_commit: str | None
    base_source: str | None
    dirty_paths: str | None
    head_commit: str | None
    commits_ahead: int | None
    reason: str | None
    details: str | None
    fatal: bool
    clock: str | None
    goes_back: bool
    conflict: str | None
    salvage_commit: str | None
    created_at: int
    updated_at: int
    ended_at: int | None
    removed_at: int | None
    stage: str | None = None

    @property
    def staged(self) -> bool:
        """Whether it goes by a blueprint, so that its visits decide what becomes of it."""
        return self.stage is not None

    @property
    def deciding(self) -> bool:
        """Whether it waits for somebody's decision, so that it takes nobody's slot."""
        return self.stage == DECISION and self.state == "blocked"

    @property
    def found_conflict(self) -> Conflict | None:
        """What the column `conflict` says."""
        if self.conflict is None:
            return None
        stored = json.loads(self.conflict)
        return Conflict(stored["onto"], tuple(stored["paths"]))

    @property
    def live(self) -> bool:
        """Whether it still stands in the way of another attempt."""
        return self.ended_at is None

    @property
    def harvest(self) -> bool:
        """Whether what is left in its worktree is to be committed for the worker. That is written
        down when it is dispatched, and over once checks, which leave files, may run."""
        if self.details is None or self.worktree_path is None:
            return False
        return bool(json.loads(self.details).get("harvest"))

    @property
    def hands_in_text(self) -> bool:
        """Whether its worker changes nothing itself: what it hands in is brought in for it."""
        return self.details is not None and bool(json.loads(self.details).get("hands_in_text"))

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "run": self.run_id,
            "task": self.task_id,
            "number": self.number,
            "state": self.state,
            "ending_as": self.ending_as,
            "mailbox": self.mailbox,
            "thread": self.thread_id,
            "branch": self.branch,
            "worktree": self.worktree_path,
            "base_ref": self.base_ref,
            "base_commit": self.base_commit,
            "base_source": self.base_source,
            "dirty_paths": [] if self.dirty_paths is None else json.loads(self.dirty_paths),
            "head_commit": self.head_commit,
            "commits_ahead": self.commits_ahead,
            "reason": self.reason,
            "details": None if self.details is None else json.loads(self.details),
            "fatal": self.fatal,
            "clock": self.clock,
            "conflict": None if self.conflict is None else json.loads(self.conflict),
            "salvage_commit": self.salvage_commit,
            "created_at": rfc3339(self.created_at),
            "updated_at": rfc3339(self.updated_at),
            "ended_at": rfc3339(self.ended_at),
            "removed_at": rfc3339(self.removed_at),
            **({} if self.stage is None else {"stage": self.stage}),
        }
