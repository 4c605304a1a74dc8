"""Attempts that go by a blueprint, with leaders and workers killed at any step: the same end, by
exactly the same visits, and nothing left behind.

STAGE_ROUNDS=N plays N rounds of real processes; KILL_EVERY=1 kills each pass before each of its
steps that changes something, and before and after each of its calls of git.
"""

import itertools
import os
import random
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inbox_orch.orch.attempts import rows as attempts
from inbox_orch.orch.attempts import visit_rows as visits
from inbox_orch.orch.runs import task_rows as tasks
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.stages.model import Blueprint
from inbox_orch.shared.errors import InboxOrchError
from sqlite import outside
from support import killing, stage_plays, warm
from support.commands import command_path
from support.disks import small_disk
from support.orch_matrix import Enterprise
from support.processes import until
from support.runs import add_task, git, lock_files
from support.scenes import apart
from support.stage_plays import SCRIPTS, Kill, Play
from support.stages import agent, gates
from support.timing import PATIENCE_SECONDS

ROUNDS = int(os.environ.get("STAGE_ROUNDS", "1"))


LONG = [(name, at) for name in sorted(SCRIPTS) for at in ("step", "before", "after")]
PLAYS = LONG if killing.KILL_EVERY == 1 else [("all", "anywhere")]


def play(folder: str, name: str, moment: str) -> None:
    """The body of a test, in a process of its own."""
    for each in sorted(SCRIPTS) if name == "all" else [name]:
        play_one(Path(folder, each), each, moment)


def play_one(folder: Path, name: str, moment: str) -> None:
    for number, kills in enumerate(ways_to_die(name, moment)):
        scene = Play(folder / str(number), name)
        scene.folder.mkdir(parents=True)
        scene.make()
        if not number:
            killing.settle()
        before = scene.users_own()
        killed = scene.play(kills)
        assert scene.users_own() == before
        scene.check()
        if not killed:
            return
        shutil.rmtree(scene.folder.parent)


def ways_to_die(name: str, moment: str) -> Iterator[Callable[[int], Kill | None]]:
    """Each pass at its first step, each at its second, until none has so many."""
    if moment == "anywhere":
        yield stage_plays.at_random(len(name))
        return
    for step in itertools.count(1):
        yield lambda number, step=step: Kill(step, None if moment == "step" else moment)


@pytest.mark.parametrize("name, moment", PLAYS)
def test_whoever_is_killed_at_any_step_the_way_is_the_same(tmp_path: Path, name: str, moment: str):
    apart(play, tmp_path, name, moment)


def test_a_leader_killed_while_it_stops_a_visit_out_of_time_stops_it_once(tmp_path: Path):
    """And then, with the worker told, while it puts back what that has left."""
    scene = Play(tmp_path / "play", "slow")
    scene.folder.mkdir(parents=True)
    scene.make()
    scene.lead()
    scene.work()
    scene.ahead_seconds += stage_plays.SLOW_SECONDS
    assert dies_at_steps(scene) > 2
    assert scene.way()[-1][1] == "live"
    scene.work()
    assert dies_at_steps(scene) > 2
    assert [end for _, end, _ in scene.way()] == ["succeeded", "failed", "live"]
    scene.play(lambda _: None)
    scene.check()


def dies_at_steps(scene: Play) -> int:
    """One leader after the other, each killed a little later; how many were before one was not."""
    for number in itertools.count():
        if not killing.killed_before(1 + number * killing.KILL_EVERY, scene.lead):
            return number
        scene.check_so_far(())
    raise AssertionError


# -- disks --------------------------------------------------------------------------------------


@pytest.mark.parametrize("trouble, name", [("full", "quick"), ("read_only", "study")])
def test_a_disk_that_takes_nothing_changes_nothing(tmp_path: Path, trouble: str, name: str):
    """Each look of a leader comes twice: once in vain, once with a disk that is well again."""
    with small_disk(tmp_path / "disk") as disk:
        scene = Play(disk.path / "play", name)
        scene.folder.mkdir(parents=True)
        scene.make()
        codes = set()
        while scene.state() != "succeeded":
            way = scene.way()
            with getattr(disk, trouble)():
                codes.add(code_of(scene.lead))
            assert scene.way() == way
            scene.lead()
            scene.check_so_far(())
            scene.work()
        scene.check()
    assert codes - {None} <= {"disk_full", "read_only", "io_error"}
    assert codes - {None}


def code_of(act: Callable[[], None]) -> str | None:
    """With which error it was refused."""
    try:
        act()
    except InboxOrchError as error:
        return error.code
    return None


# -- gates that kill their leader -----------------------------------------------------------


def lead(scene: Play) -> bool:
    """One look of a leader; whether it was killed."""
    return killing.killed_before(0, scene.lead)


def test_a_gate_that_kills_its_leader_on_the_base_is_none(tmp_path: Path):
    scene = Play(tmp_path / "play", "quick", (DEADLY,))
    scene.folder.mkdir(parents=True)
    scene.make()

    assert [lead(scene) for _ in range(3)] == [True, True, False]
    assert [(stage, end) for stage, end, _ in scene.way()] == [
        ("surroundings", "succeeded"),
        ("implement", "live"),
    ]
    assert scene.reasons[0] == "0 of 1 gates can judge here"


def test_a_gate_that_kills_its_leader_is_somebodys_to_decide_the_third_time(tmp_path: Path):
    gate = {**DEADLY, "run": f"[ ! -e a.txt ] || {{ {DEADLY['run']}; }}"}
    scene = Play(tmp_path / "play", "quick", ({"name": "lint", "run": "true"}, gate))
    scene.folder.mkdir(parents=True)
    scene.make()
    assert not lead(scene)
    scene.work()

    assert [lead(scene) for _ in range(3)] == [True, True, False]
    assert [(stage, end) for stage, end, _ in scene.way()][2:] == [
        ("check", "error"),
        ("decision", "live"),
    ]
    why = "deadly: it was begun 2 times, and its leader was gone before it ended"
    assert scene.reasons[2] == why


DEADLY = {"name": "deadly", "run": 'kill -9 "$PPID"; sleep 60'}


# -- several leaders, workers and tasks -----------------------------------------------------

KEYS = ("a", "b", "c", "d", "e")
STAGES = (
    agent("implement", on_success="check"),
    gates("check", run='for f in *.txt; do ! grep -qs bad "$f" || exit 1; done', on_failure="fix"),
    agent("fix", max_visits=2, on_success="check"),
)
WAY = [
    ("surroundings", "succeeded"),
    ("implement", "succeeded"),
    ("check", "failed"),
    ("fix", "succeeded"),
    ("check", "succeeded"),
]
AGENT = """
case $(cat "$INBOX_TASK_FILE") in
*"This step: implement"*) word=bad ;;
*) word=good ;;
esac
key=$(basename "$PWD")
echo "$word" > "${key%-1}.txt"
"""
MOST_EVENTS = 90  # of a whole round, from the moment when its tasks are there


class Crew:
    """Leaders and workers of one project; whoever is killed is followed by another."""

    def __init__(self, project: Enterprise, run: str) -> None:
        self.project, self.run = project, run
        self.gone: list[warm.Forked] = []
        self.leaders = [self._leader(), self._leader()]
        self.workers = [self._worker(n) for n in range(4)]

    def _start(self, *line: str) -> warm.Forked:
        environment = {**os.environ, "XDG_STATE_HOME": str(self.project.state)}
        folder = self.project.folder
        with open(os.devnull, "r+b") as nothing:
            return warm.Forked(
                "command",
                line,
                stdout=nothing.fileno(),
                stderr=nothing.fileno(),
                cwd=folder,
                environment=environment,
            )

    def _leader(self) -> warm.Forked:
        return self._start(command_path("orch"), "drive", "--run", self.run)

    def _worker(self, number: int) -> warm.Forked:
        line = [command_path(), "work", "--agent", f"w{number}", "--mailbox", "workers"]
        return self._start(*line, "--lease", "3", "--", "sh", "-eu", "-c", AGENT)

    def kill(self, chance: random.Random) -> None:
        """A leader, a worker, or one of each; others take their places."""
        whom = chance.choice(("leader", "worker", "both"))
        if whom != "worker":
            number = chance.randrange(2)
            self.gone.append(self.leaders[number])
            self.leaders[number] = self._leader()
        if whom != "leader":
            number = chance.randrange(4)
            self.gone.append(self.workers[number])
            self.workers[number] = self._worker(number)
        for process in self.gone:
            process.kill()

    def end(self) -> None:
        for worker in self.workers:
            worker.send_signal(signal.SIGTERM)
        for process in (*self.workers, *self.leaders, *self.gone):
            process.wait(PATIENCE_SECONDS)


def test_with_leaders_and_workers_killed_every_task_goes_its_way_once(tmp_path: Path):
    for number in range(ROUNDS):
        project = Enterprise(tmp_path / str(number))
        try:
            play_together(project, random.Random(number))
        except BaseException as error:
            error.add_note(f"in round {number}")
            raise


def play_together(project: Enterprise, chance: random.Random) -> None:
    run = project.open_run(config=Config(finds=()))
    drawn = Blueprint("tried", STAGES)
    with project.scheduler() as scheduler:
        for key in KEYS:
            add_task(
                scheduler,
                scheduler.run(run),
                key_name=key,
                title=f"Do {key}",
                blueprint=drawn.id,
                drawn=drawn.canonical(),
            )
    before = newest_event(project)
    crew = Crew(project, run)
    for moment in sorted(chance.sample(range(MOST_EVENTS), 3)):
        until(lambda moment=moment: newest_event(project) >= before + moment or is_over(project))
        crew.kill(chance)
    until(lambda: is_over(project))
    crew.end()
    judge(project, run)


def newest_event(project: Enterprise) -> int:
    return int(outside.value(project.path, "SELECT max(seq) FROM event"))


def is_over(project: Enterprise) -> bool:
    words = "SELECT count(*) FROM task WHERE state NOT IN ('succeeded', 'failed', 'cancelled')"
    return not outside.value(project.path, words)


def judge(project: Enterprise, run: str) -> None:
    with project.scheduler() as scheduler:
        of_run = scheduler.run(run)
        assert scheduler.doctor(verify=True).problems == 0
        with scheduler.database.snapshot() as snapshot:
            assert snapshot.all("SELECT kind FROM intent WHERE closed_at IS NULL") == []
            for key in KEYS:
                task = tasks.get(snapshot, of_run.id, key)
                assert task is not None
                (attempt,) = attempts.of_task(snapshot, task.id)
                way = [(v.stage, v.state) for v in visits.of_attempt(snapshot, attempt.id)]
                assert way == WAY, (key, way)
        scheduler.integrate(of_run)
        branch = f"orch/{run}/integration"
    listed = git(project.folder, "ls-tree", "--name-only", branch).split()
    assert listed == sorted(["README.md", *(f"{key}.txt" for key in KEYS)])
    for key in KEYS:
        assert git(project.folder, "show", f"{branch}:{key}.txt") == "good"
    assert git(project.folder, "status", "--porcelain") == ""
    assert lock_files(project.folder / ".git", project.state) == []
    git(project.folder, "fsck", "--strict")
