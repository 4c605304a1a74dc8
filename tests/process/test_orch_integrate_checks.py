"""Checks of an integration: once for all that comes in, before anything is moved."""

import functools
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch.integration import trial
from inbox_orch.orch.integration.rules import branch_of
from inbox_orch.orch.journal import rows as journal_rows
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.config import from_given
from support.buses import refused
from support.commands import command_path
from support.processes import until
from support.runs import Site, commit, git, lock_files, only_for, worktree_paths
from support.timing import PATIENCE_SECONDS
from support.workers import is_alive


@pytest.fixture
def run(site: Site):
    """Two tasks whose accepted work merges, and one that conflicts."""
    made = site.open_run()
    site.add(made, "a", "b", "c")
    for key, item in site.dispatch(made).items():
        site.deliver(item, "same" if key != "b" else "b.txt", f"{key}\n")
    site.scheduler.reconcile(made)
    return made


def nothing_is_left(site: Site, run) -> None:
    paths = {str(a.worktree_path) for key in "abc" for a in site.attempts(run, key)}
    assert worktree_paths(site.repository) == paths
    folder = site.worktrees / run.name
    assert {str(path) for path in folder.iterdir()} == paths
    assert lock_files(site.repository / ".git") == []
    assert site.open_intents(run) == []
    assert site.scheduler.doctor(verify=True).problems == 0
    git(site.repository, "fsck", "--strict")


def test_checks_run_once_on_all_that_comes_in_and_then_the_branch_moves(site: Site, run):
    told = site.folder / "told"
    write = f"{{ pwd; git rev-parse HEAD; ls; git status --porcelain; }} >> '{told}'"

    done = site.scheduler.integrate(run, checks=[write, "test -f b.txt && echo fine"])

    folder, head, *files = told.read_text().splitlines()
    assert files == ["README.md", "b.txt", "same"]
    assert head == done.tip == git(site.repository, "rev-parse", branch_of(run))
    assert not Path(folder).exists()
    assert [c["passed"] for c in done.as_json()["checks"]] == [True, True]
    assert done.checks[1].output_tail == "fine\n"
    nothing_is_left(site, run)

    assert site.scheduler.integrate(run, checks=["false"]).checks == ()


def test_a_failing_check_moves_nothing_and_gives_no_conflict_back(site: Site, run):
    told = site.folder / "told"
    refs = git(site.repository, "for-each-ref")
    main = git(site.repository, "rev-parse", "main")
    checks = [f"echo once >> '{told}'", "echo broken; exit 3", f"echo twice >> '{told}'"]

    done = site.scheduler.integrate(run, onto="main", checks=checks)

    assert done.failed_check is not None
    assert (done.failed_check.ending.exit_status, done.failed_check.output_tail) == (3, "broken\n")
    assert told.read_text() == "once\n"
    assert not done.moved
    assert done.onto is not None
    assert done.onto["state"] == "not_tried"
    assert git(site.repository, "for-each-ref") == refs
    assert git(site.repository, "rev-parse", "main") == main
    assert set(site.states(run).values()) == {"succeeded"}
    nothing_is_left(site, run)

    fixed = site.scheduler.integrate(run, onto="main", checks=["true"])
    assert fixed.tip == done.tip
    assert git(site.repository, "rev-parse", "main") == done.tip


def test_what_a_check_leaves_behind_goes_with_its_worktree(site: Site, run):
    check = "mkdir -p build/x && echo x > build/x/y && echo changed > README.md && echo z > .env"

    done = site.scheduler.integrate(run, checks=[check])

    assert done.moved
    assert git(site.repository, "show", f"{done.tip}:README.md") == "A project."
    nothing_is_left(site, run)


def test_a_branch_that_was_moved_without_a_check_is_checked_before_yours_follows(site: Site, run):
    site.scheduler.integrate(run)
    main = git(site.repository, "rev-parse", "main")

    failed = site.scheduler.integrate(run, onto="main", checks=["false"])
    assert failed.failed_check is not None
    assert git(site.repository, "rev-parse", "main") == main
    passed = site.scheduler.integrate(run, onto="main", checks=["true"])
    assert git(site.repository, "rev-parse", "main") == passed.tip


def test_the_worktree_of_the_checks_is_set_up_as_those_of_workers_are(site: Site):
    config = {"setup": {"command": "mkdir -p made && echo built > made/tool; test ! -e bad"}}
    run = site.open_run(config=from_given(config))
    site.add(run, "a", "b", allow_empty=True)
    items = site.dispatch(run)
    commit(items["a"]["worktree"], ".gitignore", "made\n")
    commit(items["b"]["worktree"], ".gitignore", "made\n")
    for item in items.values():
        site.done(item)
    site.scheduler.reconcile(run)
    assert set(site.states(run).values()) == {"succeeded"}

    done = site.scheduler.integrate(run, checks=["cat made/tool"])
    assert done.checks[0].output_tail == "built\n"

    site.add(run, "c")
    item = site.dispatch(run, "c")["c"]
    site.deliver(item, "bad")
    site.scheduler.reconcile(run)
    failed = site.scheduler.integrate(run, checks=["true"])
    assert failed.failed_check is not None
    assert failed.failed_check.command == config["setup"]["command"]
    assert git(site.repository, "rev-parse", branch_of(run)) == done.tip
    assert site.open_intents(run) == []


def test_a_dry_run_runs_no_check(site: Site, run):
    assert site.scheduler.integrate(run, checks=["false"], dry_run=True).checks == ()
    nothing_is_left(site, run)


def test_what_changes_while_a_check_runs_is_planned_anew(site: Site, run):
    """Between the merge and the move, another leader takes accepted work back."""
    marker = site.folder / "again"
    integrate = f"'{command_path('orch')}' integrate --run {run.name} --json"
    change = (
        f"test -e '{marker}' || {{ touch '{marker}'; {integrate} >'{site.folder}/other'; true; }}"
    )

    done = site.scheduler.integrate(run, checks=[change])

    other = json.loads((site.folder / "other").read_text())["data"]
    assert other["moved"] is True
    assert other["tip"] == git(site.repository, "rev-parse", branch_of(run)) == done.tip
    assert [(item["key"], item["state"]) for item in done.as_json()["items"]] == [("c", "conflict")]
    assert len(site.attempts(run, "c")) == 2
    nothing_is_left(site, run)


# -- processes -------------------------------------------------------------------------------


def start(site: Site, check: str, stdout: int = subprocess.DEVNULL) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [command_path("orch"), "integrate", "--onto", "main", "--check", check, "--json"],
        cwd=site.repository,
        stdout=stdout,
    )


def process_of(path: Path) -> int:
    until(lambda: path.exists() and path.read_text().endswith("\n"))
    return int(path.read_text())


def test_a_failing_check_is_exit_11_with_which_and_its_output(site: Site, run):
    running = start(site, "echo broken; exit 3", subprocess.PIPE)
    answer = json.loads(running.communicate(timeout=PATIENCE_SECONDS)[0])

    assert running.returncode == 11
    assert answer["error"]["code"] == "checks_failed"
    assert "exit status 3" in answer["error"]["message"]
    assert answer["data"]["checks"][0]["output_tail"] == "broken\n"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_check_ends_and_nothing_was_moved(site: Site, run, number: int):
    pid = site.folder / "pid"
    refs = git(site.repository, "for-each-ref")
    running = start(site, f"echo $$ > '{pid}'; sleep 600")
    check = process_of(pid)

    running.send_signal(number)

    assert running.wait(PATIENCE_SECONDS) == 128 + number
    assert not is_alive(check)
    assert git(site.repository, "for-each-ref") == refs
    nothing_is_left(site, run)


def test_a_killed_integration_leaves_no_check_and_no_worktree(site: Site, run):
    pid = site.folder / "pid"
    refs = git(site.repository, "for-each-ref")
    running = start(site, f"echo $$ > '{pid}'; sleep 600")
    check = process_of(pid)

    os.kill(running.pid, signal.SIGKILL)
    running.wait(PATIENCE_SECONDS)
    # On the machine's own clock: who is of another boot waits for nobody's check.
    with Bus.open(site.office.path) as bus:
        assert Scheduler(bus).reconcile(run).finished_intents == 1

    assert not is_alive(check)
    assert git(site.repository, "for-each-ref") == refs
    nothing_is_left(site, run)
    done = site.scheduler.integrate(run, checks=["true"])
    assert done.moved
    nothing_is_left(site, run)


def test_a_check_sees_nothing_of_a_calling_hook_and_none_of_a_lease(site: Site, run, monkeypatch):
    told = site.folder / "told"
    monkeypatch.setenv("GIT_INDEX_FILE", str(site.folder / "index"))
    monkeypatch.setenv("GIT_DIR", str(site.folder / "nowhere"))
    monkeypatch.setenv("INBOX_TOKEN", "0" * 32)

    done = site.scheduler.integrate(run, checks=[f"env > '{told}'"])

    found = dict(line.split("=", 1) for line in told.read_text().splitlines() if "=" in line)
    assert not {name for name in found if name in ("GIT_INDEX_FILE", "GIT_DIR", "INBOX_TOKEN")}
    assert (found["ORCH_HEAD_COMMIT"], found["ORCH_RUN"]) == (done.tip, run.name)


def test_checks_that_another_leader_has_taken_over_move_nothing(site: Site, run, monkeypatch):
    scheduler = site.scheduler
    note = functools.partial(trial._note_check, scheduler.desk)

    def lose_it(number, group):
        (intent,) = site.open_intents(run)
        elsewhere = intent.owner._replace(process=4194303, started=1)
        with scheduler.database.transaction() as tx:
            journal_rows.take_over_intent(tx, number, intent.owner, elsewhere)
        return note(number, group)

    only_for(monkeypatch, scheduler, trial, "_note_check", lose_it)
    with refused("busy"):
        scheduler.integrate(run, checks=["true"])
    monkeypatch.undo()

    assert git(site.repository, "branch", "--list", branch_of(run)) == ""
    scheduler.reconcile(run)
    nothing_is_left(site, run)
