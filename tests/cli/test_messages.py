"""What is said when something goes wrong: what happened, and what may have been meant."""

import subprocess
from pathlib import Path

import pytest

from support.commands import ULID, Project
from support.orch_matrix import Enterprise


@pytest.fixture
def enterprise(tmp_path: Path) -> Enterprise:
    return Enterprise(tmp_path / "project").tasks("lexer", "parser")


def mistyped(thread: str) -> str:
    """The id with another character near its end."""
    return thread[:-2] + ("X" if thread[-2] != "X" else "Y") + thread[-1]


@pytest.mark.parametrize(
    "verb", ["show", "reply", "cancel", "update", "done", "wait-reply", "claim"]
)
def test_an_id_that_is_nearly_right_is_recognised(project: Project, verb: str):
    thread = project.send()
    options = {
        "show": (),
        "reply": ("--agent", "a", "--body", "b"),
        "cancel": ("--agent", "a"),
        "claim": ("--agent", "a"),
    }.get(verb, ("--token", "0" * 32, *(("--body", "b") if verb == "update" else ())))

    error = project.json(verb, mistyped(thread), *options).error
    assert (error["code"], error["hint"]) == ("not_found", f"did you mean {thread}?")


def test_an_id_that_is_like_none_leads_to_the_list(project: Project):
    project.send()
    for given in (ULID, "x", "x" * 100_000, "\U0001f600" * 10):
        assert "list" in project.json("show", "--agent=w1", "--", given).error["hint"]


def test_a_sealed_thread_is_not_suggested_to_others(project: Project):
    thread = project.send(sealed=True)

    assert thread not in project.json("show", mistyped(thread)).error["hint"]
    assert thread in project.json("show", mistyped(thread), "--agent", "leader").error["hint"]


def test_a_mailbox_that_is_nearly_right_is_recognised(project: Project):
    project.send()

    error = project.json("claim", "--agent", "w1", "--mailbox", "wrokers").error

    assert (error["code"], error["hint"]) == (
        "nothing_available",
        "did you mean --mailbox workers?",
    )
    assert "--wait" in project.json("claim", "--agent", "w1", "--mailbox", "other").error["hint"]


@pytest.mark.parametrize("line, meant", [
    ("inbox clam", "inbox claim"),
    ("inbox skill instal", "inbox skill install"),
    ("inbox help enviroment", "environment"),
    ("inbox schema clam", "claim"),
    ("orch dispach", "orch dispatch"),
    ("orch run ini", "orch run init"),
    ("orch help exitcodes", "exit-codes"),
    ("orch schema run int", "run init"),
    ("orch task show lexr", "lexer"),
    ("orch task show LEXER", "lexer"),
    ("orch dispatch parsr", "parser"),
    ("orch dep add parser --on lexr", "lexer"),
    ("orch status --state waitng", "waiting"),
    ("orch task list --state WAITING", "waiting"),
    ("orch timeline --format sgv", "svg"),
    ("inbox list --state pendng", "pending"),
])  # fmt: skip
def test_what_is_nearly_right_is_recognised(enterprise: Enterprise, line: str, meant: str):
    program, *words = line.split()
    run = enterprise.run if program == "inbox" else enterprise.orch

    hint = run("--json", *words).error["hint"]

    assert hint.replace("`", "") == f"did you mean {meant}?"


def test_a_run_that_is_nearly_right_is_recognised(enterprise: Enterprise):
    with enterprise.scheduler() as scheduler:
        name = scheduler.run(None).name

    error = enterprise.orch("status", "--run", name.upper(), "--json").error

    assert error["hint"] == f"did you mean {name}?"


@pytest.mark.parametrize("line", [
    ("send", "--too", "w"), ("list", "--mailboxes", "w"), ("claim", "--lese", "5"),
])  # fmt: skip
def test_an_option_that_is_nearly_right_is_recognised(project: Project, line):
    error = project.json(*line).error

    assert "Did you mean" in error["message"]
    assert error["hint"] == f"`inbox {line[0]} --help` shows how it is called"


def test_a_wrong_call_always_leads_to_the_help(project: Project):
    error = project.json("claim", "--agent", "w1", "--lease", "0").error

    assert error["hint"] == "`inbox claim --help` shows how it is called"


@pytest.mark.parametrize("program", ["inbox", "orch"])
def test_help_explains_the_contract_in_lines_that_fit(enterprise: Enterprise, program: str):
    run = enterprise.run if program == "inbox" else enterprise.orch

    for topic, words in {
        "environment": ("INBOX_DB", "ORCH_RUN", "INBOX_RESULT", "ORCH_HEAD_COMMIT"),
        "exit-codes": ("lease_lost", "141", "the same call again"),
        "json": ('"ok":true', "data.items", "inbox schema COMMAND"),
    }.items():
        text = run("help", topic).text
        assert [word for word in words if word not in text] == []
        assert max(map(len, text.splitlines())) <= 100
        assert run("help", topic, "--json").data["help"].strip() == text.strip()


def test_help_of_a_command_is_what_the_command_says_itself(enterprise: Enterprise):
    assert enterprise.run("help", "claim").text == enterprise.run("claim", "--help").text
    assert (
        enterprise.orch("help", "run", "init").text == enterprise.orch("run", "init", "--help").text
    )
    assert enterprise.run("help").text == enterprise.run("--help").text


def test_exit_codes_stand_in_the_help_of_the_whole_program_alone(enterprise: Enterprise):
    """A group of commands repeated all of them, which nobody had asked for."""
    texts = {words: enterprise.orch(*words, "--help").text for words in ((), ("run",))}

    assert {words: "Exit codes" in text for words, text in texts.items()} == {
        (): True,
        ("run",): False,
    }
    assert enterprise.orch("help", "run").text == texts["run",]


@pytest.mark.parametrize(
    "words, hint",
    [
        (["echo hi"], "nothing was claimed; a line for the shell is written `-- sh -c 'echo hi'`"),
        (["ehco"], "nothing was claimed; check its name, PATH and its executable bit"),
        (["a b", "c"], "nothing was claimed; check its name, PATH and its executable bit"),
    ],
)
def test_a_line_in_quotes_in_the_place_of_a_command_leads_to_the_shell(
    project: Project, words: list[str], hint: str
):
    ended = project.run("work", "--agent", "w1", "--mailbox", "w1", "--once", "--", *words)

    said = f"inbox: the command '{words[0]}' is not found\nhint: {hint}\n"
    assert (ended.code, ended.stderr.decode()) == (2, said)


@pytest.mark.parametrize("called", ["orch", "orch run", "orch council group", "inbox skill"])
def test_a_program_without_its_command_says_so_in_a_line(
    called: str, inbox_bin: str, orch_bin: str, tmp_path: Path
):
    program, *words = called.split()
    command = [str({"inbox": inbox_bin, "orch": orch_bin}[program]), *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"{program}: Missing command.",
        f"hint: `{called} --help` shows how it is called",
    ]


def test_a_body_that_ends_with_a_delimiter_is_stored_and_warned_of(project: Project):
    body = ("--body", "Fix the lexer.\nEOF'")
    sent = project.json("send", "--agent", "L", "--to", "q", "--subject", "s", *body)
    replied = project.json("reply", sent.data["thread"]["id"], "--agent", "q", *body)

    for done in (sent, replied):
        assert done.code == 0
        assert done.data["message"]["body"] == body[1]
        assert done.stderr.decode().startswith(
            'inbox: warning: the body ends with the line "EOF\'", which looks like'
        )


def test_names_of_mailboxes_are_taken_letter_by_letter_and_the_help_says_so(project: Project):
    project.send()

    assert project.json("claim", "--agent", "w1", "--mailbox", "Workers").code == 8
    assert "Upper and lower case differ" in " ".join(project.run("claim", "--help").text.split())
