"""`--notify`: whoever does not look is told of questions, failures, decisions and the end, and no
run waits for it."""

import json
import time
from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch.leader import notices
from inbox_orch.orch.leader.notices import Notice, Notifier
from support.commands import command_path, run
from support.orch_matrix import Enterprise
from support.runs import git

NOTICE = Notice("failure", "a-run", "lexer", "lexer failed: no", "orch report --run a-run", {})


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    """A repository with an open run."""
    project = Enterprise(tmp_path / "project")
    project.orch("run", "init", "--title", "Told")
    return project


@pytest.fixture
def said() -> list[str]:
    """What a notifier had to complain of."""
    return []


def told(file: Path) -> list[dict[str, Any]]:
    """The notices in a file, by type: several are given at once."""
    found = [json.loads(line) for line in file.read_text().splitlines()]
    return sorted(found, key=lambda notice: str(notice["type"]))


def test_a_notice_is_one_json_object_on_the_standard_input(tmp_path: Path, said: list[str]):
    with Notifier([f"cat >> {tmp_path}/told"], said.append) as notifier:
        notifier.tell(NOTICE, NOTICE)

    assert (
        told(tmp_path / "told")
        == [
            {
                "type": "failure",
                "run": "a-run",
                "task": "lexer",
                "text": "lexer failed: no",
                "next": "orch report --run a-run",
            }
        ]
        * 2
    )
    assert said == []


def test_a_command_that_fails_is_complained_of_once(said: list[str]):
    with Notifier(["exit 3"], said.append) as notifier:
        notifier.tell(*[NOTICE] * 9)

    assert said == ["the notifier 'exit 3' ended with exit 3; the run goes on"]


def test_a_command_that_hangs_holds_nothing_up_and_is_ended(
    monkeypatch: pytest.MonkeyPatch, said: list[str]
):
    monkeypatch.setattr(notices, "_MOST_SECONDS", 0.05)

    begun = time.monotonic()
    with Notifier(["sleep 100; exit 3"], said.append) as notifier:
        notifier.tell(*[NOTICE] * 5)
        telling = time.monotonic() - begun

    assert telling < 50 and time.monotonic() - begun < 50
    assert said == [
        "the notifier 'sleep 100; exit 3' took too long, and was ended; the run goes on"
    ]


def test_an_interruption_waits_for_no_notifier(said: list[str]):
    begun = time.monotonic()
    notifier = Notifier(["sleep 100"], said.append)
    notifier.tell(NOTICE)
    notifier.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)

    assert time.monotonic() - begun < 50


def test_no_more_wait_than_there_is_room_for(said: list[str], tmp_path: Path):
    with Notifier([f"cat >> {tmp_path}/told"], said.append) as notifier:
        notifier.tell(*[NOTICE] * 500)

    given = len(told(tmp_path / "told"))
    assert given <= 68, "the oldest are left out, of those that wait"


def test_a_desktop_that_shows_nothing_is_complained_of(
    monkeypatch: pytest.MonkeyPatch, said: list[str], tmp_path: Path
):
    monkeypatch.setenv("PATH", str(tmp_path))

    with Notifier(["desktop"], said.append) as notifier:
        notifier.tell(NOTICE)

    assert said == [
        "neither notify-send nor osascript is there to show a desktop notice; the run goes on"
    ]


@pytest.mark.parametrize(
    "program, given",
    [
        ("notify-send", ["--app-name=orch", "--", "a-run: lexer", "lexer failed: no"]),
        (
            "osascript",
            [
                "-e",
                "on run said",
                "-e",
                "display notification (item 2 of said) with title (item 1 of said)",
                "-e",
                "end run",
                "a-run: lexer",
                "lexer failed: no",
            ],
        ),
    ],
)
def test_what_the_desktop_has_is_given_title_and_text(
    monkeypatch: pytest.MonkeyPatch,
    said: list[str],
    tmp_path: Path,
    program: str,
    given: list[str],
):
    stub = tmp_path / program
    stub.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/told\n')
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    with Notifier(["desktop"], said.append) as notifier:
        notifier.tell(NOTICE)

    assert (tmp_path / "told").read_text().splitlines() == given


def test_a_drive_tells_of_a_question_and_a_failure_and_of_its_end(
    project: Enterprise, tmp_path: Path
):
    for key in ("asks", "fails"):
        project.orch("task", "add", "--task", key, "--title", key, "--max-attempts", "1")
    inbox = command_path("inbox")
    asking = f"'{inbox}' ask --body 'Red or blue?' --option red --option blue"
    worker = f"case $PWD in *asks*) {asking} ;; *) exit 1 ;; esac"
    notify = ("--notify", f"cat >> {tmp_path}/told")

    ended = project.orch("drive", "--slots", "2", "--worker", worker, *notify)

    assert ended.code == 11, ended
    end, failure, question = told(tmp_path / "told")
    name = end["run"]
    assert (end["type"], end["outcome"], end["error"]) == ("end", "running", "needs_decision")
    assert (failure["type"], failure["task"]) == ("failure", "fails")
    assert failure["next"] == f"orch report --run {name}"
    assert question["task"] == "asks"
    assert question["text"].endswith("asks: Red or blue?")
    assert question["options"] == ["red", "blue"]
    assert question["next"] == f"orch answer --run {name} asks --body TEXT"


def test_the_config_of_a_run_can_name_who_is_told(tmp_path: Path):
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "--quiet", "-b", "main")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "first")
    plan = {
        "run": {"title": "Told", "config": {"notify": [f"cat >> {tmp_path}/told"]}},
        "tasks": [{"task": "one", "title": "One"}],
    }
    (tmp_path / "plan.yaml").write_text(json.dumps(plan))

    ended = run(
        *("do", "--plan", "../plan.yaml", "--worker", "echo 1 > one.txt"),
        program="orch",
        folder=folder,
    )

    assert ended.code == 0, ended
    (end,) = told(tmp_path / "told")
    assert end["text"] == f"{end['run']}: succeeded. 1 succeeded"
    assert (end["outcome"], end["error"], end["next"]) == ("succeeded", None, None)


def test_an_empty_command_is_refused(project: Enterprise):
    ended = project.orch("drive", "--wait", "0", "--notify", " ")

    assert ended.code == 2
    assert "a notifier is a shell command of 1 to 16384 bytes, not blank" in ended.stderr.decode()
