"""The config of a run: what a file may say, what it comes to, what is masked of it."""

import json
import textwrap
from pathlib import Path

import pytest
import yaml

from inbox_orch.orch.documents import reading
from inbox_orch.orch.documents.config import read_config
from inbox_orch.orch.runs.config import Config, NoAnswer, Setup, from_given
from inbox_orch.orch.runs.model import Limits
from inbox_orch.orch.runs.role import Role
from inbox_orch.shared.errors import InboxOrchError

WHOLE = """
    copy: [.env, config/local.toml]
    setup:
      command: make deps
      timeout_seconds: 90
    limits: {run_seconds: 3600, silent_seconds: 300.5}
    max_attempts: 2
    max_infra_attempts: 5
    checks: [make test, make lint]
    mailboxes:
      gpu: {max_parallel: 1}
    environment: {TOKEN: s3cret-value, LEVEL: "3"}
    secrets: [TOKEN, HOME_KEY]
    submodules: true
    lfs: skip
    cancel_grace_seconds: 5
"""


def read(tmp_path: Path, text: str, name: str = "run.yaml") -> Config:
    path = tmp_path / name
    path.write_text(textwrap.dedent(text))
    return read_config(str(path))


def problems(tmp_path: Path, text: str, name: str = "run.yaml") -> list[dict]:
    with pytest.raises(InboxOrchError) as raised:
        read(tmp_path, text, name)
    assert raised.value.code == "usage"
    return raised.value.details["problems"]


def test_every_setting_arrives(tmp_path):
    config = read(tmp_path, WHOLE)

    assert config == Config(
        copy=(".env", "config/local.toml"),
        setup=Setup("make deps", 90),
        limits=Limits(run_seconds=3600, silent_seconds=300.5),
        max_attempts=2,
        max_infra_attempts=5,
        checks=("make test", "make lint"),
        mailboxes={"gpu": 1},
        environment={"TOKEN": "s3cret-value", "LEVEL": "3"},
        secrets=("TOKEN", "HOME_KEY"),
        submodules=True,
        lfs="skip",
        cancel_grace_seconds=5,
    )
    assert from_given(json.loads(config.canonical())) == config


@pytest.mark.parametrize("text", ["", "# nothing\n", "{}", "limits:\n", "setup: null\n"])
def test_what_is_not_said_is_the_default(tmp_path, text):
    assert read(tmp_path, text) == Config()
    assert read(tmp_path, text).canonical() == "{}"


def test_json_and_yaml_of_the_same_config_are_equal(tmp_path):
    config = read(tmp_path, WHOLE)
    again = read(tmp_path, json.dumps(config.as_json()), "run.json")

    assert again.canonical() == config.canonical()


def test_every_problem_is_told_with_its_line_and_what_to_write(tmp_path):
    found = problems(
        tmp_path,
        """\
        cheks: [make]
        max_attempts: "3"
        limits:
          run_second: 5
          block_seconds: 0
        environment:
          PORT: 8080
        copy:
          - /etc/passwd
          - ../up
        lfs: maybe
        """,
    )

    assert [(p["line"], p["where"]) for p in found] == [
        (1, "cheks"),
        (2, "max_attempts"),
        (4, "limits.run_second"),
        (5, "limits.block_seconds"),
        (7, "environment.PORT"),
        (9, "copy[0]"),
        (10, "copy[1]"),
        (11, "lfs"),
    ]
    assert found[0]["instead"] == "did you mean `checks`?"
    assert "whole number" in found[1]["message"]
    assert found[2]["instead"] == "did you mean `run_seconds`?"
    assert '"8080" in quotes' in found[4]["instead"]


@pytest.mark.parametrize("name, text, line", [
    ("a.yaml", "copy: []\nlfs: skip\ncopy: []\n", 3),
    ("a.json", '{"copy": [],\n "lfs": "skip",\n "copy": []}', 3),
    ("a.json", '{"setup": {"command": "a",\n\n "command": "b"}}', 3),
    ("a.json", '{"copy": [,]}', 1),
    ("a.json", '{\n"cancel_grace_seconds": NaN}', 1),
    ("a.yaml", "copy:\n  - a\n b: c\n", 3),
    ("a.yaml", "lfs: skip\n---\nlfs: skip\n", 2),
    ("a.yaml", "copy: &a [*a]\n", 1),
    ("a.yaml", "lfs: !!python/object:os.system skip\n", 1),
    ("a.yaml", "? [a]\n: b\n", 1),
    ("a.yaml", "- a\n- b\n", 1),
    ("a.yaml", "[" * 2000, 1),
    ("a.json", "[" * 200000, 1),
    ("a.yaml", "lfs: skip\ncopy: [\"a\x00\"]\n", 2),
])  # fmt: skip
def test_what_is_no_document_is_refused_with_its_line(tmp_path, name, text, line):
    (found,) = problems(tmp_path, text, name)
    assert found["line"] == line


@pytest.mark.parametrize(
    "text, said",
    [
        pytest.param("9" * 5000, "a number has too many digits", id="digits"),
        pytest.param("[" * 200000, "it is nested too deeply", id="deep"),
    ],
)
def test_json_that_the_library_cannot_read_is_refused_in_our_words(tmp_path, text, said):
    (found,) = problems(tmp_path, text, "run.json")
    assert found["message"].endswith(said)


def test_bytes_that_are_not_utf_8_are_refused_with_their_line(tmp_path):
    path = tmp_path / "run.yaml"
    path.write_bytes(b"lfs: skip\ncopy: [\xff]\n")
    with pytest.raises(InboxOrchError, match=r"run.yaml:2: it is not UTF-8: byte 17 is 0xff"):
        read_config(str(path))


def test_a_few_lines_of_aliases_do_not_become_a_billion_values(tmp_path):
    lines = ["a: &a [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"{b}: &{b} [{', '.join(['*' + a] * 10)}]" for a, b in zip("abcdefgh", "bcdefghi",
                                                                    strict=True)]  # fmt: skip
    (found,) = problems(tmp_path, "\n".join(lines))
    assert "more than 5000000 values" in found["message"]


def test_a_file_that_is_too_large_is_not_read_whole(tmp_path):
    (found,) = problems(tmp_path, "# " + "x" * 300_000)
    assert "more than 262144 bytes" in found["message"]


@pytest.mark.parametrize("text", ["yes", "no", "on", "2026-01-01", "12:30:00", "0x10", "1_000"])
def test_words_that_only_yaml_1_1_converts_stay_text(tmp_path, text):
    assert read(tmp_path, f"environment: {{A: {text}}}").environment == {"A": text}


def test_secrets_come_from_the_config_and_from_the_environment(tmp_path):
    config = read(tmp_path, WHOLE)

    assert config.secret_values({"HOME_KEY": "k1", "OTHER": "o"}) == ("s3cret-value", "k1")


def test_what_is_shown_of_a_config_has_its_secrets_masked(tmp_path):
    text = WHOLE.replace("make test", "make test KEY=s3cret-value")
    shown = read(tmp_path, text).shown()

    assert shown["environment"] == {"TOKEN": "***", "LEVEL": "3"}
    assert shown["checks"] == ["make test KEY=***", "make lint"]
    assert shown["secrets"] == ["TOKEN", "HOME_KEY"]
    assert "s3cret" not in json.dumps(shown)


def test_a_short_secret_does_not_spoil_the_names_of_secrets(tmp_path):
    shown = read(tmp_path, "environment: {TOKEN: T}\nsecrets: [TOKEN]").shown()

    assert shown["secrets"] == ["TOKEN"]
    assert shown["environment"] == {"TOKEN": "***"}


def test_that_a_secret_is_empty_is_not_shown(tmp_path):
    shown = read(tmp_path, "environment: {TOKEN: ''}\nsecrets: [TOKEN]").shown()

    assert shown["environment"] == {"TOKEN": "***"}


def test_a_task_has_its_own_settings_before_those_of_the_run():
    config = Config(limits=Limits(run_seconds=5, block_seconds=6), checks=("make",))

    assert config.limits_for(Limits(run_seconds=1)) == Limits(run_seconds=1, block_seconds=6)
    assert config.checks_for(None, worktree=True) == ("make",)
    assert config.checks_for(None, worktree=False) == ()
    assert config.checks_for((), worktree=True) == ()


@pytest.mark.parametrize("text", [WHOLE, "a: ]", "lfs: skip\nlfs: skip", "- *x", "\x07", "a: b: c"])
def test_without_the_c_library_yaml_reads_alike(tmp_path, monkeypatch, text):
    def outcome():
        try:
            return read(tmp_path, text)
        except InboxOrchError as error:
            return [problem["line"] for problem in error.details["problems"]]

    first = outcome()
    monkeypatch.setattr(reading, "_LOADER", yaml.SafeLoader)
    assert outcome() == first


def test_equal_configs_have_one_text_in_which_keys_are_sorted_and_nothing_is_escaped():
    config = Config(environment={"B": "ä", "A": "1"}, lfs="skip", copy=("x",), max_attempts=7)

    assert config.canonical() == (
        '{"copy":["x"],"environment":{"A":"1","B":"ä"},"lfs":"skip","max_attempts":7}'
    )
    assert Config().canonical() == "{}"


def test_only_what_differs_from_the_defaults_is_given_and_comes_back_as_it_was():
    config = Config(
        copy=(".env",),
        setup=Setup("make", 5.0),
        limits=Limits(run_seconds=5, check_seconds=1),
        checks=("make test",),
        mailboxes={"box": 2},
        secrets=("TOKEN",),
        submodules=True,
        cancel_grace_seconds=1.5,
        harvest=True,
    )

    assert config.given() == {
        "copy": [".env"],
        "setup": {"command": "make", "timeout_seconds": 5.0},
        "limits": {"run_seconds": 5, "check_seconds": 1},
        "checks": ["make test"],
        "mailboxes": {"box": {"max_parallel": 2}},
        "secrets": ["TOKEN"],
        "submodules": True,
        "cancel_grace_seconds": 1.5,
        "harvest": True,
    }
    assert from_given(config.given()) == config
    assert "harvest" not in Config().as_json()
    assert from_given(config.as_json()) == config
    assert from_given({}) == Config()


def test_what_is_handed_on_has_no_secret_in_it():
    config = Config(
        environment={"TOKEN": "s3cret", "LEVEL": "1"},
        secrets=("TOKEN", "UNSET"),
        checks=("curl s3cret",),
        setup=Setup("login s3cret"),
    )
    handed = config.without_secrets()

    assert handed.environment == {"LEVEL": "1"}
    assert handed.checks == ("curl ***",)
    assert handed.setup == Setup("login ***")
    assert handed.secrets == ("TOKEN", "UNSET")


def test_roles_decisions_and_what_is_looked_for_arrive(tmp_path):
    config = read(
        tmp_path,
        """\
        roles:
          frontier_reviewer: {mailbox: reviewers}
          my_own: {mailbox: mine}
        finds: [gates]
        decisions: {on_no_answer: abandon, within_seconds: 2h}
        """,
    )

    assert config.roles == {"frontier_reviewer": Role("reviewers"), "my_own": Role("mine")}
    assert config.finds == ("gates",)
    assert config.decisions == NoAnswer("abandon", 7200)
    assert from_given(json.loads(config.canonical())) == config
    assert read(tmp_path, json.dumps(config.as_json()), "run.json") == config
    assert read(tmp_path, "finds: []\n").finds == ()


def test_what_is_wrong_with_them_is_told_by_its_line(tmp_path):
    found = problems(
        tmp_path,
        """\
        roles:
          a/b: {mailbox: x}
          good: {mailbox: "no good"}
          other: {mailbx: x}
          last: reviewers
        finds:
          - setup
          - tools
        decisions:
          within_seconds: 60
        """,
    )

    assert [p["line"] for p in found] == [2, 3, 4, 5, 8, 9]
    assert found[2]["instead"] == "did you mean `mailbox`?"
    assert "on_no_answer: abandon" in str(found[5]["instead"])
    (found,) = problems(tmp_path, "finds: [gates, gates]\n")
    assert "`finds` names 'gates' twice" in found["message"]


def test_what_the_workers_of_a_role_run_arrives(tmp_path):
    config = read(
        tmp_path,
        """\
        roles:
          builder: {command: [sh, -c, "cat > notes"]}
          frontier_reviewer: {mailbox: reviewers, adapter: codex, toolset: readonly, model: m-1}
        """,
    )

    assert config.roles == {
        "builder": Role(command=("sh", "-c", "cat > notes")),
        "frontier_reviewer": Role("reviewers", None, "codex", "readonly", "m-1"),
    }
    assert from_given(json.loads(config.canonical())) == config
    assert read(tmp_path, json.dumps(config.as_json()), "run.json") == config


def test_what_is_wrong_with_the_workers_of_a_role_is_told_by_its_line(tmp_path):
    found = problems(
        tmp_path,
        """\
        roles:
          nobody: {}
          both: {command: [a], adapter: claude}
          unknown: {adapter: claud}
          alone: {mailbox: m, model: m-1}
          option: {adapter: claude, model: --yolo}
          empty: {command: []}
          tools: {adapter: claude, toolset: everything}
          nothing: {command: [""]}
        """,
    )

    assert [p["line"] for p in found] == [2, 3, 4, 5, 6, 7, 8, 9]
    assert "claude, codex" in str(found[2]["instead"])
