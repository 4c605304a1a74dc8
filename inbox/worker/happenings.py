"""What a worker tells its caller while it works, and the sum of it at the end."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.processes.endings import Ending

from ..domain.model import Thread


class Happening(NamedTuple):
    """One line of the worker's stream.

    `type` is `claimed`, `started`, `waiting` (for the answer to a question) or `finished`;
    `facts` depend on it.
    """

    type: str
    thread: str
    facts: Mapping[str, Any]

    def as_json(self) -> dict[str, Any]:
        return {"type": self.type, "thread": self.thread, **self.facts}


class End(NamedTuple):
    """How the work on a thread has ended; `ending` is that of its last command, if one ran."""

    outcome: str
    by_command: bool
    ending: Ending | None


def claimed(thread: Thread, lease_seconds: float) -> Happening:
    """A thread has been taken."""
    facts = {
        "subject": thread.subject,
        "mailbox": thread.mailbox,
        "delivery": thread.deliveries,
        "max_deliveries": thread.max_deliveries,
        "lease_seconds": lease_seconds,
    }
    return Happening("claimed", thread.id, facts)


def started(thread: Thread, run: int, pid: int, worktree: str) -> Happening:
    """A command runs for it, for the `run`-th time."""
    return Happening("started", thread.id, {"run": run, "pid": pid, "worktree": worktree})


def waiting(thread: Thread, ending: Ending) -> Happening:
    """Its command has ended, and left a question open."""
    facts = {
        "question": None if thread.question is None else str(thread.question),
        "exit_status": ending.exit_status,
        "signal": ending.signal,
    }
    return Happening("waiting", thread.id, facts)


def finished(thread: Thread, end: End, runs: int, seconds: float) -> Happening:
    """The worker has done with it, after so many runs of its command and so many seconds."""
    ending = end.ending
    facts = {
        "outcome": end.outcome,
        "by_command": end.by_command,
        "exit_status": None if ending is None else ending.exit_status,
        "signal": None if ending is None else ending.signal,
        "timed_out": ending is not None and ending.timed_out is not None,
        "runs": runs,
        "seconds": seconds,
    }
    return Happening("finished", thread.id, facts)


class Summary:
    """Counts of what has happened."""

    def __init__(self) -> None:
        self.claimed = 0
        self.runs = 0
        self.outcomes: Counter[str] = Counter()

    def count(self, happening: Happening) -> None:
        """Take one happening into account."""
        self.claimed += happening.type == "claimed"
        self.runs += happening.type == "started"
        if happening.type == "finished":
            self.outcomes[happening.facts["outcome"]] += 1

    def as_json(self) -> dict[str, Any]:
        return {
            "claimed": self.claimed,
            "runs": self.runs,
            "finished": self.outcomes.total(),
            "outcomes": dict(sorted(self.outcomes.items())),
        }
