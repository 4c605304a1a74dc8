"""Tools called in this process: what a command does after its output waits for the delivery."""

import threading
from pathlib import Path

import pytest

from inbox_orch.inbox.cli import program
from inbox_orch.shared.tools.tool_calls import Call, Place, carry_out
from support.commands import Project
from support.timing import PATIENCE_SECONDS
from support.tooling import Caller, tools_of


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


@pytest.fixture
def worker(project: Project) -> Caller:
    return Caller(project.path, "w1")


def subjects(answer) -> list[str]:
    return [item["thread"]["subject"] for item in answer["data"]["items"]]


def test_the_cursor_moves_only_once_the_messages_have_been_delivered(project, worker):
    project.send("one")

    assert subjects(worker("fetch", mailbox="workers", delivered=False)) == ["one"]
    assert subjects(worker("fetch", mailbox="workers")) == ["one"]
    assert subjects(worker("fetch", mailbox="workers")) == []


def test_a_claim_that_nobody_receives_is_given_back(project, worker):
    thread = project.send()

    worker("claim", mailbox="workers", delivered=False)

    shown = worker("show", thread=thread, mailbox="workers")["data"]["thread"]
    assert (shown["state"], shown["deliveries"]) == ("pending", 0)


def test_a_payload_arrives_as_it_was(project, worker):
    payload = {"null": None, "list": [], "text": "é\x00"}
    sent = worker("send", to="w2", subject="s", body="b", payload=payload)

    assert sent["data"]["message"]["payload"] == payload


def test_text_is_kept_whatever_the_locale(project, worker, monkeypatch):
    sent = worker("send", to="w2", subject="s", body="é → 日本\n" * 1000)["data"]["thread"]["id"]

    shown = worker("show", thread=sent, full=True)["data"]["messages"][0]
    assert shown["body"] == "é → 日本\n" * 1000


def test_errors_are_those_of_the_command_line(project, worker):
    for tool, given, line in (
        ("show", {"thread": "nope"}, ("show", "nope")),
        ("list", {"limit": "x"}, ("list", "--limit", "x")),
        ("list", {"state": ["nope"]}, ("list", "--state", "nope")),
        ("claim", {"mailbox": "workers"}, ("claim", "--mailbox", "workers")),
        ("claim", {"lease": 0}, ("claim", "--lease", "0")),
        ("reply", {"thread": "a b", "body": "c"}, ("reply", "a b", "--body", "c")),
        ("cancel", {"thread": "t", "body": ""}, ("cancel", "t", "--body", "")),
        ("save_artifact", {"thread": "t", "artifact": "a", "output": "-"},
            ("show", "t", "--artifact", "a")),
    ):  # fmt: skip
        said = worker(tool, **given)["error"]
        assert said == project.json(*line, "--agent", "w1").error, (tool, given)


def test_a_wait_ends_when_its_caller_gives_up(project):
    answered = threading.Event()
    call = Call(answered.set)
    place = Place(program, (f"--db={project.path}", "--agent=w1"))
    given = {"mailbox": ["workers"], "wait": 50}
    thread = threading.Thread(
        target=carry_out, args=(place, tools_of("inbox")["inbox_claim"], given, call)
    )
    thread.start()
    call.give_up()
    thread.join(PATIENCE_SECONDS)

    assert not thread.is_alive()
    assert call.answer is not None
    assert call.answer["error"]["code"] == "interrupted"
    assert project.json("list", "--state", "claimed").data["items"] == []
