"""`graph`, `critical-path`, `timeline`, `completion` as processes."""

import os
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from support.commands import command_path
from support.orch_matrix import Enterprise
from support.timing import PATIENCE_SECONDS


@pytest.fixture
def project(tmp_path) -> Enterprise:
    return Enterprise(tmp_path / "project").tasks("a", "b", "c")


def test_a_graph_is_drawn_as_text(project):
    lines = project.orch("graph").text.splitlines()

    assert lines[0].startswith("A run (a-run-")
    assert [line.split()[:3] for line in lines[1:2]] == [["●", "a", "ready"]]
    assert lines[2].split()[:4] == ["└─", "○", "b", "waiting"]


@pytest.mark.parametrize("form, begins", [
    ("text", "A run"), ("mermaid", "%%"), ("dot", "digraph"), ("svg", "<svg"),
])  # fmt: skip
def test_a_graph_goes_to_a_file_as_it_goes_to_the_output(project, form, begins):
    shown = project.orch("graph", "--format", form)
    ended = project.orch("graph", "--format", form, "--output", "picture", "--json")

    assert shown.text.startswith(begins)
    assert ended.data["path"] == str(project.folder / "picture")
    assert (project.folder / "picture").read_bytes() == shown.stdout
    assert project.orch("graph", "--format", form, "--output", "-").stdout == shown.stdout
    as_json = project.orch("graph", "--format", form, "--json").data
    assert as_json["text"] == shown.text
    assert [(d["key"], d["upstream_key"]) for d in as_json["dependencies"]] == [
        ("b", "a"),
        ("c", "b"),
    ]


def test_states_are_coloured_on_a_terminal_only(project):
    coloured = project.orch("graph", FORCE_COLOR="1")

    assert b"\x1b[36m" in coloured.stdout
    assert b"\x1b" not in project.orch("graph").stdout
    assert b"\x1b" not in project.orch("graph", FORCE_COLOR="1", NO_COLOR="1").stdout


def test_a_picture_is_not_written_over_the_database(project):
    ended = project.orch("graph", "--output", str(project.path), "--json")

    assert (ended.code, ended.error["code"]) == (2, "usage")


def test_the_critical_path_says_what_it_goes_by(project):
    ended = project.orch("critical-path", "--json").data

    assert (ended["measure"], [step["key"] for step in ended["items"]]) == (
        "count",
        ["a", "b", "c"],
    )
    assert "by their number" in project.orch("critical-path", FORCE_COLOR="1").text


def test_the_timeline_has_the_attempts(tmp_path):
    project = Enterprise(tmp_path / "project")
    project.running()
    lines = project.orch("timeline").text.splitlines()

    assert lines[-1].startswith("a/1")
    assert lines[-1].endswith("running")
    (bar,) = project.orch("timeline", "--json").data["items"]
    assert (bar["key"], bar["number"], bar["end"]) == ("a", 1, None)
    picture = project.orch("timeline", "--format", "svg").stdout
    assert ElementTree.fromstring(picture).tag.endswith("svg")
    path = project.orch("critical-path", "--json").data
    assert path["measure"] == "durations"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_code_that_the_shell_accepts(project, shell):
    code = project.orch("completion", shell).text

    assert "_ORCH_COMPLETE" in code
    found = shutil.which(shell)
    if found is not None:
        checked = subprocess.run([found, "-n"], input=code, text=True, capture_output=True)
        assert (checked.returncode, checked.stderr) == (0, "")


@pytest.mark.parametrize("typed, expected", [
    ("orch cri", {"critical-path"}),
    ("orch plan ", {"import", "export"}),
    ("orch graph --form", {"--format"}),
    ("orch graph --format s", {"svg"}),
    ("orch nonsense x", set()),
])  # fmt: skip
def test_bash_completes_commands_options_and_values(tmp_path, typed, expected):
    words = typed.split(" ")
    script = f"""
        eval "$(orch completion bash)"
        COMP_WORDS=({" ".join(f'"{word}"' for word in words)})
        COMP_CWORD={len(words) - 1}
        _orch_completion orch
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    path = f"{Path(command_path('orch')).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE_SECONDS,
    )

    assert set(done.stdout.split()) >= expected
    assert (set(done.stdout.split()) == set()) == (expected == set())
    assert "Traceback" not in done.stderr


def test_a_stray_variable_of_completion_is_a_clear_error(project):
    ended = project.orch("status", _ORCH_COMPLETE="x")

    assert ended.code == 2
    assert b"_ORCH_COMPLETE" in ended.stderr
