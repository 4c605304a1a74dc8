"""What the commands print of stages and decisions, on a terminal and in a pipe."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import Outcome, run
from support.runs import Site
from support.stages import Course, add, agent
from support.terminals import show


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A task whose blueprint asks for a decision; its worker has failed."""
    site = Site(tmp_path_factory.mktemp("stages"))
    opened = site.open_run()
    add(site, opened, "a", agent("write"))
    site.dispatch(opened)
    Course(site, opened).fail("no idea")
    yield site
    site.close()


@pytest.fixture(scope="module")
def folder(site: Site) -> Path:
    return site.repository


def orch(folder: Path, *words: str) -> Outcome:
    return run(*words, folder=folder, program="orch")


WHY = "stage write did not succeed: no idea"


def test_in_a_pipe_a_decision_is_one_line_and_its_visits_are_lines(folder: Path):
    assert (
        orch(folder, "blocked").text
        == f"a\tleader\t{WHY}\tcontinue,change_role,accept,split,abandon\n"
    )
    (_, row) = orch(folder, "status").text.splitlines()
    assert row.split("\t")[-1] == f"decision: {WHY}"
    explained = orch(folder, "blueprint", "explain", "a").text.splitlines()
    assert explained[:4] == ["attempt\ta/1", "blueprint\ttried", "visits\t1", "most visits\t1"]
    assert explained[5] == "visit\t2\twrite\t1\tagent\tfailed\ton_failure\tdecision\tno idea"
    assert explained[6].split("\t")[:6] == ["visit", "3", "decision", "1", "decision", "live"]
    assert explained[-1] == f"next\tsomebody decides: {WHY}"
    assert "visit\t2. write, failed, by w1: no idea\n" in orch(folder, "attempt", "show", "a").text
    bars = orch(folder, "timeline").text
    assert "  write" in bars and "  decision" in bars


def test_on_a_terminal_a_decision_says_what_each_answer_does(folder: Path):
    screen = show("blocked", folder=folder, columns=100, program="orch").plain
    assert f"a: a decision, {WHY}" in screen
    assert "abandon: end the task as failed" in screen
    assert "orch answer a --decide ANSWER --body HINT" in screen
    table = show("blueprint", "explain", "a", folder=folder, columns=100, program="orch").lines
    assert table[1].split() == ["NO", "VISIT", "CAME", "TO", "ROUTE", "THEN", "WHY"]
    assert table[-1] == f"next: somebody decides: {WHY}"


def test_the_json_of_each_is_what_its_schema_says(folder: Path):
    visits = orch(folder, "attempt", "show", "a", "--json").data["visits"]
    assert [visit["stage"] for visit in visits] == ["surroundings", "write", "decision"]
    (row,) = orch(folder, "status", "--json").data["items"]
    assert (row["stage"], row["visits"]) == ("decision", 3)
    (line,) = orch(folder, "prime").text.splitlines()[13:14]
    assert line.endswith("1 tasks need somebody, 1 of them a decision")


def test_waiting_ends_with_the_way_to_decide(folder: Path):
    ended = orch(folder, "wait", "--until", "run", "--wait", "0", "--json")
    assert ended.code == 11
    assert ended.error["details"]["deciding"] == ["a"]
    assert "--decide ANSWER" in ended.error["hint"]
