"""The `data` and the lines of the commands that read what tasks came to, and of those that change
tasks in place."""

from typing import Annotated, Literal

from pydantic import Field

from inbox_orch.inbox.schemas import Author, Count, Event, Name, Serial, Shape, Time

from .cleanup import AttemptRow
from .things import Commit, Key, Patch, Run, StandingState, Task


class TaskBrief(Shape):
    """A task in few words: how it stands, how many attempts it has had, and who holds it."""

    key: Key
    title: str
    standing: StandingState
    attempts: Count
    mailbox: Name
    holder: Name | None
    priority: int
    because: list[Key]
    updated_at: Time


class TaskList(Shape):
    """`task list`. `stale`: the database cannot be written here, so nothing was folded in."""

    run: str
    items: list[TaskBrief]
    truncated: bool
    next_cursor: None
    stale: bool


class TaskEdited(Shape):
    """`task edit`: the task as it is now, its text, and what is different."""

    task: Task
    body: str
    changed: list[str]
    replayed: bool = False


class TaskRemoved(Shape):
    """`task remove`: the task as it was, its text, and what it waited for."""

    task: Task
    body: str
    depends_on: list[Key]
    replayed: bool = False


class ChangedFile(Shape):
    """A file, and how many lines it gained and lost; null for a binary one."""

    path: str
    added: Count | None
    removed: Count | None


class Changed(Shape):
    """`diff`. `head` is null, and `worktree` says where, if what is compared stands in a worktree;
    the numbers are those of all files, also when `items` has only the first 1,000. `untracked`:
    files that git does not know of yet, and that are not among them. `patches` are there where a
    policy is in force, or they say more than the attempt does."""

    attempt: AttemptRow
    base: Commit
    head: Commit | None
    worktree: str | None
    items: list[ChangedFile]
    truncated: bool
    next_cursor: None
    changed_files: Count
    added_lines: Count
    removed_lines: Count
    untracked: list[str]
    patches: list[Patch] | None = None


class LogLine(Shape):
    """A text that an attempt has left. `name` is the kind of a message, the stream of an output,
    how a check or the set-up ended; `by` who wrote it, as far as that is known. `bytes` is its
    whole length; `truncated`: its beginning is left out; `missing`: it was pruned. `stage` is there
    where the attempt goes by a blueprint: the visit, as in `fix (2)`."""

    type: Literal["log"]
    what: Literal["setup", "message", "output", "check"]
    name: str
    by: Author | None
    at: Time
    text: str
    bytes: Count
    truncated: bool
    missing: bool
    stage: str | None = None


class Logged(Shape):
    """The last line of `logs`: the attempt as it was then, and how many texts were printed."""

    attempt: AttemptRow
    logs: Count


class RunEvent(Event):
    """An event of a run, with the key of the task that it is about."""

    type: Literal["event"]
    key: Key | None


class Traced(Shape):
    """`trace`. `trace`: its id, 32 hexadecimal digits; `spans`: how many were exported."""

    run: Run
    trace: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]
    spans: Count


class EventsTold(Shape):
    """The last line of `events`: the run, and the cursor to go on from."""

    run: Run
    next_cursor: Serial
