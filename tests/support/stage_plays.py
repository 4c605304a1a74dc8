"""Whole plays of attempts that go by a blueprint: leaders and workers in processes of their own, a
pass each, any of which may be killed before any step; and what must hold at the end.

A worker does what the script has for the visit that it was sent, however often it is sent.
"""

import json
import os
import random
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from inbox_orch.inbox import Bus
from inbox_orch.orch.attempts import rows as attempts
from inbox_orch.orch.attempts import visit_rows as visits
from inbox_orch.orch.attempts.visits import OPERATOR
from inbox_orch.orch.journal import rows as journal_rows
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs import task_rows as tasks
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.model import Run
from inbox_orch.orch.runs.role import Role
from inbox_orch.orch.stages.model import Stage
from inbox_orch.shared.errors import InboxOrchError
from support import killing
from support.clocks import SteppingClock
from support.runs import Site, git, lock_files
from support.scenes import Scene, killing_git
from support.stages import add, agent, gates

BUILDERS, REVIEWERS = "builders", "reviewers"
WORKERS = ((BUILDERS, "w1"), (REVIEWERS, "rev"), (OPERATOR, "boss"))
LEASE_SECONDS = 60.0
MOST_PASSES = 200


class Line(NamedTuple):
    """One visit as it has to come: its stage, how it ends, and what its worker does: the content of
    a.txt (None: as it is), and what it hands in; or that it hangs, and hands nothing in."""

    stage: str
    ends: str
    content: str | None = None
    body: str = "done"
    hangs: bool = False


def verdict(word: str) -> str:
    """What a reviewer hands in."""
    return json.dumps({"verdict": word, "summary": f"so: {word}", "findings": [{"text": "x"}]})


def answer(word: str, hint: str = "") -> str:
    """What is handed in on the thread of a decision."""
    return json.dumps({"answer": word, "hint": hint})


class Script(NamedTuple):
    """A blueprint, and the way that one attempt takes through it; `policy` is that of its run."""

    stages: Sequence[Stage]
    lines: Sequence[Line]
    gates: Sequence[Mapping[str, Any]] = ()
    policy: Mapping[str, Any] | None = None


_LOOKS = (
    {"name": "lint", "run": "! grep -s ugly a.txt"},
    {"name": "tests", "run": "echo >>.cache; ! grep -s wrong a.txt"},
)
STANDARD = Script(
    (
        Stage("gather", "deterministic", action="build_context_pack", on_success="implement"),
        agent("implement", max_visits=3, on_success="lint", on_failure="implement"),
        gates("lint", action="run_linters", on_success="test", on_failure="fix_lint"),
        agent("fix_lint", max_visits=2, on_success="lint"),
        gates("test", action="run_tests", on_success="review", on_failure="fix_tests"),
        agent("fix_tests", max_visits=2, on_success="lint"),
        agent(
            "review",
            role="frontier_reviewer",
            writes=False,
            reviews=True,
            max_visits=2,
            on_failure="implement",
        ),
    ),
    (
        Line("gather", "succeeded"),
        Line("implement", "succeeded", "ugly one\nugly two\nwrong\n"),
        Line("lint", "failed"),
        Line("fix_lint", "succeeded", "ugly two\nwrong\n"),
        Line("lint", "failed"),
        Line("fix_lint", "succeeded", "wrong\n"),
        Line("lint", "succeeded"),
        Line("test", "failed"),
        Line("fix_tests", "succeeded", "right\n"),
        Line("lint", "succeeded"),
        Line("test", "succeeded"),
        Line("review", "request_changes", "a reviewer must not\n", verdict("request_changes")),
        Line("implement", "succeeded", "right, and more\n"),
        Line("lint", "succeeded"),
        Line("test", "succeeded"),
        Line("review", "approve", None, verdict("approve")),
    ),
    _LOOKS,
)
QUICK = Script(
    (
        agent("implement", on_success="check"),
        gates("check", on_failure="fix"),
        agent("fix", max_visits=1, on_success="check"),
    ),
    (
        Line("implement", "succeeded", "ugly\nwrong\n"),
        Line("check", "failed"),
        Line("fix", "succeeded", "wrong\n"),
        Line("check", "failed"),
        Line("decision", "continue", None, answer("continue", "look again")),
        Line("fix", "succeeded", "right\n"),
        Line("check", "succeeded"),
    ),
    _LOOKS,
)
STUDY = Script(
    (
        agent("study", toolset="docs", max_visits=3, on_success="review", on_failure="study"),
        agent(
            "review",
            role="frontier_reviewer",
            writes=False,
            reviews=True,
            max_visits=2,
            on_failure="study",
        ),
    ),
    (
        Line("study", "failed"),
        Line("study", "succeeded", "half of it\n"),
        Line("review", "request_changes", None, verdict("request_changes")),
        Line("study", "succeeded", "all of it\n"),
        Line("review", "approve", None, verdict("approve")),
    ),
)
SLOW_SECONDS = 30.0
SLOW = Script(
    (agent("write", timeout_seconds=SLOW_SECONDS, max_visits=3, on_failure="write"),),
    (
        Line("write", "failed", "half of it\n", hangs=True),
        Line("write", "succeeded", "all of it\n"),
    ),
)
HELD = Script(
    (
        agent("write", max_visits=3, on_success="form", on_failure="write"),
        gates("form", on_success="more", on_failure="write"),
        agent("more", max_visits=2, on_failure="write"),
    ),
    (
        Line("write", "failed", "1\n2\n3\n4\n5\n6\n7\n"),
        Line("write", "succeeded", "one\n"),
        Line("form", "succeeded", "one\nformed\n"),
        Line("more", "succeeded", "one\nformed\ntwo\n"),
        Line("decision", "refuse", None, answer("refuse", "not so")),
        Line("write", "succeeded", "other\n"),
        Line("form", "succeeded", "other\nformed\n"),
        Line("more", "succeeded", "other\nformed\ntwo\n"),
        Line("decision", "approve", None, answer("approve")),
    ),
    ({"name": "form", "run": "grep -qs formed a.txt || echo formed >>a.txt", "writes": "keep"},),
    {"max_lines": 6, "ask_paths": ["a.txt"]},
)
SCRIPTS = {"standard": STANDARD, "quick": QUICK, "study": STUDY, "slow": SLOW, "held": HELD}
CODE_INSTEAD = {("study", 2): "code.py"}
"""Where a worker writes another file than a.txt: by script and visit."""


class Play(Scene):
    """One task that goes by the blueprint of a script."""

    def __init__(
        self, folder: Path, name: str, looks: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        super().__init__(folder)
        self.name, self.script = name, SCRIPTS[name]
        self.gates = self.script.gates if looks is None else looks
        self.reasons: list[str | None] = []
        self.ahead_seconds = 0.0

    def make(self) -> None:
        """A run with one task, not dispatched."""
        site = Site(self.folder)
        (site.repository / ".gitignore").write_text(".inbox/\n.cache\n")
        git(site.repository, "add", "--all")
        git(site.repository, "commit", "--quiet", "--message", "Ignore")
        config = Config(
            gates=tuple(self.gates),
            roles={"frontier_reviewer": Role(REVIEWERS)},
            finds=(),
            policy=self.script.policy,
        )
        run = site.open_run(config=config)
        add(site, run, "a", *self.script.stages, mailbox=BUILDERS)
        site.close()

    # -- passes ------------------------------------------------------------------------------

    def bus(self, name: str | None = None) -> Bus:
        """The bus, as late as this play is."""
        clock = SteppingClock(self.ahead_seconds)
        return Bus.open(str(self.database), agent=name, clock=clock)

    def lead(self) -> None:
        """What a leader does in one look."""
        with self.bus() as bus:
            scheduler = Scheduler(bus)
            run = scheduler.run(None)
            scheduler.dispatch(run)
            scheduler.reconcile(run)

    @property
    def hanging(self) -> Path:
        """A file with the lease of the worker that hangs, if one does."""
        return self.folder / "hanging"

    def work(self) -> None:
        """What each worker does who has something to do."""
        for mailbox, name in WORKERS:
            with self.bus(name) as bus:
                if mailbox == BUILDERS and self.hanging.exists():
                    if self._hangs_on(bus):
                        continue
                    self._wake_up(bus)
                try:
                    claimed = bus.claim(mailboxes=[mailbox], lease_seconds=LEASE_SECONDS)
                except InboxOrchError as error:
                    if error.code != "nothing_available":
                        raise
                    continue
                given = json.loads(claimed.messages[0].payload or "{}")
                # A packet has the visits before it.
                number = len(given["visits"]) + 1 if mailbox == OPERATOR else int(given["visit"])
                body = self._do(number, given.get("worktree"))
                if self.script.lines[number - 2].hangs:
                    self.hanging.write_text(f"{claimed.thread.id} {claimed.lease.token}")
                    continue
                bus.done(claimed.thread.id, str(claimed.lease.token), body=body)

    def _hangs_on(self, bus: Bus) -> bool:
        """Whether the one that hangs has its lease still, which is renewed all the while."""
        try:
            bus.renew(*self.hanging.read_text().split(" "))
        except InboxOrchError as error:
            if error.code not in ("cancelled", "lease_lost"):
                raise
            return False
        return True

    def _wake_up(self, bus: Bus) -> None:
        """One that hung hands in what is not wanted any more."""
        thread, _, token = self.hanging.read_text().partition(" ")
        try:
            bus.done(thread, token, body="at last")
        except InboxOrchError as error:
            if error.code not in ("cancelled", "lease_lost"):
                raise
        self.hanging.unlink()

    def _do(self, number: int, worktree: str | None) -> str:
        line = self.script.lines[number - 2]
        other = CODE_INSTEAD.get((self.name, number))
        if other is not None:
            Path(str(worktree), other).write_text("code\n")
        if line.content is not None:
            Path(str(worktree), "a.txt").write_text(line.content)
        return line.body

    def late(self) -> None:
        """Every lease of somebody who is gone has run out."""
        self.ahead_seconds += LEASE_SECONDS + 1

    # -- what is seen ------------------------------------------------------------------------

    def seen(self) -> Iterator[tuple[Scheduler, Run]]:
        with self.bus() as bus:
            scheduler = Scheduler(bus)
            yield scheduler, scheduler.run(None)

    def state(self) -> str:
        """Of the task."""
        for scheduler, run in self.seen():
            return str(scheduler.status(run).rows[0].standing.state)
        raise AssertionError

    def way(self) -> list[tuple[str, str, str | None]]:
        """Stage, end and tree of every visit, of the one attempt that there may be."""
        for scheduler, run in self.seen():
            with scheduler.database.snapshot() as snapshot:
                task = tasks.get(snapshot, run.id, "a")
                assert task is not None
                of_task = attempts.of_task(snapshot, task.id)
                assert len(of_task) <= 1, [a.state for a in of_task]
                if not of_task:
                    return []
                found = visits.of_attempt(snapshot, of_task[0].id)
            self.reasons = [v.reason for v in found]
            return [(v.stage, v.verdict or v.state, v.tree_after) for v in found]
        raise AssertionError

    def users_own(self) -> dict[str, bytes]:
        """The user's checkout, index, HEAD and config, byte for byte."""
        names = [p for p in self.repository.iterdir() if p.is_file()]
        names += [self.repository / ".git" / n for n in ("HEAD", "index", "config")]
        return {str(path): path.read_bytes() for path in names}

    def check(self) -> Any:
        """At the end: exactly these visits, the tree that was accepted, nothing left."""
        assert self.state() == "succeeded"
        way = self.way()
        wanted = [("surroundings", "succeeded")] + [(x.stage, x.ends) for x in self.script.lines]
        assert [(stage, end) for stage, end, _ in way] == wanted
        for scheduler, run in self.seen():
            scheduler.reconcile(run)  # the last leader may have been killed once all was written
            with scheduler.database.snapshot() as snapshot:
                assert [i.kind for i in journal_rows.open_intents(snapshot, run.id)] == []
            problems = scheduler.doctor(verify=True)
            assert problems.problems == 0, problems
            (attempt,) = scheduler.show_task(run, "a").attempts
            assert git(self.repository, "show", f"{attempt.head_commit}:a.txt") == self.last
            assert attempt.head_commit == git(
                self.repository, "rev-parse", f"refs/orch/heads/{attempt.id}"
            )
            scheduler.integrate(run)
            branch = f"orch/{run.name}/integration"
            assert git(self.repository, "show", f"{branch}:a.txt") == self.last
        assert lock_files(self.repository / ".git", self.worktrees) == []
        git(self.repository, "fsck", "--strict")
        return tuple(way)

    @property
    def last(self) -> str:
        """What a.txt has at the end."""
        every = [x.content for x in self.script.lines if x.content and x.ends == "succeeded"]
        return str(every[-1]).rstrip("\n")

    def check_so_far(self, killed: Sequence[int]) -> None:
        """No visit but those that are to come, in their order."""
        way = [(stage, end) for stage, end, _ in self.way()]
        wanted = [("surroundings", "succeeded")] + [(x.stage, x.ends) for x in self.script.lines]
        if way and way[-1][1] == "live":
            wanted[len(way) - 1] = (wanted[len(way) - 1][0], "live")
        assert way == wanted[: len(way)], (killed, [*zip(way, self.reasons, strict=True)])

    # -- the play ----------------------------------------------------------------------------

    def play(self, kills: Callable[[int], "Kill | None"]) -> list[int]:
        """Pass after pass until the task is at an end. `kills` says where a pass is to be killed,
        by its number; None: not at all. No two leaders or workers in a row: the third who is gone
        while a gate runs, or with a delivery, is one too many. Returns the numbers of those that
        were killed."""
        killed: list[int] = []
        for number in range(MOST_PASSES):
            act = (self.lead, self.work)[number % 2]
            hung = self.hanging.exists() and act == self.work
            # Killed each time that it hangs it would be lost before any leader could stop it.
            kill = None if number - 2 in killed or hung else kills(number)
            if self._is_killed(kill or Kill(), act):
                killed.append(number)
                if not self.hanging.exists():
                    self.late()
            if self.hanging.exists():
                self.ahead_seconds += SLOW_SECONDS
            self.check_so_far(killed)
            if not number % 2 and self.state() in ("succeeded", "failed", "cancelled"):
                return killed
        raise AssertionError(f"it comes to no end: {self.way()}")

    def _is_killed(self, kill: "Kill", act: Callable[[], None]) -> bool:
        folder = self.folder.parent / "bin"
        if kill.moment is not None:
            killing_git(folder, kill.number, kill.moment)
        step = kill.number if kill.moment is None else 0
        told = partial(_told, act, folder if kill.moment else None)
        return killing.killed_before(step, told, changes=killing.KILL_EVERY == 1)


class Kill(NamedTuple):
    """Before a step of this number; or, with a `moment`, `before` or `after` a call of git."""

    number: int = 0
    moment: str | None = None


def at_random(seed: int) -> Callable[[int], Kill | None]:
    """Every second pass is killed, somewhere."""
    chance = random.Random(seed)

    def kill(number: int) -> Kill | None:
        moment = chance.choice((None, None, "before", "after"))
        most = 6 if moment is None else 4
        step = int(3 ** (chance.random() * most))
        return Kill(step, moment) if chance.random() < 0.5 else None

    return kill


def _told(act: Callable[[], None], programs: Path | None) -> None:
    """Act, with these programs before all others; what goes wrong in a process that is forked is
    told before it ends."""
    if programs is not None:
        os.environ["PATH"] = f"{programs}{os.pathsep}{os.environ['PATH']}"
    try:
        act()
    except BaseException:
        traceback.print_exc()
        raise
