"""What `orch diff` and `orch logs` print of attempts, in one project for all tests."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch.leader.follow import logs_of
from inbox_orch.orch.views import logs
from support.commands import command_path
from support.orch_matrix import Enterprise, the_run
from support.runs import add_task, git
from support.terminals import show
from support.timing import PATIENCE_SECONDS

WORK = """
INBOX update --body 'half way' --progress 50 >update.json; rm update.json
cat >/dev/null; echo 'I wrote it.'; echo careful >&2
echo new >new.txt; git add new.txt
git -c user.name=W -c user.email=w@example.invalid commit --quiet --message new
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Enterprise:
    """Task `a` with accepted work, `b` with an attempt that is worked on, `c` with none."""
    enterprise = Enterprise(tmp_path_factory.mktemp("diff") / "project")
    enterprise.open_run()
    with enterprise.scheduler() as scheduler:
        for key in "abc":
            checks = ["echo checked"] if key == "a" else []
            add_task(scheduler, the_run(scheduler), key_name=key, title=key, checks=checks)
    assert enterprise.orch("dispatch", "a").code == 0
    work = WORK.replace("INBOX", command_path())
    line = ("work", "--agent", "w1", "--mailbox", "workers", "--once", "--", "sh", "-c", work)
    assert enterprise.run(*line).code == 0
    assert enterprise.orch("wait", "--until", "task:a").code == 0
    assert enterprise.orch("dispatch", "b").code == 0
    worktree = attempt_of(enterprise, "b")["worktree"]
    Path(worktree, "README.md").write_text("other\x1b[31m\n")
    Path(worktree, "unknown.txt").write_text("x\n")
    return enterprise


def attempt_of(project: Enterprise, name: str) -> dict[str, Any]:
    shown: dict[str, Any] = project.orch("attempt", "show", name, "--json").data["attempt"]
    return shown


def told(project: Enterprise, *arguments: str) -> list[dict[str, Any]]:
    done = project.orch("logs", *arguments, "--json")
    assert done.code == 0
    return [json.loads(line) for line in done.stdout.splitlines()]


# -- diff ----------------------------------------------------------------------------------------


def test_accepted_work_is_what_git_prints_of_its_commits(project: Enterprise):
    attempt = attempt_of(project, "a")

    for more in ((), ("--stat=80",)):
        span = (attempt["base_commit"], attempt["head_commit"])
        words = ("diff", *[w.partition("=")[0] for w in more], "a")
        done = project.orch(*words)
        assert done.stdout.decode().rstrip("\n") == git(project.folder, "diff", *more, *span)
        assert done.stderr == b""


def test_work_in_hand_is_what_stands_in_the_worktree(project: Enterprise):
    done = project.orch("diff", "b")

    assert b"+other\x1b[31m\n" in done.stdout
    assert b"unknown.txt" not in done.stdout
    assert done.stderr == b"not known to git yet, and not shown: unknown.txt\n"


def test_the_files_and_their_numbers_are_in_the_json(project: Enterprise):
    in_hand = project.orch("diff", "b/1", "--json").data
    assert [item["path"] for item in in_hand["items"]] == ["README.md"]
    assert (in_hand["head"], in_hand["untracked"]) == (None, ["unknown.txt"])

    accepted = project.orch("diff", "a", "--json").data
    assert accepted["items"] == [{"path": "new.txt", "added": 1, "removed": 0}]
    assert (accepted["changed_files"], accepted["added_lines"]) == (1, 1)
    assert accepted["head"] == accepted["attempt"]["head_commit"]


def test_nothing_in_a_diff_drives_a_terminal(project: Enterprise):
    screen = show("diff", "b", folder=project.folder, program="orch")

    assert "\x1b" not in screen.text
    assert "+other\\x1b[31m" in screen.text


def test_it_works_from_a_worktree_too(project: Enterprise):
    attempt = attempt_of(project, "b")

    inside = project.orch("diff", "a", folder=Path(attempt["worktree"]))

    assert b"+new" in inside.stdout


@pytest.mark.parametrize("verb", ["diff", "logs"])
def test_a_task_that_was_never_dispatched_is_told_of(project: Enterprise, verb: str):
    error = project.orch(verb, "c", "--json").error

    assert error["code"] == "not_found"
    assert error["message"] == "task c is pending, and has no attempt yet"


# -- logs ----------------------------------------------------------------------------------------


def test_what_was_said_and_printed_stands_under_headings(project: Enterprise):
    done = project.orch("logs", "a")
    lines = done.stdout.decode().splitlines()

    headings = [line.split("  ")[:2] for line in lines if line.startswith("==> ")]
    assert headings == [
        ["==> said", "progress"],
        ["==> output", "stdout"],
        ["==> output", "stderr"],
        ["==> check", "`echo checked` ended with exit status 0"],
    ]
    assert {"half way", "I wrote it.", "careful", "checked"} <= set(lines)
    assert lines.count("I wrote it.") == 1


def test_the_json_is_one_line_for_each_text_and_the_outcome(project: Enterprise):
    *lines, last = told(project, "a", "--attempt", "1")

    assert [line["text"] for line in lines] == [
        "half way",
        "I wrote it.\n",
        "careful\n",
        "checked\n",
    ]
    assert {line["by"] for line in lines[:3]} == {"w1"}
    assert (last["type"], last["ok"], last["data"]["logs"]) == ("outcome", True, 4)


def test_an_attempt_with_nothing_to_read_says_so(project: Enterprise):
    done = project.orch("logs", "b")

    assert (done.code, done.stdout) == (0, b"")
    assert done.stderr == b"b/1 is offered: it has left nothing to read yet\n"


def test_only_the_end_of_a_long_text_is_read(project: Enterprise, monkeypatch):
    monkeypatch.setattr(logs, "MOST_BYTES", 4)
    with project.scheduler() as scheduler:
        run, listed = scheduler.attempt_named("a", None)
        sources = logs.sources(scheduler.desk, run, listed.attempt)
        read = [logs.read(scheduler.desk, run, s) for s in sources if s.what == "output"]

    assert [(log.text, log.truncated) for log in read] == [("it.\n", True), ("ful\n", True)]


def test_following_an_ended_attempt_ends_at_once(project: Enterprise):
    with project.scheduler() as scheduler:
        run, listed = scheduler.attempt_named("a", None)
        pieces = list(logs_of(scheduler.desk, run, listed.attempt, follow=True))

    assert [len(new) for _, new in pieces] == [4]


def test_following_tells_what_comes_and_ends_with_the_attempt(tmp_path: Path):
    project = Enterprise(tmp_path / "project")
    item = project.dispatched()
    line = [command_path("orch"), "logs", "a", "--follow", "--json"]
    with subprocess.Popen(line, cwd=project.folder, stdout=subprocess.PIPE) as following:
        assert following.stdout is not None
        with project.bus("w1") as bus:
            token = str(bus.claim(item["thread"], mailboxes=["workers"]).lease.token)
            bus.update(item["thread"], token, body="half way")
            assert json.loads(following.stdout.readline())["text"] == "half way"
            bus.fail(item["thread"], token, body="it is too hard", fatal=True)
        assert project.orch("reconcile").code == 0
        failure, last = map(json.loads, following.stdout)
        assert following.wait(PATIENCE_SECONDS) == 0

    assert (failure["name"], failure["text"]) == ("failure", "it is too hard")
    assert (last["type"], last["data"]["attempt"]["state"]) == ("outcome", "failed")
