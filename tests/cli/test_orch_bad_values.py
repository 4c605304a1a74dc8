"""Numbers for options of `orch`, for every option of the click tree: out of range is refused."""

from collections.abc import Iterator

import click
import pytest

from inbox_orch.orch.cli import program
from inbox_orch.shared.shell.commandline import Number
from inbox_orch.shared.shell.execution import execute
from support.commands import Outcome
from support.orch_matrix import command_names


def numbers() -> Iterator[tuple[str, click.Parameter]]:
    """Every option and argument that takes a number, with the words of its command."""
    for words in command_names()[1:]:
        command: click.Command = program
        for word in words.split():
            assert isinstance(command, click.Group)
            found = command.get_command(click.Context(command), word)
            assert found is not None
            command = found
        yield from ((words, p) for p in command.params if isinstance(p.type, Number))


@pytest.fixture
def call(capfd: pytest.CaptureFixture[str]):
    """Runs a command line of `orch --json` in this process: for calls by the hundred."""

    def run(*arguments: str) -> Outcome:
        code = execute("orch", lambda: program, ["--json", *arguments])
        out, err = capfd.readouterr()
        return Outcome(code, out.encode(), err.encode())

    return run


@pytest.mark.parametrize(
    "words, parameter", [pytest.param(w, p, id=f"{w} {p.opts[0]}") for w, p in numbers()]
)
def test_what_is_no_number_in_range_is_refused(
    words: str, parameter: click.Parameter, call, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    kind = parameter.type
    assert isinstance(kind, Number)
    values = ["", "five", "NaN", "-inf", "1e400", f"{kind.low - 1:.0f}", f"{kind.high + 1:.0f}"]
    values += [] if kind.forever else ["inf"]
    values += ["1.5"] if kind.whole else []
    values += ["0"] if kind.low > 0 else []
    name = parameter.opts[0]

    for value in values:
        given = [f"{name}={value}"] if isinstance(parameter, click.Option) else [value]
        ended = call(*words.split(), *given)
        assert ended.error["code"] == "usage", (value, ended)
        assert name.lstrip("-") in ended.error["message"], (value, ended)
        assert ended.error["hint"]

    assert list(tmp_path.iterdir()) == []
