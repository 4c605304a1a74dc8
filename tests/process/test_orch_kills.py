"""`orch dispatch` killed at every step, and git killed inside it: `reconcile` makes it whole.

Afterwards there is exactly one worktree, one branch and one thread for each live attempt, no
lock, no open intent, and git works.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.config import Config, Setup
from support.commands import command_path
from support.engines import looking
from support.lengths import LONG
from support.processes import start_json, until
from support.runs import Site, add_task, branches, commit, git, lock_files, worktree_paths
from support.scenes import REAL_GIT, Scene, apart, kill_everywhere, killed_by_git
from support.timing import PATIENCE_SECONDS, undisturbed


class Dispatch(Scene):
    """A run that is about to dispatch a task on a merged base, and one from HEAD."""

    def make(self) -> None:
        """Everything up to the dispatch."""
        site = Site(self.folder)
        commit(site.repository, ".gitignore", ".env\nmade.txt\n")
        (site.repository / ".env").write_text("secret\n")
        setup = Setup("cat .env >>made.txt")
        run = site.open_run(config=Config(copy=(".env",), setup=setup))
        site.add(run, "a", "b")
        site.add(run, "c", depends_on=["a", "b"])
        for item in site.dispatch(run).values():
            site.deliver(item, f"{item['key']}.txt")
        site.scheduler.reconcile(run)
        site.add(run, "d")
        git(self.folder, "clone", "-q", "--bare", str(self.repository), "origin.git")
        git(self.repository, "remote", "add", "origin", str(self.folder / "origin.git"))
        site.close()

    def dispatch(self) -> None:
        """In this process."""
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            scheduler.dispatch(scheduler.run(None))

    def check(self) -> None:
        """Reconcile, dispatch what is left, and judge."""
        with Bus.open(self.database) as bus:
            scheduler = Scheduler(bus)
            run = scheduler.run(None)
            scheduler.reconcile(run)
            self.judge(scheduler, run)
            again = scheduler.reconcile(run)
            assert again.finished_intents == 0
            undisturbed(lambda: self.leaves_nothing_ready(scheduler, run))
            self.judge(scheduler, run)
            assert scheduler.doctor(verify=True).problems == 0
        git(self.repository, "fsck", "--strict")
        git(self.repository, "fetch", "-q", "origin")
        assert git(self.repository, "status", "--porcelain") == ""

    def leaves_nothing_ready(self, scheduler: Scheduler, run) -> bool:
        """Whether after a dispatch all is with a worker or backs off; a back-off can be over
        before one has looked."""
        scheduler.dispatch(run)
        states = {r.standing.task.key: r.standing.state for r in scheduler.status(run).rows}
        assert states["a"] == states["b"] == "succeeded"
        assert {states["c"], states["d"]} <= {"active", "backing_off", "ready"}
        return "ready" not in states.values()

    def judge(self, scheduler: Scheduler, run) -> None:
        """One worktree, one branch, one thread for each attempt; nothing else."""
        with scheduler.database.snapshot() as snapshot:
            intents = snapshot.all("SELECT count(*) FROM intent WHERE closed_at IS NULL")
            assert intents[0][0] == 0, "an intent is open"
            rows = snapshot.all(
                "SELECT a.branch, a.worktree_path, a.base_commit, a.state, a.thread_id"
                " FROM attempt AS a WHERE a.state NOT IN ('provision_failed')"
            )
            threads = {row[0] for row in snapshot.stream("SELECT id FROM thread")}
        assert threads == {row[4] for row in rows}, "one thread for each attempt"
        assert branches(self.repository) == {row[0] for row in rows}
        paths = {row[1] for row in rows}
        assert worktree_paths(self.repository) == paths
        assert len(os.listdir(self.repository / ".git" / "worktrees")) == len(paths)
        assert {str(p) for p in (self.worktrees / run.name).iterdir()} == paths
        assert lock_files(self.repository / ".git", self.worktrees) == []
        for branch, path, base, state, _ in rows:
            if state == "offered":
                assert git(path, "status", "--porcelain") == ""
                assert git(path, "rev-parse", "HEAD") == base
                assert git(path, "symbolic-ref", "--short", "HEAD") == branch
                assert Path(path, ".env").read_text() == "secret\n"
                assert Path(path, "made.txt").read_text() == "secret\n", "the set-up ran once"


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Dispatch:
    """The scene, put aside."""
    scene = Dispatch(tmp_path_factory.mktemp("scene"))
    scene.prepare()
    return scene


@pytest.fixture
def scene(prepared: Dispatch) -> Dispatch:
    """The scene, ready to be played."""
    prepared.put_back()
    return prepared


# -- the process that dispatches is killed ---------------------------------------------------


def kill_at_every_step(folder: str) -> None:
    """The body of the test, in a process of its own."""
    scene = Dispatch(Path(folder))
    kill_everywhere(scene, scene.dispatch, every_one_before=12)


def test_a_dispatch_killed_at_any_step_is_made_whole(tmp_path: Path):
    steps = int(apart(kill_at_every_step, tmp_path))
    assert steps > 100, f"too few steps: {steps}"


SETUP = """if [ ! -e '{0}/begun' ]; then
    sleep 600 & echo $! >'{0}/begun.new'; mv '{0}/begun.new' '{0}/begun'; wait
fi
touch made.txt"""


@pytest.fixture
def setting_up(tmp_path: Path):
    """A dispatch whose set-up does not end the first time; its site, and its process."""
    site = Site(tmp_path)
    commit(site.repository, ".gitignore", "made.txt\n")
    run = site.open_run(config=Config(setup=Setup(SETUP.format(tmp_path))))
    site.add(run, "a")
    site.close()
    dispatching = subprocess.Popen(
        [command_path("orch"), "dispatch", "--json"],
        cwd=site.repository,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    until((tmp_path / "begun").exists)
    yield site, dispatching
    dispatching.kill()
    dispatching.communicate()


def is_running(process: str) -> bool:
    try:
        stat = Path("/proc", process.strip(), "stat").read_text()
    except FileNotFoundError:
        return False
    return stat.rpartition(")")[2].split()[0] != "Z"


def test_a_set_up_ends_with_the_dispatch_that_is_killed_and_is_done_anew(setting_up):
    site, dispatching = setting_up
    sleeper = (site.folder / "begun").read_text()
    dispatching.kill()
    dispatching.wait()

    done = subprocess.run(
        [command_path("orch"), "reconcile", "--json"], cwd=site.repository, capture_output=True
    )

    # The lock is held until the last process of the set-up has ended: nothing was made before.
    assert not is_running(sleeper)
    assert done.returncode == 0, done
    with Bus.open(site.office.path) as bus:
        scheduler = Scheduler(bus)
        (row,) = scheduler.status(scheduler.run(None)).rows
        assert row.attempt.state == "offered"
        assert Path(row.attempt.worktree_path, "made.txt").exists()
        assert worktree_paths(site.repository) == {row.attempt.worktree_path}


def left_of(site: Site) -> tuple[str, str, set[str], set[str]]:
    """The states of the one task and its attempt, the worktrees and the branches."""
    with Bus.open(site.office.path) as bus:
        scheduler = Scheduler(bus)
        (run,) = scheduler.runs(closed=True)
        (row,) = scheduler.status(run).rows
    there = worktree_paths(site.repository), branches(site.repository)
    if row.standing.state == "cancelled":
        assert row.standing.task.infra_failures == 0, "nobody is to blame for it"
    return row.standing.state, row.attempt.state, *there


def test_a_task_cancelled_after_its_dispatch_was_killed_is_not_set_up_first(setting_up):
    site, dispatching = setting_up
    dispatching.kill()
    dispatching.wait()

    subprocess.run([command_path("orch"), "cancel", "a"], cwd=site.repository, check=True)

    assert left_of(site) == ("cancelled", "provision_failed", set(), set())


def test_a_set_up_ends_when_its_run_is_cancelled(setting_up):
    site, dispatching = setting_up

    subprocess.run([command_path("orch"), "run", "cancel"], cwd=site.repository, check=True)

    assert dispatching.wait(PATIENCE_SECONDS) == 11
    assert not is_running((site.folder / "begun").read_text())
    assert left_of(site) == ("cancelled", "provision_failed", set(), set())


def test_a_dispatch_killed_in_a_run_that_is_cancelled_is_not_set_up_again(setting_up):
    site, dispatching = setting_up
    dispatching.kill()
    dispatching.wait()
    subprocess.run([command_path("orch"), "run", "cancel"], cwd=site.repository, check=True)

    with Bus.open(site.office.path) as bus:
        scheduler = Scheduler(bus)
        (run,) = scheduler.runs(closed=True)
        scheduler.reconcile(run)
        (closed,) = scheduler.runs(closed=True)

    assert closed.state == "closed"
    assert left_of(site) == ("cancelled", "provision_failed", set(), set())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_set_up_ends_at_once_and_reconcile_does_it_anew(setting_up, number: int):
    site, dispatching = setting_up
    dispatching.send_signal(number)

    assert dispatching.wait(PATIENCE_SECONDS) == 128 + number
    assert not is_running((site.folder / "begun").read_text())
    done = subprocess.run(
        [command_path("orch"), "reconcile", "--json"], cwd=site.repository, capture_output=True
    )
    assert json.loads(done.stdout)["data"]["finished_intents"] == 1
    assert lock_files(site.repository / ".git") == []


# -- git is killed, or kills -----------------------------------------------------------------

# For a shell the second line starts Python, wherever that lies; for Python it is a string.
WRAPPER = """#!/bin/sh
"exec" "{python}" "-I" "-S" "$0" "$@"
import os, resource, signal, sys
words = sys.argv[1:]
count = os.path.join({folder!r}, "count")
with open(count, "a") as file:
    file.write(".")
number = os.path.getsize(count)
plan = {plan!r}
if plan.get("kill_before") == number:
    os.kill(os.getppid(), signal.SIGKILL)
if plan.get("limit") is not None and ("worktree" in words or "reset" in words):
    if plan.get("parent_too"):
        os.kill(os.getppid(), signal.SIGKILL)
    limit = plan["limit"]
    # A file that grows over the limit kills git where it stands (SIGXFSZ), with no tidying up.
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.execv({git!r}, ["git", *words])
"""


def dispatch_with(
    scene: Dispatch, folder: Path, *options: str, **plan: object
) -> "subprocess.CompletedProcess":
    """`orch dispatch` with a git that does as planned."""
    folder.mkdir(exist_ok=True)
    (folder / "count").unlink(missing_ok=True)
    wrapper = folder / "git"
    wrapper.write_text(
        WRAPPER.format(python=sys.executable, folder=str(folder), plan=plan, git=REAL_GIT)
    )
    wrapper.chmod(0o755)
    leader = start_json(
        command_path("orch"),
        *("dispatch", *options),
        stderr=subprocess.PIPE,
        cwd=scene.repository,
        environment={**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"},
    )
    stdout, stderr = leader.communicate(timeout=PATIENCE_SECONDS)
    return subprocess.CompletedProcess(leader.args, leader.wait(), stdout, stderr)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_dispatch_killed_between_two_calls_of_git_is_made_whole(
    scene: Dispatch, tmp_path: Path, moment: str
):
    folder = tmp_path / "bin"
    assert killed_by_git(scene, folder, 0, "never", "dispatch").returncode == 0
    calls = len((folder / "count").read_bytes())
    assert calls > 10
    # In the long form each one; otherwise the other moment meets the others.
    stride = 1 if LONG else 4
    for number in range(1 if moment == "before" else -(-stride // 2), calls + 1, stride):
        scene.put_back()
        done = killed_by_git(scene, folder, number, moment, "dispatch")
        assert done.returncode == -signal.SIGKILL, (number, done)
        scene.check()


def test_a_killed_dispatch_repeated_with_its_key_finishes_what_it_chose(
    scene: Dispatch, tmp_path: Path
):
    with Bus.open(scene.database) as bus:
        before = len(looking(bus.database).all("SELECT id FROM attempt"))
    number = 1
    while True:  # until the choice has been written down when it dies
        done = dispatch_with(scene, tmp_path / "bin", "--key", "k", kill_before=number)
        assert done.returncode == -signal.SIGKILL
        with Bus.open(scene.database) as bus:
            if len(looking(bus.database).all("SELECT id FROM attempt")) > before:
                break
        number += 1
    with Bus.open(scene.database) as bus:
        scheduler = Scheduler(bus)
        add_task(scheduler, scheduler.run(None), key_name="new", title="New")

    repeated = dispatch_with(scene, tmp_path / "bin", "--key", "k")

    assert repeated.returncode == 0, repeated.stdout.decode()
    data = json.loads(repeated.stdout)["data"]
    assert data["replayed"] is True
    assert {item["key"]: item["state"] for item in data["items"]} == {
        "c": "offered",
        "d": "offered",
    }
    with Bus.open(scene.database) as bus:
        scheduler = Scheduler(bus)
        rows = scheduler.status(scheduler.run(None)).rows
        assert {r.standing.state for r in rows if r.standing.task.key == "new"} == {"ready"}
        scene.judge(scheduler, scheduler.run(None))


def is_locked(path: Path) -> bool:
    with open(path, "rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_dispatch_leaves_its_lock_to_the_git_that_goes_on(
    scene: Dispatch, tmp_path: Path, number: int
):
    go_on, begun = tmp_path / "go-on", tmp_path / "begun"
    os.mkfifo(go_on)
    wrapper = tmp_path / "git"
    wrapper.write_text(
        f"""#!/bin/sh
case " $* " in *" reset "*) touch '{begun}'; read -r line <'{go_on}' ;; esac
exec {REAL_GIT} "$@"
"""
    )
    wrapper.chmod(0o755)
    dispatching = subprocess.Popen(
        [command_path("orch"), "dispatch", "--json"],
        cwd=scene.repository,
        env={**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        stdout=subprocess.DEVNULL,
    )
    until(begun.exists)
    dispatching.send_signal(number)
    assert dispatching.wait(PATIENCE_SECONDS) == 128 + number

    (lock,) = lock_files(scene.repository / ".git")
    assert is_locked(Path(lock))
    go_on.write_text("go on\n")
    until(lambda: not is_locked(Path(lock)))
    scene.check()


# `locked`, `gitdir` and `.git` have different sizes, so that git dies in the middle of another one
# with another limit; the last ones let it live till the index.
LIMITS = [0, 50, 80, 110, 140, 170]


@pytest.mark.parametrize("parent_too", [False, True], ids=["git_alone", "with_its_parent"])
@pytest.mark.parametrize("limit", LIMITS)
def test_git_killed_in_the_middle_leaves_nothing(
    scene: Dispatch, tmp_path: Path, limit: int, parent_too: bool
):
    done = dispatch_with(scene, tmp_path / "bin", limit=limit, parent_too=parent_too)

    assert done.returncode == (-signal.SIGKILL if parent_too else 11), done
    scene.check()


def exec_path_that_kills(folder: Path, command: str) -> Path:
    """Git's own programs, but its `command` kills the git that calls it, and its parent."""
    made = folder / "exec"
    made.mkdir()
    for program in Path(git(folder, "--exec-path")).iterdir():
        if program.name != "git":
            (made / program.name).symlink_to(program)
    wrapper = made / "git"
    wrapper.write_text(
        f"""#!/bin/sh
case " $* " in *" {command} "*)
    grandparent=$(cut -d ' ' -f 4 "/proc/$PPID/stat")
    kill -9 "$grandparent" "$PPID"
    exit 1 ;;
esac
exec {REAL_GIT} "$@"
"""
    )
    wrapper.chmod(0o755)
    return made


def test_an_entry_with_an_all_zero_head_is_cleared(scene: Dispatch, tmp_path: Path):
    done = subprocess.run(
        [command_path("orch"), "dispatch", "--json"],
        cwd=scene.repository,
        env={**os.environ, "GIT_EXEC_PATH": str(exec_path_that_kills(tmp_path, "symbolic-ref"))},
        capture_output=True,
    )
    if done.returncode == 0:
        pytest.skip("this git starts no `symbolic-ref`, and cannot be killed in it")
    assert done.returncode == -signal.SIGKILL, done
    heads = (scene.repository / ".git" / "worktrees").glob("*/HEAD")
    assert any(set(head.read_text().strip()) == {"0"} for head in heads), "this is the state"

    scene.check()
