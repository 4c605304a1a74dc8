"""The manuals for agents are true: every command in them runs, and an agent that knows nothing
else works through everything that can happen to it."""

import re
import shlex
from pathlib import Path

import pytest

from inbox_orch.shared.shell.texts import packaged
from support.commands import HeldThread, Outcome, Project
from support.orch_matrix import Enterprise

_BLOCK = re.compile(r"^```sh\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INLINE = re.compile(r"`([a-z][^`\n]*)`")


def block_lines(program: str) -> list[str]:
    """Every command in a block of the manual."""
    blocks = _BLOCK.findall(packaged(f"inbox_orch.{program}", "SKILL.md"))
    return [line for block in blocks for line in block.splitlines()]


def inline_lines(program: str, verbs: set[str]) -> list[str]:
    """Commands with options that are named in a sentence."""
    text = _BLOCK.sub("", packaged(f"inbox_orch.{program}", "SKILL.md"))
    found = [code.removeprefix(f"{program} ") for code in _INLINE.findall(text)]
    return [code for code in found if code.split()[0] in verbs and " --" in code]


class Agent:
    """An agent that knows the manual's text: its commands, and where in a result what stands."""

    def __init__(self, project: Project, name: str) -> None:
        self.project, self.manual = project, packaged("inbox_orch.inbox", "SKILL.md")
        self.known = {"NAME": name, "MAILBOX": "workers", "FILE": "result.txt", "KEY": "once"}
        (project.folder / "result.txt").write_text("the result")

    def does(self, verb: str, stdin: bytes = b"") -> Outcome:
        """Run the manual's command for this verb, its capital words filled in."""
        line = next(line for line in block_lines("inbox") if line.split()[1] == verb)
        words = [self.known.get(word, word) for word in shlex.split(line)[1:]]
        return self.project.run(*words, stdin=stdin)

    def finds(self, sentence: str, text: str) -> str:
        """What stands in the line that a sentence of the manual names: "TOKEN in the line `token`".
        Of a line with a `#`, what was written."""
        named = re.search(rf"{sentence} (?:line `([a-z]+)`|line with a `(#)`)", self.manual)
        assert named is not None, sentence
        begins = f"{named[1]}\t" if named[1] else str(named[2])
        line = next(line for line in text.splitlines() if line.startswith(begins))
        return line.split("\t", 1)[1]

    def claims(self) -> str:
        """Takes the next work; the text of the task."""
        text = self.does("claim").text
        self.known["THREAD"] = self.finds("THREAD stands in the", text)
        self.known["TOKEN"] = self.finds("TOKEN in the", text)
        return self.finds("the task in the first", text)

    def must_stop_at(self, code: int) -> bool:
        """Whether the manual's rules say that this exit code ends all work."""
        rules = self.manual.split("## Rules")[1].split("##")[0]
        (rule,) = [line for line in rules.splitlines() if f"xit {code} (" in line]
        return "stop at once" in rule


@pytest.fixture
def agent(project: Project) -> Agent:
    return Agent(project, "w1")


def test_an_agent_that_knows_only_the_manual_works_from_claim_to_done(agent: Agent):
    project = agent.project
    thread = project.send(body="Paint it.")

    assert agent.claims() == "Paint it."
    assert agent.does("update").code == 0
    assert agent.does("renew").code == 0
    assert agent.does("ask").code == 0
    with project.bus("leader") as bus:
        bus.reply(thread, body="this")
    assert agent.finds("The answer is in the", agent.does("wait-reply").text) == "this"
    assert agent.does("done", b"It is painted, `$(quietly)`.\n").code == 0
    assert agent.does("done", b"It is painted, `$(quietly)`.\n").code == 0

    with project.bus("leader") as bus:
        shown = bus.show(thread)
        result = bus.last_message(thread, "result")
    assert shown.thread.state == "done"
    assert [artifact.name for artifact in shown.artifacts] == ["result.txt"]
    assert result is not None
    assert result.body == "It is painted, `$(quietly)`.\n"


def test_an_agent_that_finds_nothing_is_told_to_call_again(agent: Agent):
    agent.known["90"] = "0.05"  # its patience, for the sake of the test

    ended = agent.does("claim")

    assert ended.code == 8
    assert "Exit 8: nothing yet. Run the same command again" in agent.manual


def test_an_agent_whose_lease_is_lost_stops_and_changes_nothing(agent: Agent):
    project = agent.project
    thread = project.send()
    agent.claims()
    with project.bus("w1") as bus:
        bus.release(thread, agent.known["TOKEN"])
    project.claim(thread, agent="w2")
    before = project.contents()

    for verb in ("update", "renew", "ask", "done", "fail", "release"):
        code = agent.does(verb, b"late").code
        assert code == 7
        assert agent.must_stop_at(code)
    assert project.contents() == before


def test_an_agent_whose_thread_is_cancelled_stops(agent: Agent):
    project = agent.project
    thread = project.send()
    agent.claims()
    with project.bus("leader") as bus:
        bus.cancel(thread)

    code = agent.does("update").code

    assert code == 10
    assert agent.must_stop_at(code)
    assert agent.does("done", b"late").code == 10


def test_an_agent_that_cannot_do_it_fails_or_hands_back(agent: Agent):
    project = agent.project
    ids = [project.send(), project.send()]
    agent.claims()
    assert agent.does("release").code == 0
    agent.claims()
    assert agent.does("fail").code == 0
    with project.bus("leader") as bus:
        assert [bus.show(each).thread.state for each in ids] == ["failed", "pending"]


def scene(project: Project) -> dict[str, str]:
    """Values for the capital words of a command: a held thread, and another one to read."""
    project.send()
    held: HeldThread = project.claim()
    (project.folder / "FILE").write_text("x")
    return {"NAME": "w1", "MAILBOX": "workers", "THREAD": held.thread, "TOKEN": held.token}


VERBS = {"fail", "claim", "update", "renew", "ask", "done", "release", "fetch"}


@pytest.mark.parametrize("line", block_lines("inbox"))
def test_every_command_of_the_workers_manual_runs(project: Project, line: str):
    values = scene(project)
    words = [values.get(word, word) for word in shlex.split(line)[1:]]
    if "wait-reply" in words:
        with project.bus("leader") as bus:
            bus.reply(values["THREAD"], body="this")

    assert project.run(*words, stdin=b"the result").code == 0


@pytest.mark.parametrize("line", inline_lines("inbox", VERBS))
def test_every_option_that_the_workers_manual_names_is_there(project: Project, line: str):
    values = scene(project)
    held = (values["THREAD"], "--token", values["TOKEN"], "--body", "why")
    assert project.run(*line.split(), *held).code == 0


def test_the_options_in_sentences_are_found():
    assert len(inline_lines("inbox", VERBS)) >= 2
    assert len(block_lines("inbox")) >= 15
    assert len(block_lines("orch")) >= 15


def works(project: Enterprise) -> None:
    """A worker does the next task."""
    commit = "git -c user.name=W -c user.email=w@example.invalid commit -qm done"
    script = f"echo x >> result.txt && git add -A && {commit}"
    line = ("work", "--agent", "w1", "--mailbox", "workers", "--once")
    assert project.run(*line, "--", "sh", "-c", script).code == 0


def asks(project: Enterprise) -> HeldThread:
    """A worker takes the next task, and asks."""
    claimed = project.json("claim", "--agent", "w1", "--mailbox", "workers").data
    held = HeldThread(claimed["thread"]["id"], claimed["lease"]["token"])
    assert project.run("ask", *held.arguments, "--body", "which?").code == 0
    return held


def test_every_command_of_the_leaders_manual_runs_in_its_order(tmp_path: Path):
    project = Enterprise(tmp_path / "project")
    values = {"KEY": "lexer", "NEXT": "parser", "MAILBOX": "workers"}
    held = None
    verbs = []
    for line in block_lines("orch"):
        words = [values.get(word, word) for word in shlex.split(line)[1:]]
        verb = " ".join(words[:2])
        verbs.append(verb)
        if verb == "wait --json":
            held = asks(project)
        elif verb == "task show":
            assert held is not None
            assert project.run("fail", *held.arguments, "--body", "why", "--fatal").code == 0
            assert project.orch("reconcile").code == 0
        elif verb == "wait --until":
            works(project)
            assert project.orch("wait", "--wait", "20").code == 0
            assert project.orch("dispatch").code == 0
            works(project)
        ended = project.orch(*words)
        assert ended.code == 0, (line, ended)

    assert verbs[-2:] == ["run close", "help exit-codes"]
    (run,) = project.orch("run", "list", "--all", "--json").data["items"]
    assert run["state"] == "closed"
