"""`--with NAME`: a coding agent that is known, through `inbox work`, `orch do` and `orch drive`."""

import json
from pathlib import Path

import pytest

from support.commands import Outcome, Project, run
from support.runs import git
from support.stub_agents import Stub
from support.workers import Worker, content, kinds, show

LIMIT = "You've hit your session limit"


@pytest.fixture
def stub(tmp_path: Path) -> Stub:
    """The agent, installed."""
    return Stub(tmp_path / "agents")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def work(project: Project, stub: Stub, *options: str) -> Outcome:
    """A worker that runs the agent."""
    who = ("work", "--json", "--agent", "w1", "--mailbox", "workers", "--with", "claude")
    return project.run(*who, *options, PATH=stub.path)


def finished(ended: Outcome) -> list[dict[str, object]]:
    """Its lines on threads with which it has done."""
    lines = [json.loads(line) for line in ended.stdout.splitlines()]
    return [line for line in lines if line.get("type") == "finished"]


def test_its_final_message_is_the_body_and_its_cost_the_payload(project, stub):
    thread = project.send()
    ended = work(project, stub, "--once")
    assert ended.code == 0, ended
    message = show(project, thread).messages[-1]
    assert (message.kind, message.body) == ("result", "I edited the file.")
    assert json.loads(message.payload) == {
        "schema": "inbox.usage/1",
        "agent": "claude",
        "session_id": "s-1",
        "cost_microdollars": 250000,
        "cost_usd": 0.25,
        "usage": {"input_tokens": 10, "output_tokens": 5},
    }
    assert (project.folder / "project.txt").exists()
    assert b'"type":"result"' in content(project, thread, "stdout")
    assert (stub.folder / "task").read_text() == "do it\n"


def test_what_it_leaves_running_is_not_waited_for(project, stub):
    thread = project.send()
    stub.meets("leaves-a-server")
    assert work(project, stub, "--once", "--timeout", "60").code == 0
    message = show(project, thread).messages[-1]
    assert (message.kind, message.body) == ("result", "I edited the file.")


def test_to_read_only_it_is_given_no_flag_that_lets_it_edit(project, stub):
    thread = project.send()
    assert work(project, stub, "--once", "--toolset", "readonly").code == 0
    assert show(project, thread).messages[-1].body == "I may not edit files."
    assert not (project.folder / "project.txt").exists()


def test_at_a_limit_of_its_use_the_thread_goes_back_and_no_other_is_taken(project, stub):
    first, second = project.send(), project.send()
    stub.meets("limited")
    ended = work(project, stub, "--idle-exit", "0")
    assert ended.code == 0, ended
    assert [line["outcome"] for line in finished(ended)] == ["handed_back"]
    assert show(project, first).thread.state == "pending"
    assert LIMIT in show(project, first).messages[-1].body
    assert show(project, second).thread.deliveries == 0


def test_without_a_log_in_one_thread_fails_and_says_so_and_the_worker_ends(project, stub):
    first, second = project.send(), project.send()
    stub.meets("logged-out")
    ended = work(project, stub)
    assert ended.code == 6, ended
    assert b"not logged in; no further thread was taken" in ended.stderr
    assert b"/login" in ended.stderr
    assert show(project, first).thread.state == "failed"
    assert "is not logged in: start `claude` once" in show(project, first).messages[-1].body
    assert show(project, second).thread.deliveries == 0


def test_when_its_turns_are_used_up_the_thread_fails(project, stub):
    thread = project.send()
    stub.meets("out-of-turns")
    assert work(project, stub, "--once").code == 0
    assert "used up its turns" in show(project, thread).messages[-1].body
    assert show(project, thread).thread.state == "failed"


def test_a_refusal_is_a_question_and_the_answer_goes_on_with_it(project, stub):
    thread = project.send()
    stub.meets("refuses")
    options = ("--once", "--with", "claude")
    with Worker(project, *options, command=(), environment={"PATH": stub.path}) as worker:
        worker.hear("waiting")
        question = show(project, thread).messages[-1]
        assert question.kind == "question"
        assert "Claude Code refuses the task\nI will not do that." in question.body
        with project.bus("leader") as bus:
            bus.reply(thread, body="It is only a test file.")
        assert worker.hear("finished")["outcome"] == "done"
        assert worker.end() == 0
    assert "It is only a test file." in (stub.folder / "task").read_text()


def test_a_name_that_is_unknown_or_not_installed_claims_nothing(project, stub):
    thread = project.send()
    who = ("work", "--agent", "w1", "--mailbox", "workers", "--once")
    unknown = project.run(*who, "--with", "claud", PATH=stub.path)
    missing = project.run(*who, "--with", "gemini", PATH=stub.path)
    both = project.run(*who, "--with", "claude", "--", "true", PATH=stub.path)
    assert [unknown.code, missing.code, both.code] == [2, 2, 2]
    assert b"claude, codex, gemini, opencode, cursor-agent" in unknown.stderr
    assert b"Gemini CLI is not installed" in missing.stderr and b"-- CMD" in missing.stderr
    assert kinds(project, thread) == ["thread_sent"]


def test_a_bare_command_that_cannot_edit_is_told_once(project, stub):
    who = ("work", "--agent", "w1", "--mailbox", "workers", "--idle-exit", "0", "--")
    told = project.run(*who, "claude", "-p", PATH=stub.path)
    silent = project.run(*who, "claude", "-p", "--permission-mode", "acceptEdits", PATH=stub.path)
    assert (told.code, silent.code) == (0, 0)
    assert told.stderr.count(b"--with claude") == 1
    assert silent.stderr == b""


# -- through orch ----------------------------------------------------------------------------


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one commit, and nothing else."""
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet", "-b", "main")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", "first")
    return folder


def test_do_with_an_agent_that_is_limited_once_ends_on_the_branch(repository, stub):
    stub.meets("limited")
    ended = run(
        "do", "Fix it", "--with", "claude", program="orch", folder=repository, PATH=stub.path
    )
    assert ended.code == 0, ended
    assert len(stub.calls) == 2
    assert (repository / "fix-it-1.txt").read_text() == "edited\n"
    assert "I edited the file." in git(repository, "log", "--format=%B", "main")
    report = run("report", "--json", program="orch", folder=repository)
    assert json.loads(report.stdout)["data"]["cost"]["usd"] == 0.25


def test_drive_ends_at_once_without_a_log_in_and_goes_on_with_one(repository, stub):
    def orch(*arguments: str) -> Outcome:
        return run(*arguments, program="orch", folder=repository, PATH=stub.path)

    assert run("init", folder=repository).code == 0
    assert orch("run", "init", "--title", "Two").code == 0
    for key in ("one", "two"):
        assert orch("task", "add", "--task", key, "--title", key).code == 0
    unknown = orch("drive", "--with", "claud")
    assert (unknown.code, stub.calls) == (2, [])

    stub.meets("logged-out")
    ended = orch("drive", "--with", "claude")
    assert ended.code == 6, ended
    told = ended.stderr.decode() or json.loads(ended.stdout.splitlines()[-1])["error"]["message"]
    assert "the worker claude cannot go on: Claude Code is not logged in" in told
    assert len(stub.calls) == 1

    stub.recovers()
    ended = orch("drive", "--with", "claude", "--slots", "2")
    assert ended.code == 0, ended
