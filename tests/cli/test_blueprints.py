"""`orch blueprint`: needs no database, tells every problem at once, and drives no terminal."""

from pathlib import Path

import pytest

from support.commands import Outcome, run

DRIVING = {"\x1b", "\x07", "\x08", "\x9b", "\u202e", "\u2066", "\u061c", "\r"}
MINE = """\
version: 1
id: mine
title: "[red]x[/red] \\u202e"
stages:
  - {id: a, type: agent, goal: "[/red] \\e[31mDo it.", on_success: check}
  - {id: check, type: deterministic, run: "make '[/red]'", on_failure: fix}
  - {id: fix, type: agent, goal: Mend it., max_visits: 2, on_success: check}
"""
BAD = """\
version: 1
id: bad
stages:
  - {id: "[/red]\\e[31m", type: agent, goal: x}
  - {id: b, type: robot, goal: x}
  - {id: c, type: agent, gaol: x}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    own = tmp_path / ".orch" / "blueprints"
    own.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    (own / "mine.yaml").write_text(MINE)
    return tmp_path


def orch(folder: Path, *words: str, **options) -> Outcome:
    """A call in a folder without a database, after which there is none."""
    ended = run("blueprint", *words, folder=folder, program="orch", **options)
    assert not (folder / ".inbox").exists()
    assert set(ended.stdout.decode() + ended.stderr.decode()) & DRIVING == set()
    return ended


def test_those_that_come_with_orch_and_those_of_the_repository_are_listed(folder):
    (folder / ".orch" / "blueprints" / "bad.yaml").write_text(BAD)

    lines = [line.split("\t") for line in orch(folder, "list").text.splitlines()]
    assert [line[:4] for line in lines] == [
        ["standard_task", "native", "7", "12"],
        ["quick_fix", "native", "3", "3"],
        ["study_task", "native", "3", "8"],
        ["bad", "repository", "", ""],
        ["mine", "repository", "3", "3"],
    ]
    assert lines[3][4].startswith("cannot be used: ")
    assert lines[4][4].startswith("[red]x[/red]")


def test_a_blueprint_is_shown_with_every_route_and_goal(folder):
    shown = orch(folder, "show", "mine")
    found = orch(folder, "show", "mine", "--json").data["blueprint"]

    assert "fix\tagent, at most 2 visits\tsuccess -> check, failure -> pause" in shown.text
    assert "[/red]" in shown.text
    assert (found["most_visits"], found["max_total_visits"]) == (3, 12)
    assert found["stages"][1] == {
        "id": "check", "type": "deterministic", "action": None, "run": "make '[/red]'",
        "goal": None, "role": None, "toolset": None, "writes": True, "reviews": False,
        "inputs": [], "outputs": [], "gates": None, "max_visits": None, "timeout_seconds": None,
        "approval": "none", "on_success": "done", "on_failure": "fix", "on_error": "pause",
        "on_skip": "done", "on_reject": None,
    }  # fmt: skip


def test_a_good_file_is_told_with_its_bound(folder):
    path = str(folder / ".orch" / "blueprints" / "mine.yaml")

    assert orch(folder, "validate", path).text == "mine\t3\t3\n"
    assert orch(folder, "validate", "-", stdin=MINE.encode()).text == "mine\t3\t3\n"


def test_every_problem_is_told_at_once_and_escaped(folder):
    (folder / "bad.yaml").write_text(BAD)
    ended = orch(folder, "validate", "bad.yaml")
    told = orch(folder, "validate", "bad.yaml", "--json")

    assert (ended.code, told.code) == (2, 2)
    assert ended.stdout == b""
    lines = ended.stderr.decode().splitlines()
    assert lines[0].startswith("bad.yaml:4: stages[0].id: '[/red]\\x1b[31m' cannot be the id")
    assert lines[1].startswith("bad.yaml:5: stages[1].type: must be one of")
    assert lines[2] == ("bad.yaml:6: stages[2].gaol: there is no such key (did you mean `goal`?)")
    assert [p["line"] for p in told.error["details"]["problems"]] == [4, 5, 6]
    assert told.error["details"]["problem_count"] == 3


def test_a_file_that_is_not_there_is_a_wrong_call(folder):
    ended = orch(folder, "validate", "nowhere.yaml")

    assert ended.code == 2
    assert "cannot read nowhere.yaml" in ended.stderr.decode()


@pytest.mark.parametrize(
    "form, lines",
    [
        ("text", ["  fix    agent, at most 2 visits", "         failure -> pause"]),
        ("mermaid", ['  s0 -- "success" --> s1', '  s1 -. "failure" .-> s2', "flowchart TD"]),
        ("dot", ['  "check" -> "fix" [label="failure", style=dashed];', "digraph blueprint {"]),
    ],
)
def test_a_graph_has_every_stage_and_where_it_leads(folder, form, lines):
    drawn = orch(folder, "graph", "mine", "--format", form)
    found = orch(folder, "graph", ".orch/blueprints/mine.yaml", "--format", form, "--json").data

    assert set(lines) <= set(drawn.text.splitlines())
    assert (found["format"], found["blueprint"]["id"]) == (form, "mine")
    assert found["text"] == drawn.text
