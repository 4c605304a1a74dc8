"""What happens in the demonstration, and what must hold at its end."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError

from ..leader.scheduler import Scheduler
from ..views.status import Status
from .workshop import SHORT_LEASE_SECONDS, TRY_AGAIN, Workshop

TASKS = (
    ("lexer", "Write the lexer", "workers", ()),
    ("parser", "Write the parser", "workers", ()),
    ("manual", "Write the manual", "manuals", ()),
    ("program", "Put it together", "workers", ("lexer", "parser")),
    ("report", "Report", "workers", ("program", "manual")),
)
ANSWER = "semicolon"
MOST_SECONDS = 180.0

Tell = Callable[[str], None]


class Expectation(NamedTuple):
    """Something that must hold at the end."""

    text: str
    held: bool


class Ending(NamedTuple):
    """How the demonstration ended."""

    expectations: tuple[Expectation, ...]
    commits: tuple[str, ...]
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
            "commits": list(self.commits),
            "seconds": round(self.seconds, 3),
            "folder": self.folder,
        }


class Story:
    """A leader's run of five tasks with two workers, one of whom is killed."""

    def __init__(self, workshop: Workshop, tell: Tell) -> None:
        self._shop = workshop
        self._tell = tell
        self._started = time.monotonic()

    def play(self) -> Ending:
        """From an empty repository to the end of the run."""
        self._build()
        self._shop.start_worker("ada", "workers", slots=2)
        # He will be killed, and the demo is not to wait long until his lease is over.
        self._shop.start_worker("bob", "manuals", lease_seconds=SHORT_LEASE_SECONDS)
        self._tell("Started two workers: ada (2 slots) on `workers`, bob on `manuals`.")
        self._dispatch()
        self._kill_bob()
        self._lead()
        for name in ("ada", "eve"):
            self._shop.stop_worker(name)
        untouched = self._untouched()
        return self._end(untouched, self._integrate())

    def status(self) -> Status:
        """How the run stands, for the table at the end."""
        with self._shop.open_bus("leader") as bus:
            scheduler = Scheduler(bus)
            return scheduler.status(scheduler.run(None))

    # -- acts --------------------------------------------------------------------------------

    def _build(self) -> None:
        opened = self._shop.orch("run", "init", "--title", "Write a small program")
        self._tell(f"orch run init: opened run {opened['run']['name']}")
        for key, title, mailbox, upstream in TASKS:
            waits_for = [word for name in upstream for word in ("--depends-on", name)]
            kind = ["--no-worktree"] if key == "report" else []
            self._shop.orch(
                *("task", "add", "--task", key, "--title", title, "--to", mailbox),
                *waits_for,
                *kind,
            )
            after = f", after {' and '.join(upstream)}" if upstream else ""
            self._tell(f"orch task add: {key}{after}")

    def _dispatch(self) -> None:
        for item in self._shop.orch("dispatch")["items"]:
            where = "without a worktree"
            if item["base_commit"] is not None:
                where = f"in a worktree, from {item['base_commit'][:8]} ({item['base_source']})"
            self._tell(f"orch dispatch: {item['key']}, attempt {item['number']}, {where}")

    def _kill_bob(self) -> None:
        """Wait until bob is in the middle of his work, then kill him with everything he runs."""
        with self._shop.open_bus("leader") as bus:
            for event in bus.watch(
                after="0", mailboxes=("manuals",), kinds=("thread_updated",), wait_seconds=60
            ):
                self._tell(f"bob has written half of the manual (event {event.seq}).")
                break
            else:
                raise InboxOrchError("internal", "bob has not begun within 60 s", hint=TRY_AGAIN)
        self._shop.kill_worker("bob")
        self._tell(
            f"kill -9: bob and his command are dead; his lease runs out in {SHORT_LEASE_SECONDS} s."
        )
        self._shop.start_worker("eve", "manuals")
        self._tell("Started a third worker, eve, on `manuals`.")

    def _lead(self) -> None:
        """The leader's loop: wait, answer, dispatch; until the run has ended."""
        while True:
            if time.monotonic() - self._started > MOST_SECONDS:
                raise InboxOrchError(
                    "internal", f"not finished within {MOST_SECONDS:g} s", hint=TRY_AGAIN
                )
            waited = self._shop.orch("wait", "--wait", self._pause(), accepted=(0, 8))
            for change in waited.get("items", ()):
                self._tell_change(change)
            for question in waited.get("questions", ()):
                self._answer(question)
            if waited["outcome"] != "running":
                self._tell(f"orch wait: the run has {waited['outcome']}.")
                return
            self._dispatch()

    def _pause(self) -> str:
        """Seconds to wait for a change: no longer than until the next back-off is over."""
        status = self._shop.orch("status")
        until = [row["until"] for row in status["items"] if row["until"] is not None]
        if not until:
            return "20"
        left = datetime.fromisoformat(min(until)).timestamp() - time.time()
        return f"{max(0.0, left) + 0.01:.3f}"

    def _tell_change(self, change: dict[str, Any]) -> None:
        if change["kind"] in ("attempt_submitted", "attempt_succeeded"):
            return  # the task's own change says it
        what = change["kind"].replace("_", " ", 1)
        reason = change["data"].get("reason")
        self._tell(f"orch wait: {change['key']}: {what}" + (f": {reason}" if reason else ""))

    def _answer(self, question: dict[str, Any]) -> None:
        asked = question["message"]
        options = " or ".join(asked["options"])
        self._tell(f"{question['asked_by']} asks on {question['key']}: {asked['body']} {options}?")
        self._shop.orch("answer", question["key"], "--body", ANSWER)
        self._tell(f"orch answer {question['key']}: {ANSWER}")

    def _untouched(self) -> bool:
        """Whether the working tree is clean, and its branch where it began."""
        return (
            self._shop.git("status", "--porcelain") == ""
            and self._shop.git("rev-list", "--count", "main") == "1"
        )

    def _integrate(self) -> bool:
        """Bring the work together on `main`; whether all of it is in the working tree."""
        done = self._shop.orch("integrate", "--onto", "main")
        merged = [item["key"] for item in done["items"] if item["state"] == "merged"]
        tip = self._shop.git("rev-parse", "--short=8", "main")
        self._tell(f"orch integrate --onto main: {', '.join(merged)}; main is at {tip}.")
        files = self._shop.git("ls-files").split("\n")
        return (
            all(f"{key}.txt" in files for key, *_ in TASKS[:-1])
            and self._shop.git("status", "--porcelain") == ""
        )

    # -- the end -----------------------------------------------------------------------------

    def _end(self, untouched: bool, integrated: bool) -> Ending:
        """What has come of it: whether the working tree was `untouched` until the end, and has
        all of the work since."""
        status = self._shop.orch("status")
        by_key = {row["key"]: row for row in status["items"]}
        commits = self._shop.git("log", "--oneline", "--graph", "--all", "--exclude=refs/orch/*")
        return Ending(
            (
                *self._expectations(status["outcome"], by_key),
                Expectation("the main working tree was untouched all the while", untouched),
                Expectation("main has the work of all tasks, and so has its tree", integrated),
                Expectation("the database folds from its events", self._shop.verified()),
            ),
            tuple(commits.split("\n")),
            time.monotonic() - self._started,
            str(self._shop.folder),
        )

    def _expectations(self, outcome: str, rows: dict[str, Any]) -> list[Expectation]:
        manual = self._shop.inbox("show", rows["manual"]["attempt"]["thread"])["thread"]
        expired = self._expired_leases()
        return [
            Expectation("the run succeeded", outcome == "succeeded"),
            Expectation(
                "every task succeeded", all(r["state"] == "succeeded" for r in rows.values())
            ),
            Expectation(
                "the lexer has the leader's answer",
                self._content(rows, "lexer", "lexer.txt") == f'separator = "{ANSWER}"',
            ),
            Expectation("the parser failed once and was retried", rows["parser"]["attempts"] == 2),
            Expectation("bob's lease ran out", expired == ["bob"]),
            Expectation(
                "eve took over the same thread and bob's worktree as he left it",
                rows["manual"]["attempts"] == 1
                and manual["deliveries"] == 2
                and self._content(rows, "manual", "manual.txt") == "first half\nsecond half",
            ),
            Expectation(
                "the program was built on the merged work of lexer and parser",
                rows["program"]["attempt"]["base_source"] == "merge"
                and self._content(rows, "program", "program.txt").endswith("parser"),
            ),
        ]

    def _content(self, rows: dict[str, Any], key: str, name: str) -> str:
        return self._shop.git("show", f"{rows[key]['accepted_head']}:{name}")

    def _expired_leases(self) -> list[str]:
        with self._shop.open_bus("leader") as bus:
            expiries = bus.watch(after="0", kinds=("lease_expired",), wait_seconds=0)
            return [event.data["lease_holder"] for event in expiries]
