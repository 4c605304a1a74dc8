"""A council from start to end, with three reviewers that are shell scripts, one of them late."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from .story import Expectation, Tell
from .workshop import TRY_AGAIN, Workshop

BRIEF = """\
# Where the job queue keeps its state

## S1 Today
One JSON file, rewritten at every change. Two workers at once lose jobs, and a worker that dies
keeps its job for ever.

## S2 Proposal
SQLite in WAL mode, one file a project.
"""
DECISION = "D1=Where is the state kept?:sqlite|files"
REVIEWERS = ("architecture-reviewer", "implementation-reviewer", "risk-reviewer")
DEADLINE_SECONDS = 8
MOST_SECONDS = 180


class Ending(NamedTuple):
    """How the demonstration ended."""

    expectations: tuple[Expectation, ...]
    report: str
    seconds: float
    folder: str

    @property
    def held(self) -> bool:
        """Whether everything held."""
        return all(e.held for e in self.expectations)

    def as_json(self) -> dict[str, Any]:
        return {
            "held": self.held,
            "expectations": [e._asdict() for e in self.expectations],
            "report": self.report,
            "seconds": round(self.seconds, 3),
            "folder": self.folder,
        }


class Sitting:
    """The leader's side of a council."""

    def __init__(self, workshop: Workshop, tell: Tell) -> None:
        self._shop = workshop
        self._tell = tell
        self._started = time.monotonic()

    def play(self) -> Ending:
        """From the brief to the report."""
        self._open()
        first = self._close()
        last = self._hear_the_late_one()
        report = self._shop.orch("council", "report")
        self._tell("orch council report: stored as an artifact of the run.")
        for name in REVIEWERS:
            self._shop.stop_worker(name)
        return Ending(
            tuple(self._expectations(first, last, report)),
            report["text"],
            time.monotonic() - self._started,
            str(self._shop.folder),
        )

    def _open(self) -> None:
        self._shop.inbox("init")
        brief = self._shop.folder / "brief.md"
        brief.write_text(BRIEF)
        for name in REVIEWERS:
            self._shop.start_worker(name, script="reviewer.sh")
        self._tell("Started three reviewers, each `inbox work -- sh reviewer.sh`.")
        self._wait_for("the reviewers to be ready", self._all_are_there)
        deadline = ("--deadline", str(DEADLINE_SECONDS))
        asked = ("--brief-file", str(brief), "--decision", DECISION, *deadline)
        started = self._shop.orch("council", "start", *asked)
        self._tell(f"orch council start: {started['council']['name']}, 3 seats, quorum 2.")

    def _all_are_there(self) -> bool:
        """Whether every worker reads its mailbox, so that none of them is late by its start."""
        with self._shop.open_bus("leader") as bus:
            return all(bus.is_read(name) for name in REVIEWERS)

    def _close(self) -> dict[str, Any]:
        self._tell("The risk reviewer takes its time; the round does not wait for ever.")
        waited = self._shop.orch("council", "wait", "--wait", str(MOST_SECONDS), accepted=(0, 11))
        council = waited["council"]
        self._tell(f"orch council wait: {council['status']}, {council['valid']} of 3 valid.")
        return dict(self._shop.orch("council", "tally", accepted=(0, 11))["tally"])

    def _hear_the_late_one(self) -> dict[str, Any]:
        (self._shop.folder / "go").touch()
        self._wait_for("the late reply", self._is_late)
        tally = dict(self._shop.orch("council", "tally")["tally"])
        self._tell("The third reply came late: revision 2, and the first one stays as it was.")
        return tally

    def _is_late(self) -> bool:
        seats = self._shop.orch("council", "show")["seats"]
        return any(seat["state"] == "late" for seat in seats)

    def _wait_for(self, what: str, look: Callable[[], bool]) -> None:
        end = time.monotonic() + MOST_SECONDS
        while not look():
            if time.monotonic() > end:
                raise InboxOrchError("internal", f"waited in vain for {what}", hint=TRY_AGAIN)
            with self._shop.open_bus("leader") as bus:
                # Sleeps until something happens, half a second at most.
                next(iter(bus.watch(wait_seconds=0.5)), None)

    def _expectations(
        self, first: dict[str, Any], last: dict[str, Any], report: dict[str, Any]
    ) -> list[Expectation]:
        buckets = {group["title"]: group["bucket"] for group in last["groups"]}
        earlier = ("council", "report", "--format", "json", "--revision", "1")
        again = self._shop.orch(*earlier, accepted=(0, 11))
        return [
            Expectation(
                "without the third seat nothing was a consensus",
                first["status"] == "degraded"
                and {g["bucket"] for g in first["groups"]} == {"majority"},
            ),
            Expectation("the late reply counts", last["status"] == "complete"),
            Expectation("leases with tokens are a consensus", "consensus" in buckets.values()),
            Expectation(
                "WAL and its opposite stay apart, and are contested",
                any(group["contested"] for group in last["groups"]) and bool(last["contested"]),
            ),
            Expectation(
                "the decision is counted: sqlite 2, files 1",
                {c: len(w) for c, w in last["decisions"][0]["choices"].items()}
                == {"sqlite": 2, "files": 1},
            ),
            Expectation("the report is stored", report["artifact"] is not None),
            Expectation(
                "the first revision comes to the same bytes again",
                first["digest"] in again["text"],
            ),
            Expectation("the database folds from its events", self._shop.verified()),
        ]
