"""What happens in the demonstration of a blueprint: one task that is mended twice, reviewed,
decided about, and goes on after its leader and its worker were killed."""

import subprocess
import time
from importlib import resources
from typing import Any

from inbox_orch.shared.errors import InboxOrchError

from ..attempts import rows as attempts
from ..attempts import visit_rows as visits
from ..attempts.visits import Visit
from ..leader.follow import events_of
from ..leader.scheduler import Scheduler
from ..runs.model import Attempt
from ..views.stage_words import ended
from ..views.status import Status
from .story import Ending, Expectation, Tell
from .workshop import SHORT_LEASE_SECONDS, TRY_AGAIN, Workshop

MOST_SECONDS = 120
HINT = "Names stay as they are written."
CONFIG = r"""
gates:
  lint:
    run: "grep -nE '[[:blank:]]+$' *.sh; test $? -eq 1"
    reads: lines
    pattern: '^(?P<id>\S+):\d+:'
  tests: {run: [sh, test.sh], reads: lines, pattern: '^FAILED (?P<id>\S+)'}
roles: {critic: {mailbox: critics}}
"""
FILES = {
    "greet.sh": '#!/bin/sh\n# Greets\necho "hello"\n',
    "test.sh": """\
#!/bin/sh
# Prints a line for each test that fails.
check() {
    [ "$2" = "$3" ] || echo "FAILED $1: '$3' instead of '$2'"
}
check nobody "hello" "$(sh greet.sh)"
""",
}
WAY = (
    *("implement", "lint failed", "fix_lint", "lint", "test failed", "fix_tests", "lint", "test"),
    *("review request_changes", "implement", "lint", "test", "review reject"),
    *("decision continue", "implement", "lint", "test", "review approve"),
)
"""Every visit of the attempt, in its order: what the crash adds is nothing."""


class Mending:
    """A leader's run of one task that goes by a blueprint, with two workers and a reviewer."""

    def __init__(self, workshop: Workshop, tell: Tell) -> None:
        self._shop = workshop
        self._tell = tell
        self._started = time.monotonic()
        self._seen = "0"

    def play(self) -> Ending:
        """From a wish to the branch."""
        self._build()
        self._kill_both()
        self._lead_on()
        self._decide()
        untouched = self._shop.git("status", "--porcelain") == "" and self._commits() == 2
        self._integrate()
        for name in ("eve", "rita"):
            self._shop.stop_worker(name)
        return self._end(untouched)

    def status(self) -> Status:
        """How the run stands, for the table at the end."""
        with self._shop.open_bus("leader") as bus:
            scheduler = Scheduler(bus)
            return scheduler.status(scheduler.run(None))

    # -- acts --------------------------------------------------------------------------------

    def _build(self) -> None:
        self._make_project()
        (self._shop.folder / "config.yaml").write_text(CONFIG)
        config = str(self._shop.folder / "config.yaml")
        opened = self._shop.orch("run", "init", "--title", "Greet by name", "--config", config)
        name = opened["run"]["name"]
        self._tell(f"orch run init: opened run {name}, with the gates lint and tests")
        title = ("--title", "Greet people by their name")
        blueprint = ("--blueprint", "mended_and_reviewed")
        self._shop.orch("task", "add", "--task", "greet", *title, *blueprint)
        self._tell("orch task add greet --blueprint mended_and_reviewed")
        self._work("ada", "workers", lease_seconds=SHORT_LEASE_SECONDS)
        self._work("rita", "critics")
        self._tell(
            "Started a worker, ada, and a reviewer, rita: each `inbox work -- sh mender.sh`."
        )

    def _make_project(self) -> None:
        project = self._shop.repository
        for name, text in FILES.items():
            (project / name).write_text(text)
        folder = project / ".orch" / "blueprints"
        folder.mkdir(parents=True)
        text = resources.files(__package__).joinpath("greeting.yaml").read_text()
        (folder / "mended_and_reviewed.yaml").write_text(text)
        self._shop.git("add", ".")
        self._shop.git("commit", "--quiet", "--message", "Greet")

    def _work(self, name: str, mailbox: str, **options: Any) -> None:
        self._shop.start_worker(name, mailbox, script="mender.sh", **options)

    def _kill_both(self) -> None:
        """Wait until ada is in the middle of the second repair, then kill her and the leader."""
        self._shop.start_leader("drive")
        self._tell("Started a leader: `orch drive`.")
        self._follow(until=("visit_begun", "fix_tests"))
        with self._shop.open_bus("leader") as bus:
            kinds = ("thread_updated",)
            found = bus.watch(
                after="0", mailboxes=("workers",), kinds=kinds, wait_seconds=MOST_SECONDS
            )
            if next(iter(found), None) is None:
                raise InboxOrchError("internal", "ada has not begun the repair", hint=TRY_AGAIN)
        self._tell("ada has mended half of it.")
        self._shop.kill_worker("ada")
        self._shop.kill_worker("drive")
        self._tell(
            "kill -9: the leader, ada and her command are dead;"
            f" her lease runs out in {SHORT_LEASE_SECONDS} s."
        )

    def _lead_on(self) -> None:
        """Another leader and another worker, up to the decision."""
        self._work("eve", "workers")
        leader = self._shop.start_leader("drive")
        self._tell("Started another leader, and another worker, eve.")
        self._follow(until=("visit_begun", "decision"))
        self._ended(leader, 11)
        self._tell("orch drive: exit 11, needs_decision.")

    def _decide(self) -> None:
        question = self._shop.orch("blocked")["items"][0]
        self._tell(f"orch blocked: {question['key']}: {question['decision']['sentence']}")
        self._shop.orch("answer", "greet", "--decide", "continue", "--body", HINT)
        self._tell(f"orch answer greet --decide continue --body '{HINT}'")
        leader = self._shop.start_leader("drive")
        self._follow(until=("task_succeeded", None))
        self._ended(leader, 0)
        self._tell("orch drive: exit 0, the run has succeeded.")

    def _integrate(self) -> None:
        self._shop.orch("integrate", "--onto", "main")
        tip = self._shop.git("rev-parse", "--short=8", "main")
        self._tell(f"orch integrate --onto main: main is at {tip}.")

    # -- following ---------------------------------------------------------------------------

    def _follow(self, until: tuple[str, str | None]) -> None:
        """Tell what happens, up to an event of a kind and a stage."""
        kinds = ("visit_begun", "visit_ended", "task_succeeded")
        with self._shop.open_bus("leader") as bus:
            scheduler = Scheduler(bus)
            run = scheduler.run(None)
            found = events_of(
                scheduler.desk, run, after=self._seen, kinds=kinds, seconds=MOST_SECONDS
            )
            for _, batch in found:
                for event in batch:
                    self._seen = str(event.seq)
                    said = ended(event.data) if event.kind == "visit_ended" else None
                    if said is not None:
                        self._tell(f"  {said}")
                    if (event.kind, event.data.get("stage")) == until:
                        return
        raise InboxOrchError("internal", f"waited in vain for {until[0]}", hint=TRY_AGAIN)

    def _ended(self, leader: "subprocess.Popen[bytes]", expected: int) -> None:
        """Wait for a leader to end as it has to."""
        code = self._shop.ended("drive", leader)
        if code != expected:
            words = f"`orch drive` ended with {code} instead of {expected}"
            raise InboxOrchError("internal", words, hint=TRY_AGAIN)

    # -- the end -----------------------------------------------------------------------------

    def _end(self, untouched: bool) -> Ending:
        commits = self._shop.git("log", "--oneline", "--graph", "--branches")
        return Ending(
            (
                *self._expectations(),
                Expectation("the main working tree was untouched all the while", untouched),
                Expectation("the database folds from its events", self._shop.verified()),
            ),
            tuple(commits.split("\n")),
            time.monotonic() - self._started,
            str(self._shop.folder),
        )

    def _commits(self) -> int:
        return int(self._shop.git("rev-list", "--count", "main"))

    def _expectations(self) -> list[Expectation]:
        attempt, way = self._way()
        by_stage = {v.stage: v for v in way}
        repair, review = by_stage["fix_tests"], by_stage["review"]
        with self._shop.open_bus("leader") as bus:
            deliveries = bus.show(str(repair.thread_id)).thread.deliveries
        judged, merged = review.tree_after, self._shop.git("rev-parse", "main^{tree}")
        return [
            Expectation("it went exactly the way that its outcomes say", told(way) == WAY),
            Expectation("no finished stage was done again, no visit counted twice", _once(way)),
            Expectation(
                "eve went on with ada's repair, in the same visit and worktree",
                (repair.worker, repair.nth, deliveries) == ("eve", 1, 2),
            ),
            Expectation("it was one attempt", attempt.number == 1),
            Expectation("nobody has reviewed what they wrote", review.worker == "rita"),
            Expectation(
                "main has the very tree that gates and review have judged", judged == merged
            ),
        ]

    def _way(self) -> tuple[Attempt, list[Visit]]:
        """The last attempt, and its visits but for that in which the gates were tried."""
        with self._shop.open_bus("leader") as bus:
            scheduler = Scheduler(bus)
            run = scheduler.run(None)
            with scheduler.database.snapshot() as snapshot:
                attempt = attempts.of_run(snapshot, run.id)[-1]
                return attempt, visits.of_attempt(snapshot, attempt.id)[1:]


def told(way: list[Visit]) -> tuple[str, ...]:
    """Each visit with how it ended, where that is not simply well."""
    words = ((v.stage, v.verdict or v.state) for v in way)
    return tuple(stage if word == "succeeded" else f"{stage} {word}" for stage, word in words)


def _once(way: list[Visit]) -> bool:
    """Whether the visits of each stage are numbered one after the other, and all are over."""
    nth: dict[str, int] = {}
    for visit in way:
        nth[visit.stage] = nth.get(visit.stage, 0) + 1
        if visit.live or visit.nth != nth[visit.stage] or visit.state == "lost":
            return False
    return True
