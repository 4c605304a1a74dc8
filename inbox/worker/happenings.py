"""What a worker tells its caller while it works, and the sum of it at the end."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple


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
