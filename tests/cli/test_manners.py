"""What every command may be counted on for, whichever it is: it drops no word, asks nothing, waits
no longer than its caller's patience, and says little when there is nothing to say."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from inbox_orch.inbox.cli import program as inbox_program
from inbox_orch.orch.cli import program as orch_program
from support.commands import Project
from support.orch_matrix import Enterprise

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted(
    path for folder in ("inbox", "orch", "shared", "migrations")
    for path in (ROOT / folder).rglob("*.py")
)  # fmt: skip
# Harnesses of agents cut a call off at about two minutes.
PATIENCE_SECONDS = 110


def commands(group: click.Group, *words: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by its words."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from commands(command, *words, name)
        else:
            yield " ".join((*words, name)), command


EVERY = {
    f"{program.name} {words}": command
    for program in (inbox_program, orch_program)
    for words, command in commands(program)
}


def test_no_command_passes_over_a_word_that_it_does_not_know():
    assert len(EVERY) > 80
    for name, command in EVERY.items():
        assert not command.allow_extra_args, name
        assert not command.ignore_unknown_options, name


def test_a_stray_word_sends_nothing(project: Project):
    line = ("send", "--to", "w1", "--subject", "s", "--body", "b", "--agent", "leader")
    for extra in (("oops",), ("oops", "--priority", "1"), ("--", "oops")):
        ended = project.json(*line, *extra)
        assert ended.error["code"] == "usage"
        assert "oops" in ended.error["message"]
    assert project.json("list").data["items"] == []


def test_a_wait_by_default_ends_before_a_caller_loses_patience():
    waits = {
        name: parameter.default if isinstance(parameter.default, float) else None
        for name, command in EVERY.items()
        for parameter in command.params
        if "--wait" in parameter.opts and name != "orch drive"  # that one is a leader, not a call
    }
    waiting = {"inbox wait-reply", "inbox watch", "orch wait", "orch council wait"}
    assert {name for name, seconds in waits.items() if seconds} == waiting
    assert all(60 <= waits[name] <= PATIENCE_SECONDS for name in waiting), waits


# What asks whoever sits at a terminal.
_ASKING = {"click": {"prompt", "confirm", "getchar", "pause", "edit"}, "getpass": {"getpass"}}
_WORDS = (
    "input(",
    "getpass",
    "prompt",
    "click.confirm",
    "click.getchar",
    "click.pause",
    "click.edit",
)


def _prompts(code: str) -> Iterator[str]:
    if not any(word in code for word in _WORDS):
        return
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id == "input":
                yield f"input, line {node.lineno}"
            elif (
                isinstance(called, ast.Attribute)
                and isinstance(called.value, ast.Name)
                and called.attr in _ASKING.get(called.value.id, ())
            ):
                yield f"{called.attr}, line {node.lineno}"
        elif isinstance(node, ast.keyword) and node.arg in ("prompt", "confirmation_prompt"):
            yield f"{node.arg}=, line {node.value.lineno}"


def test_no_code_asks_anybody_anything():
    found = {str(p.relative_to(ROOT)): list(_prompts(p.read_text())) for p in SOURCES}
    assert len(found) > 200
    assert {path: lines for path, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    "code",
    ["input('sure? ')", "click.confirm('sure?')", "click.option('--x', prompt=True)",
     "getpass.getpass()"],
)  # fmt: skip
def test_a_question_to_whoever_calls_is_noticed(code: str):
    assert list(_prompts(code))


def test_a_wait_for_nothing_says_so_in_less_than_a_kilobyte(tmp_path: Path):
    project = Enterprise(tmp_path / "project").tasks("a")
    held = project.claim()
    for ended in (
        project.json("wait-reply", *held.arguments, "--wait", "0"),
        project.json("fetch", "--agent", "w1", "--wait", "0.01"),
        project.json("claim", "--agent", "w1", "--wait", "0.01"),
        project.orch("wait", "--wait", "0", "--json"),
    ):
        assert ended.code == 8, ended
        assert len(ended.stdout) < 1000
        assert ended.stderr == b""


@pytest.mark.parametrize("warnings", ["always", "error"])
def test_warnings_of_python_never_mix_with_the_value(project: Project, warnings: str):
    for line in (("list",), ("show", "nothing"), ("send",), ("--agent", "w1")):
        plain = project.json(*line)
        forced = project.json(*line, PYTHONWARNINGS=warnings, PYTHONDEVMODE="1")
        assert forced.stdout == plain.stdout
        assert forced.value == plain.value


def empty_words(text: str) -> Iterator[str]:
    """What the tables of a source say when they are empty."""
    calls = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))
    for call in calls:
        if isinstance(call.func, ast.Name) and call.func.id == "Table":
            given = [*call.args[2:3], *(k.value for k in call.keywords if k.arg == "empty")]
            for within in (each for value in given for each in ast.walk(value)):
                if isinstance(within, ast.Constant) and isinstance(within.value, str):
                    yield within.value


def test_an_empty_table_says_so_in_one_style():
    said = {words for path in SOURCES for words in empty_words(path.read_text())}

    assert len(said) > 10
    assert [w for w in said if not re.fullmatch(r"[a-z][a-z, ]+[a-z]", w)] == []
