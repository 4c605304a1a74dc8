"""The contract matrix: every command by every outcome, as real processes with --json."""

import contextlib
from pathlib import Path

import pytest

from inbox_orch.inbox import schemas
from inbox_orch.shared.errors import EXITS_WITH_DATA
from support.clicktree import LEAVES
from support.commands import Outcome, Project, locked_by_another, silence
from support.contracts import validated
from support.matrix import CELLS, OUTCOMES, Cell, Never, calls, missing_database, name_of

COMMANDS = ["inbox", *LEAVES]


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_declares_every_outcome(command: str):
    assert set(CELLS[command]) == set(OUTCOMES)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_a_model_of_its_output(command: str):
    assert command in schemas.COMMANDS


def test_nothing_is_declared_that_is_no_command():
    assert set(CELLS) == set(COMMANDS)
    assert set(schemas.COMMANDS) == {*COMMANDS, "help"}


def test_what_cannot_happen_has_its_reason():
    cells = [cell for row in CELLS.values() for cell in row.values()]
    assert all(cell.because for cell in cells if isinstance(cell, Never))
    assert all(cell.because for cell in cells if isinstance(cell, Cell) and cell.code is not None)


@pytest.mark.parametrize("command, outcome, closed", calls(CELLS), ids=name_of)
def test_command_keeps_the_contract(command: str, outcome: str, closed, tmp_path: Path):
    project = Project(tmp_path / "project")
    cell = CELLS[command][outcome]
    assert isinstance(cell, Cell)
    arguments = cell.arguments(project)
    if outcome == "no_database":
        arguments = (*missing_database(tmp_path), *arguments)

    ended = _run(project, arguments, closed, busy=outcome == "busy")

    assert b"Traceback" not in ended.stdout + ended.stderr
    assert ended.code == (OUTCOMES[outcome] if cell.code is None else cell.code), ended
    _check_output(command, ended)


def _run(project: Project, arguments: tuple[str, ...], closed, *, busy: bool) -> Outcome:
    lock = locked_by_another(project.path) if busy else contextlib.nullcontext()
    # Nobody is asked anything, whatever comes of the call.
    with lock, silence() as stdin:
        # --json stands anywhere before `--`: first in half of the calls, last in the other.
        first = bool(closed) or "--" in arguments
        line = ("--json", *arguments) if first else (*arguments, "--json")
        return project.run(*line, stdin=stdin, closed=closed, INBOX_BUSY_TIMEOUT="0.2")


def _check_output(command: str, ended: Outcome) -> None:
    """One value, or for a stream nothing but valid lines; all of it known to the models."""
    if ended.code in EXITS_WITH_DATA:
        assert "data" in ended.value
    if schemas.COMMANDS[command].stream and ended.code == 0:
        lines = ended.stdout.splitlines()
        assert lines
    else:
        value = ended.value
        assert value["ok"] or value["error"]["hint"], "it must say what to do next"
        lines = [ended.stdout]
    for line in lines:
        validated(command, line)
