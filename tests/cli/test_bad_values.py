"""Bad values of options, for every option of the click tree: refused, and nothing changed."""

import json
import os
from pathlib import Path

import click
import pytest

from inbox_orch.inbox import schemas
from inbox_orch.inbox.cli import program
from inbox_orch.shared.shell.commandline import PATH, Number, Text
from inbox_orch.shared.shell.execution import execute
from support.clicktree import Choice, numbers, parameters
from support.commands import Project

NO_NUMBERS = (
    "",
    " ",
    "NaN",
    "nan",
    "-nan",
    "-inf",
    "Infinity",
    "1e400",
    "1e2",
    "9" * 400,
    "0x10",
    "0o7",
    "1_000",
    "1,5",
    "１２",
    "5 5",
    "five",
    "--5",
)
NASTY_TEXTS = (
    "",
    " ",
    "..",
    "../..",
    "a b",
    "a\nb",
    "\x1b[2J",
    "\x7f",
    "\u202e",
    "[red]",
    "%s%n{0}",
    "'; DROP TABLE thread; --",
    "x" * 100_000,
    "-1",
    "\U0001f600",
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    # Deep enough for `init ../..` to stay within the folder of the test.
    project = Project(tmp_path / "a" / "b" / "project")
    monkeypatch.chdir(project.folder)
    return project


@pytest.mark.parametrize("choice", numbers(), ids=str)
def test_what_is_no_number_in_range_is_refused(choice: Choice, project: Project, call):
    before = project.contents()
    kind = choice.parameter.type
    assert isinstance(kind, Number)
    values = [*NO_NUMBERS, f"{kind.low - 1:.0f}", f"{kind.high + 1:.0f}"]
    values += [] if kind.forever else ["inf"]
    values += ["1.5"] if kind.whole else []
    values += ["0"] if kind.low > 0 else []

    for value in values:
        ended = call(*choice.given(value))
        assert ended.code == 2, (value, ended)
        assert choice.parameter.opts[0].lstrip("-") in ended.error["message"], (value, ended)

    assert project.contents() == before


@pytest.mark.parametrize("choice", numbers(), ids=str)
def test_both_ends_of_a_range_are_numbers(choice: Choice, project: Project, call):
    kind = choice.parameter.type
    assert isinstance(kind, Number)
    waits = choice.parameter.opts[0] in ("--wait", "--idle-exit")
    for value in (kind.low,) if waits else (kind.low, kind.high):
        text = f"{value:.3f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"
        ended = call(*choice.given(text))
        assert ended.code != 2, (value, ended)


def texts() -> list[Choice]:
    return [choice for choice in parameters() if not isinstance(choice.parameter.type, Number)]


@pytest.mark.parametrize("choice", texts(), ids=str)
def test_nasty_text_never_meets_a_bug(choice: Choice, project: Project, call):
    for value in NASTY_TEXTS:
        ended = call(*choice.given(value))
        assert ended.code not in (1, 130, 143), (value, ended)
        if not schemas.COMMANDS[choice.command].stream:
            ended.value  # noqa: B018 - it judges


@pytest.mark.parametrize("choice", texts(), ids=str)
def test_bytes_that_are_no_text_are_refused(choice: Choice, project: Project, call):
    ended = call(*choice.given(os.fsdecode(b"ab\xffcd")))

    if choice.parameter.type is PATH:
        assert ended.code != 1, ended
    else:
        assert ended.code == 2, ended
        if not isinstance(choice.parameter.type, click.Choice):
            assert ended.error["details"]["offset"] == 2


def test_every_parameter_says_whether_it_is_a_path():
    """A plain string would let bytes through that cannot be stored."""
    kinds = (Text, Number, click.Choice, type(PATH))
    assert [str(c) for c in parameters() if not isinstance(c.parameter.type, kinds)] == []


@pytest.mark.parametrize("option", ["--db", "--db-id", "--agent"])
def test_an_empty_common_option_is_not_taken_for_none(option: str, project: Project, call):
    """`--db "$UNSET"` must not act on another database than the one meant."""
    ended = call("list", f"{option}=")

    assert ended.code == 2
    assert option in ended.error["message"]


def test_json_as_a_value_is_no_option(project: Project, capfd):
    arguments = ["send", "--to", "w", "--agent", "a", "--subject"]
    code = execute("inbox", lambda: program, [*arguments, "--json"])

    assert code == 0
    out, _ = capfd.readouterr()
    with pytest.raises(json.JSONDecodeError):
        json.loads(out)
