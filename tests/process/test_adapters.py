"""`--with NAME`: a coding agent that is known, through `inbox work`, `orch do` and `orch drive`."""

import json
from pathlib import Path

import pytest

from inbox_orch.inbox import Bus
from inbox_orch.orch import schemas
from support.clocks import SteppingClock
from support.commands import Outcome, Project, run
from support.contracts import validated
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


# -- sessions ----------------------------------------------------------------------------------


def goes_on(session: str, agent: str | None = "claude") -> str:
    """The payload of a visit that continues the work of an earlier one."""
    named = {} if agent is None else {"agent": agent}
    return json.dumps({"session": {"id": session, **named}})


def usage(project: Project, thread: str) -> dict[str, object]:
    return json.loads(show(project, thread).messages[-1].payload)


def test_any_worker_with_the_same_agent_goes_on_with_a_session(project, stub):
    project.send()
    assert work(project, stub, "--once").code == 0
    thread = project.send(payload=goes_on("s-1"), body="mend it")
    ended = work(project, stub, "--once")
    assert ended.code == 0, ended

    assert stub.calls[-1].endswith("--permission-mode acceptEdits --resume s-1")
    assert stub.heard("s-1") == "do it\nmend it\n"
    said = usage(project, thread)
    assert (said["session_id"], said["resumed_session_id"]) == ("s-1", "s-1")
    assert ended.stderr == b""


def test_a_session_that_is_lost_is_said_and_the_whole_task_goes_to_a_new_one(project, stub):
    thread = project.send(payload=goes_on("s-9"), body="mend it")
    ended = work(project, stub, "--once")
    assert ended.code == 0, ended

    assert [" --resume " in call for call in stub.calls] == [True, False]
    assert stub.heard("s-1") == "mend it\n"
    said = usage(project, thread)
    assert (said["session_id"], said["lost_session_id"]) == ("s-1", "s-9")
    assert "resumed_session_id" not in said
    assert f"thread {thread}: session s-9 was lost, so a new one was begun".encode() in ended.stderr
    errors = content(project, thread, "stderr")
    assert b"session s-9 of Claude Code is lost" in errors and b"No conversation found" in errors


def test_a_session_in_which_a_worker_was_killed_is_not_gone_on_with(project, stub):
    """It may still be writing there; and what it was in the middle of nobody knows."""
    thread = project.send(payload=goes_on("s-1"))
    with Bus.open(project.path, agent="dead", clock=SteppingClock(-400)) as bus:
        bus.claim(thread, mailboxes=["workers"])
    ended = work(project, stub, "--once")
    assert ended.code == 0, ended

    assert not any("--resume" in call for call in stub.calls)
    assert b"a worker was lost in session s-1, so a new one is begun" in ended.stderr


def test_a_session_is_gone_on_with_after_the_task_was_handed_back(project, stub):
    project.send()
    assert work(project, stub, "--once").code == 0
    stub.meets("out-of-turns")
    project.send(payload=goes_on("s-1"))
    assert work(project, stub, "--once", "--retry-in", "0").code == 0
    stub.recovers()
    assert work(project, stub, "--once").code == 0
    assert [call.endswith("--resume s-1") for call in stub.calls] == [False, True, True]


@pytest.mark.parametrize("agent", ["codex", None])
def test_the_session_of_another_agent_is_not_gone_on_with(project, stub, agent):
    project.send(payload=goes_on("s-1", agent))
    assert work(project, stub, "--once").code == 0
    assert not any("--resume" in call for call in stub.calls)


def test_a_command_of_ones_own_finds_its_session_in_its_environment(project, monkeypatch):
    monkeypatch.setenv("INBOX_SESSION", "of-somebody-else")
    script = """echo "{\\"session_id\\": \\"${INBOX_SESSION:-new}-1\\"}" > "$INBOX_RESULT" """
    given = (None, goes_on("mine", None), goes_on("s-1"), goes_on("--no-sandbox", None))
    threads = [project.send(payload=payload) for payload in given]
    command = ("--", "sh", "-c", script)
    ended = project.run(
        *("work", "--agent", "w1", "--mailbox", "workers", "--idle-exit", "0", *command)
    )
    assert ended.code == 0, ended
    said = [usage(project, thread)["session_id"] for thread in threads]
    assert said == ["new-1", "mine-1", "new-1", "new-1"]


# -- answers that are refused ------------------------------------------------------------------

VERDICT = '{"type": "object", "required": ["verdict"]}'
REVIEWED = {"schema": VERDICT, "payload": '{"retry_refused": true}'}


def test_an_agent_that_answers_prose_is_asked_once_more_in_its_session(project, stub):
    thread = project.send(**REVIEWED)
    stub.says("It looks good to me.")
    stub.mends('{\\"verdict\\": \\"approve\\"}')
    ended = work(project, stub, "--once", "--toolset", "readonly")
    assert ended.code == 0, ended

    (line,) = finished(ended)
    assert (line["outcome"], line["runs"]) == ("done", 2)
    assert json.loads(show(project, thread).messages[-1].payload) == {"verdict": "approve"}
    assert show(project, thread).thread.deliveries == 1
    assert stub.calls[1].endswith("--disallowedTools mcp__* --resume s-1")
    asked = (stub.folder / "task").read_text()
    assert "expected JSON" in asked and '"required":["verdict"]' in asked.replace(" ", "")
    assert "do it" not in asked
    prose = [a for a in show(project, thread).artifacts if a.name == "result"]
    assert len(prose) == 2


def test_one_that_answers_prose_again_costs_its_delivery(project, stub):
    thread = project.send(**REVIEWED)
    stub.says("It looks good to me.")
    ended = work(project, stub, "--once")

    (line,) = finished(ended)
    assert (line["outcome"], line["runs"], len(stub.calls)) == ("handed_back", 2, 2)
    assert "It looks good to me." in show(project, thread).messages[-1].body
    assert show(project, thread).thread.state == "pending"
    ended = work(project, stub, "--once")
    assert [" --resume " in call for call in stub.calls] == [False, True, False, True]
    assert "Since then" in stub.heard("s-2")


def test_one_that_fails_when_it_is_asked_again_has_failed_with_its_first_answer(project, stub):
    """As a worker that does not answer, and not as a review that somebody has given up."""
    thread = project.send(**REVIEWED)
    stub.says("It looks good to me.")
    stub.meets("breaks")
    (line,) = finished(work(project, stub, "--once"))

    assert (line["outcome"], line["exit_status"], len(stub.calls)) == ("handed_back", 1, 2)
    assert "does not accept the result" in show(project, thread).messages[-1].body
    assert show(project, thread).thread.state == "pending"


def test_one_whose_session_is_gone_gets_the_task_with_the_question(project, stub):
    project.send(**REVIEWED)
    stub.says("It looks good to me.")
    stub.mends('{\\"verdict\\": \\"approve\\"}')
    stub.meets("forgetful")
    (line,) = finished(work(project, stub, "--once"))

    assert (line["outcome"], len(stub.calls)) == ("done", 3)
    told = (stub.folder / "task").read_text()
    assert told.startswith("do it") and "cannot be taken in" in told


def test_a_thread_of_another_kind_is_not_asked_twice(project, stub):
    thread = project.send(schema=VERDICT)
    stub.says("It looks good to me.")
    (line,) = finished(work(project, stub, "--once"))

    assert (line["outcome"], len(stub.calls)) == ("failed", 1)
    assert show(project, thread).thread.state == "failed"


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


BLUEPRINT = """\
version: 1
id: again
stages:
  - {id: write, type: agent, goal: Write it., on_success: look}
  - {id: look, type: deterministic, run: "grep again *.txt", on_success: done, on_failure: mend}
  - {id: mend, type: agent, goal: Mend it., max_visits: 2, on_success: look}
"""


def test_what_a_gate_finds_is_mended_in_the_session_that_has_written_it(repository, stub):
    (repository / ".orch" / "blueprints").mkdir(parents=True)
    (repository / ".orch" / "blueprints" / "again.yaml").write_text(BLUEPRINT)
    git(repository, "add", "--all")
    git(repository, "commit", "--quiet", "--message", "A blueprint")
    line = ("do", "Fix it", "--with", "claude", "--blueprint", "again", "--json")
    ended = run(*line, program="orch", folder=repository, PATH=stub.path)
    assert ended.code == 0, ended

    assert [call.endswith("--resume s-1") for call in stub.calls] == [False, True]
    assert "This step: write" in stub.heard("s-1") and "This step: mend" in stub.heard("s-1")
    name = json.loads(ended.stdout)["data"]["run"]["name"]
    line = ("task", "show", "fix-it", "--run", name, "--json")
    shown = run(*line, program="orch", folder=repository)
    validated("task show", shown.stdout, schemas.COMMANDS)
    visits = json.loads(shown.stdout)["data"]["attempts"][0]["visits"]
    sessions = [v["session"] for v in visits if v["kind"] == "agent"]
    first = {"id": "s-1", "agent": "claude", "resumed": False, "lost": None}
    assert sessions == [first, {**first, "resumed": True}]
    printed = run("task", "show", "fix-it", program="orch", folder=repository).stdout.decode()
    assert "mend, succeeded, by" in printed and "resumed session s-1" in printed


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
