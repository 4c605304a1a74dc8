"""Nothing is guessed: what names something is not empty, and what takes one value gets one.

Each test is a table over every command of both programs. A call that is refused changes nothing, so
all those about one command are made in one project.
"""

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import click
import pytest

from inbox_orch.shared.shell.commandline import PATH, Number
from inbox_orch.shared.shell.execution import execute
from inbox_orch.shared.shell.value_types import NAME, TEXT
from support.commands import Outcome, Project
from support.every_option import EVERY, PROGRAMS, Taken

# What may be any text, and is judged by what it is for.
PROSE = {"--body", "--option", "--reason", "--subject", "--title"}


HOOKS = ("hook",)


@pytest.fixture
def call(project: Project, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    """Runs a command line with --json in this process, where there is a database."""
    monkeypatch.chdir(project.folder)

    def run(name: str, *words: str) -> Outcome:
        code = execute(name, lambda: PROGRAMS[name], ["--json", *words])
        out, err = capfd.readouterr()
        return Outcome(code, out.encode(), err.encode())

    return run


def judged(each: Taken) -> bool:
    """Whether the parameter is a text of some kind; numbers and words of a list are no names."""
    return each.parameter.type in (NAME, TEXT, PATH)


def of_each_command(wanted: Iterable[Taken]) -> pytest.MarkDecorator:
    """One test for each command, with those of its parameters that are wanted."""
    commands = [tuple(found) for _, found in groupby(wanted, lambda e: (e.program, *e.words))]
    names = [" ".join((found[0].program, *found[0].words)) for found in commands]
    return pytest.mark.parametrize("parameters", commands, ids=names)


@of_each_command(e for e in EVERY if judged(e))
def test_an_empty_value_names_nothing_and_is_refused(
    parameters: tuple[Taken, ...], project: Project, call
):
    before = project.contents()

    for each in parameters:
        ended = call(each.program, *each.given(""))

        assert ended.code == 2, (str(each), ended)
        if each.called not in PROSE:
            assert ended.error["code"] == "usage", (str(each), ended)
            assert ended.error["message"].endswith(" is empty"), (str(each), ended)
            assert ended.error["hint"] == "a variable may not be set", (str(each), ended)
        assert project.contents() == before, str(each)


def test_only_prose_may_be_any_text():
    assert {e.called for e in EVERY if e.parameter.type is TEXT} == PROSE
    assert {e.called for e in EVERY if e.parameter.type is click.STRING} == set()


WITH_VARIABLE = [e for e in EVERY if e.parameter.envvar]


@of_each_command(WITH_VARIABLE)
def test_an_empty_variable_names_nothing_and_is_refused(
    parameters: tuple[Taken, ...], project: Project, call, monkeypatch: pytest.MonkeyPatch
):
    before = project.contents()

    for each in parameters:
        variable = str(each.parameter.envvar)
        with monkeypatch.context() as patch:
            patch.setenv(variable, "")
            ended = call(each.program, *each.words, *needed(each.words, PROGRAMS[each.program]))

        assert (ended.code, ended.error["message"]) == (2, f"{variable} is empty"), ended
        assert variable in ended.error["hint"], (str(each), ended)
        assert project.contents() == before, str(each)


def test_the_variables_of_options_are_those_that_are_told_of():
    found = {str(e.parameter.envvar) for e in WITH_VARIABLE}
    assert found == {"INBOX_THREAD", "INBOX_TOKEN", "ORCH_COUNCIL", "ORCH_RUN"}


@pytest.mark.parametrize("variable", ["INBOX_DB", "INBOX_DB_ID", "INBOX_AGENT"])
def test_an_empty_common_variable_is_refused_where_it_would_be_used(
    variable: str, call, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv(variable, "")

    for line in ("inbox list", "inbox fetch", "orch run list", "orch status"):
        ended = call(*line.split())

        assert (ended.code, ended.error["message"]) == (2, f"{variable} is empty"), line
    assert call("inbox", "help").code == call("orch", "schema").code == 0


def test_an_option_wins_over_a_variable_that_is_empty(
    project: Project, call, monkeypatch: pytest.MonkeyPatch
):
    for variable in ("INBOX_DB", "INBOX_DB_ID", "INBOX_AGENT", "ORCH_RUN"):
        monkeypatch.setenv(variable, "")
    where = ("--db", str(project.folder / ".inbox" / "bus.db"), "--agent", "leader")

    assert call("inbox", "list", *where).code == 0
    assert call("orch", "status", "--run", "other", *where).error["code"] == "not_found"


def test_no_run_is_opened_beside_the_database_that_an_empty_variable_was_to_name(
    call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    monkeypatch.setenv("INBOX_DB", "")

    assert call("orch", "run", "init", "--title", "T", "--no-repo").code == 2
    assert call("inbox", "init").code == 2
    assert list(empty.iterdir()) == []


SINGLE = [
    e
    for e in EVERY
    if isinstance(e.parameter, click.Option) and not e.parameter.multiple and e.words[:1] != HOOKS
]


@of_each_command(SINGLE)
def test_a_second_value_of_an_option_that_takes_one_is_refused(
    parameters: tuple[Taken, ...], project: Project, call
):
    before = project.contents()

    for each in parameters:
        one, other = values_of(each.parameter)
        for second in (one, other):
            ended = call(each.program, *each.given(one, second))

            assert ended.code == 2, (str(each), second, ended)
            assert ended.error["code"] == "usage", (str(each), second, ended)
            told = f"{each.called} is given more than once, and takes one value"
            assert ended.error["message"] == told, (str(each), second, ended)
            assert project.contents() == before, (str(each), second)


@pytest.mark.parametrize("option", ["--db", "--db-id", "--agent"])
def test_before_and_after_the_name_of_a_command_is_twice(option: str, call):
    for program, verb in (("inbox", "list"), ("orch", "status")):
        ended = call(program, option, "x", verb, option, "x")

        assert ended.error["message"] == f"{option} is given more than once, and takes one value"


def test_a_flag_may_be_given_again(call):
    assert call("inbox", "list", "--json", "--count", "--count").code == 0


def test_help_is_given_whatever_stands_beside_it(call):
    assert call("inbox", "send", "--to", "a", "--to", "b", "--help").code == 0


def values_of(parameter: click.Parameter) -> tuple[str, str]:
    kind = parameter.type
    if isinstance(kind, click.Choice):
        return str(kind.choices[0]), str(kind.choices[-1])
    if isinstance(kind, Number):
        return f"{kind.low:.0f}", f"{kind.high:.0f}"
    return "one", "other"


def needed(words: tuple[str, ...], group: click.Group) -> list[str]:
    """Words without which the command is refused for what is missing."""
    command: click.Command = group
    for word in words:
        assert isinstance(command, click.Group)
        found = command.get_command(click.Context(command), word)
        assert found is not None
        command = found
    line: list[str] = []
    for each in command.params:
        if each.required:
            value = values_of(each)[0]
            line += [value] if isinstance(each, click.Argument) else [f"{each.opts[0]}={value}"]
    return line
