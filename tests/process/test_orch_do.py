"""`orch do`: one command from a wish to an integrated branch, whatever comes in between."""

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch import schemas
from support.commands import Outcome, command_path, run
from support.contracts import validated
from support.processes import until
from support.runs import git
from support.timing import PATIENCE_SECONDS
from support.workers import is_alive

COMMIT = 'git add . && git commit --quiet -m "by $INBOX_AGENT"'
WORK = f'set -e; echo done > "${{PWD##*/}}.txt"; {COMMIT}'


class Place:
    """A repository with one commit, and nothing else."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        git(folder, "init", "--quiet", "-b", "main")
        git(folder, "commit", "--quiet", "--allow-empty", "-m", "first")

    def orch(self, *arguments: str) -> Outcome:
        return run(*arguments, program="orch", folder=self.folder)

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """An `orch do` that goes on."""
        return subprocess.Popen(
            [command_path("orch"), "do", *arguments],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def data(self, *arguments: str, code: int = 0) -> dict[str, Any]:
        """What `orch do … --json` says, held against its schema."""
        ended = self.orch("do", "--json", *arguments)
        assert ended.code == code, ended
        validated("do", ended.stdout, schemas.COMMANDS)
        value: dict[str, Any] = json.loads(ended.stdout)
        return value

    def runs(self) -> list[str]:
        """The states of all runs."""
        ended = self.orch("run", "list", "--all", "--json")
        return [item["state"] for item in json.loads(ended.stdout)["data"]["items"]]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A fresh repository."""
    return Place(tmp_path / "project")


def hangs_once(flag: Path) -> str:
    """A command that stays the first time, and works when `flag` is there."""
    there, pid = f"'{flag}'", f"'{flag}.pid'"
    stays = f"echo $$ > {pid}.new; mv {pid}.new {pid}; exec sleep 600"
    return f"if [ -e {there} ]; then {WORK}; else {stays}; fi"


def process_in(file: Path) -> int:
    """The number of the process that has written it into a file."""
    until(file.exists)
    return int(file.read_text())


# -- it is done ------------------------------------------------------------------------------


def test_from_nothing_to_an_integrated_branch(place: Place):
    ended = place.orch("do", "Fix the parser", "--worker", WORK)

    assert ended.code == 0, ended
    assert ended.stderr.decode() == f"made the database {place.folder}/.inbox/bus.db\n"
    assert (place.folder / "fix-the-parser-1.txt").read_text() == "done\n"
    assert git(place.folder, "status", "--porcelain") == ""
    assert place.runs() == ["closed"]


def test_its_json_has_the_whole_result(place: Place):
    value = place.data("Fix it", "--worker", WORK)

    data = value["data"]
    assert (data["outcome"], data["closed"], data["database_created"]) == ("succeeded", True, True)
    assert data["integrated"]["onto"]["branch"] == "main"
    assert data["integrated"]["onto"]["state"] == "fast_forwarded"


def test_a_command_after_two_dashes_is_run_as_it_stands(place: Place, tmp_path: Path):
    script = tmp_path / "agent two.sh"
    script.write_text(f'#!/bin/sh\necho "$1" > said; {COMMIT}\n')
    script.chmod(0o755)

    assert place.orch("do", "Say it", "--", "../agent two.sh", "a  'b' $c").code == 0

    assert (place.folder / "said").read_text() == "a  'b' $c\n"
    assert git(place.folder, "log", "-1", "--format=%s", "HEAD^2") == "by agent-two"


def test_the_body_reaches_the_worker(place: Place):
    copies = f"cat > told; {COMMIT}"

    assert place.orch("do", "Title", "--body", "All of it.", "--worker", copies).code == 0
    assert "All of it." in (place.folder / "told").read_text()


def test_what_the_command_leaves_uncommitted_comes_in_under_its_name(place: Place):
    assert place.orch("do", "Say hello", "--", "sh", "-c", "cat > hello.txt; echo bye").code == 0

    assert (place.folder / "hello.txt").read_text() == "Say hello"
    said = git(place.folder, "log", "-1", "--format=%an%n%B", "HEAD^2").split()
    assert (said[0], said[-1]) == ("sh", "bye")


def test_it_can_be_left_to_the_command_to_commit(place: Place):
    ended = place.orch("do", "Leave it", "--no-harvest", "--", "sh", "-c", "echo x > left")

    assert ended.code == 11
    assert b"not committed: left" in ended.stdout


def test_a_plan_is_done_by_several_at_once(place: Place, tmp_path: Path):
    plan = tmp_path / "plan.yaml"
    plan.write_text(
        "tasks:\n"
        + "".join(f"  - {{task: t{n}, title: Task {n}}}\n" for n in range(4))
        + "  - {task: last, title: Last, depends_on: [t0, t3]}\n"
    )

    ended = place.orch("do", "--plan", str(plan), "--slots", "3", "--worker", WORK)

    assert ended.code == 0, ended
    assert len(list(place.folder.glob("*-1.txt"))) == 5


def test_what_conflicts_is_done_anew_on_top_of_the_rest(place: Place, tmp_path: Path):
    plan = tmp_path / "plan.yaml"
    plan.write_text("tasks: [{task: a, title: A}, {task: b, title: B}]\n")
    # The second try of a task is told which work to merge, in the last words of its text.
    head = "$(grep -o '[0-9a-f]\\{40\\}' | tail -n 1)"
    merges = f"git merge --quiet {head} || {{ git checkout --theirs same"
    worker = (
        "set -e; case $PWD in "
        f'*-1) echo "${{PWD##*/}}" > same; {COMMIT};; '
        f"*) {merges}; echo both >> same; {COMMIT}; }};; esac"
    )

    ended = place.orch("do", "--plan", str(plan), "--worker", worker)

    assert ended.code == 0, ended
    assert (place.folder / "same").read_text() == "b-1\nboth\n"


def test_another_branch_than_the_one_that_is_checked_out(place: Place):
    git(place.folder, "branch", "release")

    assert place.orch("do", "Fix", "--onto", "release", "--worker", WORK).code == 0

    assert git(place.folder, "log", "--format=%s", "main") == "first"
    assert git(place.folder, "show", "release:fix-1.txt") == "done"


# -- it goes on ------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_the_same_call_goes_on_where_the_last_one_was_stopped(
    place: Place, tmp_path: Path, number: int
):
    arguments = ("Fix", "--worker", hangs_once(tmp_path / "flag"))
    running = place.start(*arguments)
    command = process_in(tmp_path / "flag.pid")

    running.send_signal(number)
    running.communicate(timeout=PATIENCE_SECONDS)
    until(lambda: not is_alive(command))
    (tmp_path / "flag").touch()

    assert place.orch("do", *arguments).code == 0
    assert place.runs() == ["closed"]
    assert (place.folder / "fix-1.txt").exists()


def test_what_failed_is_tried_again_by_the_same_call(place: Place, tmp_path: Path):
    worker = f"test -e '{tmp_path}/mended' && {{ {WORK}; }}"

    value = place.data("Fix", "--worker", worker, code=11)
    assert value["error"]["code"] == "run_unsuccessful"
    assert value["data"]["integrated"] is None
    (tmp_path / "mended").touch()

    assert place.orch("do", "Fix", "--worker", worker).code == 0
    assert place.runs() == ["closed"]


def test_a_question_ends_it_and_the_answer_lets_it_go_on(place: Place):
    inbox = command_path("inbox")
    asks = (
        f'if [ -s "$INBOX_TASK_FILE" ] && \'{inbox}\' show "$INBOX_THREAD" | grep -q blue; then '
        f"{WORK}; else '{inbox}' ask --body 'Which colour?' --option red --option blue; fi"
    )

    value = place.data("Paint", "--worker", asks, code=11)
    assert value["error"]["code"] == "needs_decision"
    (question,) = value["data"]["questions"]
    assert question["message"]["options"] == ["red", "blue"]
    run_name = value["data"]["run"]["name"]
    assert place.orch("answer", "--run", run_name, "paint", "--body", "blue").code == 0

    assert place.orch("do", "Paint", "--worker", asks).code == 0


def test_a_checkout_with_changes_keeps_them_and_gets_the_result_by_the_same_call(place: Place):
    (place.folder / "fix-1.txt").write_text("mine")

    refused = place.data("Fix", "--allow-dirty", "--worker", WORK, code=11)
    assert "main was not moved" in refused["error"]["message"]
    assert (place.folder / "fix-1.txt").read_text() == "mine"
    (place.folder / "fix-1.txt").unlink()

    assert place.orch("do", "Fix", "--worker", WORK).code == 0
    assert (place.folder / "fix-1.txt").read_text() == "done\n"


def test_once_it_is_done_the_same_call_does_it_once_more(place: Place):
    counts = f"date +%s%N >> count; {COMMIT}"

    assert [place.orch("do", "Count", "--worker", counts).code for _ in range(2)] == [0, 0]

    assert len((place.folder / "count").read_text().split()) == 2
    assert place.runs() == ["closed", "closed"]


def test_two_at_once_share_the_work_of_the_same_wish(place: Place, tmp_path: Path):
    place.orch("do", "Warm up", "--worker", WORK)
    arguments = ("Fix", "--worker", hangs_once(tmp_path / "flag"))
    first = place.start(*arguments)
    process_in(tmp_path / "flag.pid")
    second = place.start(*arguments)
    until(lambda: len(place.runs()) == 2)

    first.send_signal(signal.SIGTERM)
    first.communicate(timeout=PATIENCE_SECONDS)
    (tmp_path / "flag").touch()
    _, said = second.communicate(timeout=PATIENCE_SECONDS)

    if second.returncode != 0:  # it has met the command that stays before the flag was there
        assert place.orch("do", *arguments).code == 0, said
    assert place.runs() == ["closed", "closed"]


def test_two_wishes_at_once_both_come_to_the_branch(place: Place):
    place.orch("do", "Warm up", "--worker", WORK)
    running = [place.start(title, "--worker", WORK) for title in ("One", "Two")]

    for each in running:
        _, said = each.communicate(timeout=PATIENCE_SECONDS)
        assert each.returncode == 0, said
    assert {"one-1.txt", "two-1.txt"} <= set(os.listdir(place.folder))


def test_its_worker_does_nothing_of_what_others_wait_for(place: Place):
    place.orch("run", "init", "--title", "Others")
    place.orch("task", "add", "--task", "theirs", "--title", "Theirs")
    place.orch("dispatch")

    assert place.orch("do", "Fix", "--worker", WORK).code == 0

    ended = place.orch("status", "--run", "others", "--json")
    assert json.loads(ended.stdout)["data"]["counts"] == {"active": 1}
    assert place.runs() == ["open", "closed"]


# -- bad input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((), "it is not said what to do"),
        (("Fix",), "it is not said who does it"),
        (("Fix", "--worker", "no-such-agent"), "'no-such-agent' is not found"),
        (("Fix", "--", "no-such-agent"), "'no-such-agent' is not found"),
        (("Fix", "--plan", "plan.yaml", "--check", "true", "--worker", "true"), "are for one task"),
        (("", "--worker", "true"), "title"),
        (("Fix", "--slots", "0", "--worker", "true"), "64"),
        (("Fix", "--decide-within", "5", "--worker", "true"), "--decide-within says when"),
    ],
)
def test_what_cannot_be_done_is_refused_and_leaves_nothing(
    place: Place, arguments: tuple[str, ...], said: str
):
    refused = place.orch("do", "--json", *arguments)

    assert refused.code == 2, refused
    assert said in json.loads(refused.stdout)["error"]["message"]
    assert not (place.folder / ".inbox").exists()


def test_without_a_branch_it_has_to_be_said_where_the_result_goes(place: Place):
    git(place.folder, "checkout", "--quiet", "--detach")

    refused = place.orch("do", "Fix", "--worker", WORK)

    assert refused.code == 2
    assert b"give --onto BRANCH" in refused.stderr
    assert place.orch("do", "Fix", "--worker", WORK, "--onto", "main").code == 0


def test_outside_of_a_repository_it_says_so(tmp_path: Path):
    refused = run("do", "Fix", "--", "true", program="orch", folder=tmp_path)

    assert refused.code == 2 and b"git" in refused.stderr
    assert os.listdir(tmp_path) == []


def test_a_role_that_is_named_has_a_worker_of_its_own_who_reviews(place: Place):
    review = """printf '{"verdict": "approve", "summary": "fine"}'"""
    found = place.data(
        *("Add it", "--blueprint", "standard_task"),
        *("--worker", WORK, "--worker", f"frontier_reviewer={review}"),
    )
    assert (found["data"]["outcome"], found["data"]["closed"]) == ("succeeded", True)
    shown = place.orch("attempt", "show", "add-it/1", "--run", found["data"]["run"]["name"])
    assert "not reviewed" not in shown.text
    config = json.loads(place.orch("run", "show", "--json").text)["data"]["config"]
    assert config["roles"] == {
        "frontier_reviewer": {"mailbox": f"{found['data']['run']['name']}-frontier_reviewer"}
    }


SLOW = """\
version: 1
id: slow
stages:
  - {id: write, type: agent, goal: Write it., timeout_seconds: 1, max_visits: 2,
     on_success: done, on_failure: write}
"""
HANGS = """
if grep -q "took longer than 1 s" "$INBOX_TASK_FILE"; then
    [ ! -e half.txt ] || exit 1
    echo whole > whole.txt
else
    echo half > half.txt
    echo $$ > "$PIDS"
    exec sleep 600
fi
"""


def test_a_worker_that_hangs_is_ended_and_the_next_one_finds_all_as_it_was(tmp_path, monkeypatch):
    place = Place(tmp_path / "repository")
    (place.folder / ".orch" / "blueprints").mkdir(parents=True)
    (place.folder / ".orch" / "blueprints" / "slow.yaml").write_text(SLOW)
    git(place.folder, "add", "--all")
    git(place.folder, "commit", "--quiet", "--message", "A blueprint")
    monkeypatch.setenv("PIDS", str(tmp_path / "pids"))
    place.data("Fix it", "--blueprint", "slow", "--", "sh", "-ec", HANGS)

    assert (place.folder / "whole.txt").read_text() == "whole\n"
    assert not (place.folder / "half.txt").exists()
    assert not is_alive(int((tmp_path / "pids").read_text()))
