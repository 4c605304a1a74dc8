"""A council in a project of its own, on a clock that the test turns, and its reviewers' side."""

import json
from pathlib import Path
from typing import Any

from inbox_orch.inbox import Bus
from inbox_orch.orch.council import take_in, views
from inbox_orch.orch.council.ask import CouncilSpec, check_asked
from inbox_orch.orch.council.count import Counted
from inbox_orch.orch.council.views import SeatView
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.model import Run
from inbox_orch.shared.store.artifacts import Stored
from support.buses import Office

BRIEF = """\
# Where the job queue keeps its state

## S1 Today
One JSON file, rewritten at every change.

## S2 Proposal
SQLite in WAL mode, one file a project.

## S3 Limits
Eight workers on one machine; the folder may lie on a network share.
"""
REVIEWERS = ("ada", "bob", "eve")
DECISION = "D1=Which store?:sqlite|files"


def recommendation(name: str, title: str, *keywords: str, **options: Any) -> dict[str, Any]:
    """One recommendation of a reply."""
    return {
        "id": name,
        "title": title,
        "proposal": f"{title}, so that nothing is lost when two write at once.",
        "keywords": list(keywords or (name, "sqlite", "durability")),
        "stance": "do",
        **options,
    }


WAL = recommendation("wal", "Enable WAL mode", "wal", "sqlite", "journal mode")
BACKUP = recommendation(
    "backup", "Back the file up online", "online backup", "sqlite", "vacuum into"
)
QUEUE = recommendation("lock", "Queue writers at a lock file", "flock", "writer queue", "fairness")


class Chamber:
    """A council with three reviewers; each has a bus of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.office = Office(folder)
        self.clock = self.office.clock
        self.scheduler = self.leader()
        self.leader_bus = self.office.bus("leader")
        self._buses: dict[str, Bus] = {}

    def close(self) -> None:
        """Close every connection."""
        self.office.close()

    def leader(self, caller: str | None = None) -> Scheduler:
        """A leader on a connection of its own."""
        return Scheduler(self.office.bus(), caller)

    # -- the leader --------------------------------------------------------------------------

    def start(self, **options: Any) -> Run:
        """Open a council."""
        key = options.pop("key", None)
        asked = check_asked(CouncilSpec(**{"brief": BRIEF, "reviewers": REVIEWERS, **options}))
        answer = self.scheduler.start_council(asked, key=key)
        return self.scheduler.council(answer.data["council"]["id"])

    def tally(self, run: Run, **options: Any) -> Counted:
        """What it comes to now."""
        return self.scheduler.tally_of(run, **options)

    def seats(self, run: Run) -> dict[str, SeatView]:
        """The seats of the first round, as they stand now."""
        take_in.refresh(self.scheduler.desk, run)
        return {s.seat.reviewer: s for s in views.view(self.scheduler.desk, run).seats_of(1)}

    def states(self, run: Run) -> dict[str, str]:
        """How every seat of the first round stands."""
        return {name: seat.stands.state for name, seat in self.seats(run).items()}

    def verified(self) -> None:
        """The events fold to what is stored, threads and councils."""
        for found in (self.scheduler.doctor(verify=True), self.leader_bus.doctor(verify=True)):
            assert found.problems == 0, [c for c in found.checks if c.status == "problem"]

    # -- the reviewers -----------------------------------------------------------------------

    def bus(self, reviewer: str) -> Bus:
        """The reviewer's own."""
        if reviewer not in self._buses:
            self._buses[reviewer] = self.office.bus(reviewer)
        return self._buses[reviewer]

    def claim(self, reviewer: str, **options: Any) -> tuple[str, str]:
        """Take the next request; (thread, token)."""
        claimed = self.bus(reviewer).claim(**options)
        assert claimed.lease.token is not None
        return claimed.thread.id, claimed.lease.token

    def asked(self, reviewer: str) -> str:
        """The text of the reviewer's newest request."""
        thread = self.bus(reviewer).list(mailboxes=(reviewer,), limit=1000).items[-1]
        return str(self.bus(reviewer).show(thread.id, full=True).messages[0].body)

    def reply(self, run: Run, *recommendations: dict[str, Any], **changes: Any) -> dict[str, Any]:
        """A whole reply to this council."""
        council = views.view(self.scheduler.desk, run).council
        value = {
            "schema": "orch.council.reply/1",
            "council_id": run.id,
            "round": 1,
            "brief_sha256": council.brief_sha256,
            "checked": ["S1", "S2"],
            "recommendations": list(recommendations or (WAL,)),
            "verdict": "approve_with_changes",
        }
        return {**value, **changes}

    def answer(self, run: Run, reviewer: str, *recommendations: Any, **changes: Any) -> str:
        """Claim and hand in a whole reply as the payload; the thread."""
        return self.hand_in(
            reviewer, payload=json.dumps(self.reply(run, *recommendations, **changes))
        )

    def hand_in(self, reviewer: str, **content: Any) -> str:
        """Claim and finish with this; the thread."""
        thread, token = self.claim(reviewer)
        self.bus(reviewer).done(thread, token, **content)
        return thread

    def fail(self, reviewer: str, body: str, **files: str | bytes) -> str:
        """Claim and fail, leaving these artifacts behind; the thread."""
        thread, token = self.claim(reviewer)
        self.bus(reviewer).fail(thread, token, body=body, files=self.stored(reviewer, **files))
        return thread

    def stored(self, reviewer: str, **files: str | bytes) -> tuple[Stored, ...]:
        """Files copied in by a reviewer."""
        store = self.bus(reviewer).artifacts
        return tuple(
            store.add_bytes(name, content if isinstance(content, bytes) else content.encode())
            for name, content in files.items()
        )
