"""What people see: readable at 80 columns, colours as they asked, no text that drives."""

import json
from pathlib import Path

import pytest

from support.clicktree import LEAVES, NAMES
from support.commands import Project
from support.terminals import SGR, show, width

# A clear screen, a title, a link, a clipboard write, a reversal, markup, a carriage return.
NASTY = (
    "[red]x[/red] \x1b[2J \x1b]0;t\x07 \x1b]8;;http://e\x1b\\l\x1b]8;;\x1b\\"
    " \x1b]52;c;eA==\x07 \u202e \x9b31m \x07\x08\r [/] \u2066 \u061c"
)
# A subject is one line without control characters; the rest must be survived.
NASTY_SUBJECT = "[red]x[/red] :smile: \u202e \x9b31m \u2066 http://example.org [/] \u061c"
DRIVING = {"\x1b", "\x07", "\x08", "\x9b", "\u202e", "\u2066", "\u061c", "\r"}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Threads in several states, with awkward texts and long names."""
    project = Project(tmp_path / "project")
    (project.folder / "report of the day.txt").write_text("x")
    asked = project.claim(project.send(NASTY_SUBJECT, NASTY, priority=7))
    with project.bus("w1") as bus:
        attach = [str(project.folder / "report of the day.txt")]
        bus.update(asked.thread, asked.token, body=NASTY, progress=40, attach=attach)
        bus.ask(asked.thread, asked.token, body=NASTY, options=[NASTY, "other"])
    project.send("Read the whole of the protocol and write down what it leaves open " * 3)
    with project.bus("a-leader-with-a-rather-long-name-of-his-own") as bus:
        bus.send(to="architecture-reviewer.of-the-second-team", subject="\u4f60\u597d" * 40)
    return project


def calls(project: Project) -> dict[str, tuple[str, ...]]:
    blocked = next(
        item["id"] for item in project.json("list").data["items"] if item["state"] == "blocked"
    )
    return {
        "list": ("list",),
        "show": ("show", blocked),
        "fetch": ("fetch", "--peek", "--agent", "leader"),
        "claim": ("claim", "--agent", "w2", "--mailbox", "workers"),
        "overview": ("--agent", "leader"),
        "holder": ("--agent", "w1"),
        "where": ("where",),
        "stats": ("stats",),
        "doctor": ("doctor", "--verify"),
        "help": ("--help",),
        "version": ("--version",),
        "cancel": ("cancel", blocked, "--agent", "leader"),
    }


CALLS = (
    "list",
    "show",
    "fetch",
    "claim",
    "overview",
    "holder",
    "where",
    "stats",
    "doctor",
    "help",
    "version",
    "cancel",
)


@pytest.mark.parametrize("name", CALLS)
def test_nothing_is_wider_than_the_terminal(project: Project, name: str):
    shown = show(*calls(project)[name], folder=project.folder)

    assert shown.code == 0, shown
    assert shown.lines
    too_wide = [line for line in shown.lines if width(line) > 80 and not line.startswith("  ")]
    # A path is never cut: it must be there to be copied.
    assert [line for line in too_wide if str(project.folder) not in line] == []


@pytest.mark.parametrize("name", CALLS)
def test_a_terminal_is_driven_by_colours_alone(project: Project, name: str):
    shown = show(*calls(project)[name], folder=project.folder)

    assert DRIVING & set(SGR.sub("", shown.text)) == set()


@pytest.mark.parametrize("name", CALLS)
def test_no_text_in_a_pipe_drives_a_terminal(project: Project, name: str):
    ended = project.run(*calls(project)[name])
    lines = ended.text.splitlines()

    assert (DRIVING | {"\x85", "\u2028"}) & set(ended.text) == set()
    assert lines or name == "claim"


@pytest.mark.parametrize("name", ["list", "show", "overview"])
def test_user_text_is_no_markup(project: Project, name: str):
    shown = show(*calls(project)[name], folder=project.folder, columns=200)
    assert "[red]x[/red]" in shown.plain
    assert "\\u202e" in shown.plain


@pytest.mark.parametrize("name", ["list", "show", "claim"])
def test_the_id_of_a_thread_is_whole_in_80_columns(project: Project, name: str):
    for item in project.json("list").data["items"]:
        if name == "list":
            assert item["id"] in show("list", folder=project.folder).plain
        elif name == "show":
            assert item["id"] in show("show", item["id"], folder=project.folder).plain
    if name == "claim":
        claimed = show(*calls(project)["claim"], folder=project.folder).plain
        assert any(item["id"] in claimed for item in project.json("list").data["items"])


def test_errors_show_no_text_that_drives(project: Project):
    for arguments in (("show", NASTY), ("list", "--mailbox", NASTY), (NASTY,)):
        shown = show(*arguments, folder=project.folder)
        assert shown.code in (2, 3)
        assert shown.text == ""
        assert DRIVING & set(shown.stderr) == set()


def test_colours_are_there_on_a_terminal(project: Project):
    assert SGR.search(show("list", folder=project.folder).text)


@pytest.mark.parametrize(
    "environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {"NO_COLOR": "1", "FORCE_COLOR": "1"}]
)
def test_no_colour_when_it_is_not_wanted(project: Project, environment: dict[str, str]):
    shown = show("list", folder=project.folder, **environment)
    assert "\x1b" not in shown.text
    assert "THREAD" in shown.text


def test_force_color_gives_the_terminals_output_to_a_pipe(project: Project):
    plain, forced = project.run("list"), project.run("list", FORCE_COLOR="1")
    assert "\x1b" not in plain.text
    assert SGR.search(forced.text)
    assert "SUBJECT" in forced.text
    for off in ("", "0"):
        assert project.run("list", FORCE_COLOR=off).text == plain.text


def test_json_has_no_colour_and_is_indented_only_on_a_terminal(project: Project):
    for environment in ({}, {"FORCE_COLOR": "1"}):
        piped = project.json("list", **environment)
        assert piped.stdout.count(b"\n") == 1
        assert b"\x1b" not in piped.stdout
    shown = show("list", "--json", folder=project.folder)
    assert "\x1b" not in shown.text
    assert json.loads(shown.text) == json.loads(project.json("list").stdout)
    assert '\n  "ok": true' in shown.text


def test_a_pipe_gets_full_values_between_tabs(project: Project):
    items = project.json("list").data["items"]
    rows = [line.split("\t") for line in project.run("list").text.splitlines()]

    assert [row[0] for row in rows] == [item["id"] for item in items]
    assert rows[1][5] == items[1]["subject"]
    assert [row[6] for row in rows] == [item["created_at"] for item in items]
    assert {len(row) for row in rows} == {7}


def test_an_empty_list_says_so_to_people_and_nothing_to_a_pipe(tmp_path: Path):
    project = Project(tmp_path / "project")
    assert show("list", folder=project.folder).plain == "no threads\n"
    assert project.run("list").text == ""


def test_people_read_how_long_ago_it_was(project: Project):
    shown = show(*calls(project)["show"], folder=project.folder)
    assert " s ago (20" in shown.plain
    assert "lease until  in 4 min" in shown.plain or "lease until  in 5 min" in shown.plain


@pytest.mark.parametrize("columns", [20, 40, 120, 300])
def test_other_widths_are_kept_too(project: Project, columns: int):
    for name in ("list", "where", "stats"):
        assert show(*calls(project)[name], folder=project.folder, columns=columns).code == 0
    for line in show("list", folder=project.folder, columns=max(columns, 60)).lines:
        assert width(line) <= max(columns, 60)


@pytest.mark.parametrize("name", [*NAMES, *(leaf for leaf in LEAVES if " " in leaf)])
def test_help_fits_names_an_example_and_every_option(project: Project, name: str):
    shown = show(*name.split(), "--help", folder=project.folder)

    assert shown.code == 0
    assert "Examples:" in shown.plain
    assert "--json" in shown.plain
    assert [line for line in shown.lines if width(line) > 80] == []


def test_help_prints_the_exit_codes(project: Project):
    text = show("--help", folder=project.folder).plain
    for code in ("0", "7", "11", "130", "141", "143"):
        assert f"\n  {code} " in text
