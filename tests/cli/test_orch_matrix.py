"""The contract matrix of `orch`: every command by every outcome, as real processes."""

import contextlib
from pathlib import Path
from typing import get_args

import click
import pytest

from inbox_orch.orch import schemas
from inbox_orch.orch.cli import program
from inbox_orch.orch.runs import readiness, states
from inbox_orch.orch.schemas import things
from inbox_orch.shared.errors import EXITS_WITH_DATA
from inbox_orch.shared.shell.commandline import Program, Verb
from support.commands import locked_by_another, silence
from support.contracts import validated
from support.matrix import OUTCOMES, Cell, Never, calls, missing_database, name_of
from support.orch_matrix import CELLS, Enterprise, command_names

COMMANDS = command_names()
# Once is enough for what takes so long.
ONCE = (("demo", "ok", ()), ("council demo", "ok", ()))
CALLS = [call for call in calls(CELLS) if call not in ONCE]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_declares_every_outcome(command: str):
    assert set(CELLS[command]) == set(OUTCOMES)


def test_every_command_has_a_model_and_nothing_else_has():
    assert set(CELLS) == set(COMMANDS)
    assert set(schemas.COMMANDS) == {*COMMANDS, "help"}


def test_what_cannot_happen_has_its_reason():
    cells = [cell for row in CELLS.values() for cell in row.values()]
    assert all(cell.because for cell in cells if isinstance(cell, Never))
    assert all(cell.because for cell in cells if isinstance(cell, Cell) and cell.code is not None)


def test_the_states_in_the_models_are_those_of_the_tables():
    def values(literal: object) -> set[str]:
        return set(get_args(literal))

    assert values(things.RunState) == set(states.RUN_STATES)
    assert values(things.TaskState) == set(states.TASK_STATES)
    assert values(things.AttemptState) == set(states.ATTEMPT_STATES)
    assert values(things.Condition) == set(readiness.CONDITIONS)


@pytest.mark.parametrize("command, outcome, closed", CALLS, ids=name_of)
def test_command_keeps_the_contract(command: str, outcome: str, closed, tmp_path: Path):
    project = Enterprise(tmp_path / "project")
    cell = CELLS[command][outcome]
    assert isinstance(cell, Cell)
    arguments = cell.arguments(project)
    if outcome == "no_database":
        arguments = (*missing_database(tmp_path), *arguments)

    lock = locked_by_another(project.path) if outcome == "busy" else contextlib.nullcontext()
    # Nobody is asked anything, whatever comes of the call.
    with lock, silence() as stdin:
        given = {"stdin": stdin, "closed": closed, "INBOX_BUSY_TIMEOUT": "0.2"}
        ended = project.orch(*arguments, "--json", **given)

    assert b"Traceback" not in ended.stdout + ended.stderr
    assert ended.code == (OUTCOMES[outcome] if cell.code is None else cell.code), ended
    lines = ended.stdout.splitlines(keepends=True)
    if not schemas.COMMANDS[command].stream:
        assert len(lines) == 1
    for line in lines:
        validated(command, line, schemas.COMMANDS)
    last = ended._replace(stdout=lines[-1]).value
    assert last["ok"] or last["error"]["hint"], "it must say what to do next"
    assert ("data" in last) == (ended.code in {0, *EXITS_WITH_DATA})


@pytest.mark.parametrize("command", [c for c in COMMANDS if c != "orch"])
def test_help_is_json_too_and_shows_examples(command: str, tmp_path: Path):
    ended = Enterprise(tmp_path / "project").orch(*command.split(), "--help", "--json")

    text = validated("help", ended.stdout, schemas.COMMANDS).data.help
    assert f"Usage: orch {command}" in text
    assert f"  orch {command}" in text
    assert max(map(len, text.splitlines())) <= 80


def test_the_program_names_its_exit_codes(tmp_path: Path):
    ended = Enterprise(tmp_path / "project").orch("--help")

    assert "Exit codes" in ended.text
    assert "the result is there, and it is not a plain success" in ended.text


def test_commands_are_verbs_in_groups():
    def check(group: click.Group) -> None:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert isinstance(command, (Program, Verb)), name
            if isinstance(command, Program):
                check(command)

    check(program)


def test_the_schema_of_one_command_accepts_its_output(tmp_path: Path):
    project = Enterprise(tmp_path / "project")
    found = project.orch("schema", "run", "init", "--json").data["command"]

    assert (found["id"], found["stream"]) == ("run init", False)
    assert found["json_schema"]["title"] == "orch run init"
    every = project.orch("schema", "--json").data["items"]
    assert [each["id"] for each in every] == list(schemas.COMMANDS)
