"""docs/leader.sh: it runs in every shell, and stops at the first failure with its exit code. What
it does on a real project is in `tests/process/test_orch_leader_script.py`."""

import os
import shutil
import subprocess
from contextlib import nullcontext
from pathlib import Path

import pytest

from support.commands import command_path
from support.orch_matrix import Enterprise
from support.rehearsals import SHELLS, Script, bare, installed
from support.runs import git
from support.standins import stand_ins
from support.timing import PATIENCE_SECONDS

LEADER = Path(__file__).resolve().parents[2] / "docs" / "leader.sh"
# `orch`, as far as the leader looks at it: two questions, then the end.
ORCH = """\
#!/bin/sh
case "$1 $2" in
"plan import") printf 'greet-1\\t2\\t1\\n' ;;
"wait --until") [ -e answered ] || exit 11 ;;
"blocked ") printf 'a\\tw1\\tWhich one?\\told,new\\nb\\tw2\\tHow?\\t\\n' && echo yes >answered ;;
esac
"""
WORKER = """\
set -eu
answer=$(inbox wait-reply --wait 0 2>/dev/null) || answer=
if [ -z "$answer" ]; then
    inbox ask --body "Which colour?" --option red --option blue >/dev/null
    exit 0
fi
printf '%s\\n' "$answer" | cut -f 2 >colour
git add --all
git -c user.name=W -c user.email=w@example.invalid commit --quiet --message "Colour it"
"""


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    if shutil.which(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    return str(request.param)


@pytest.fixture
def project(tmp_path: Path) -> Enterprise:
    return Enterprise(tmp_path / "project")


def lead(project: Enterprise, shell: str, *words: str) -> "subprocess.CompletedProcess[str]":
    """The script, for somebody with an empty home, who has told git no name. Warm processes stand
    in for the commands in all shells but the first."""
    at = project.folder.parent / "stand-ins"
    with nullcontext(installed()) if shell == SHELLS[0] else stand_ins(at) as commands:
        path = os.pathsep.join((commands, os.environ["PATH"]))
        return subprocess.run(
            [shell, str(LEADER), *words],
            cwd=project.folder,
            env={**bare({**os.environ}), "PATH": path, "XDG_STATE_HOME": str(project.state)},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
        )


def test_the_leader_stops_at_the_first_failure_of_any_command(shell: str, tmp_path: Path):
    folder, stubs = tmp_path / "project", tmp_path / "stubs"
    for each in (folder, stubs):
        each.mkdir()
    (stubs / "orch").write_text(ORCH)
    (stubs / "orch").chmod(0o755)
    (folder / "plan.yaml").write_text("run: {title: Greet}\n")
    script = Script(
        shell,
        [str(LEADER), "plan.yaml", "main"],
        folder,
        path=f"{stubs}{os.pathsep}{os.environ['PATH']}",
        environment=bare({**os.environ}),
    )

    played = script.play()

    assert played.returncode == 0, played.stderr
    words = [script.words(call)[:2] for call in script.calls()]
    assert words == [
        ["cksum"],
        ["orch", "plan"],
        ["orch", "wait"],
        ["orch", "drive"],
        ["orch", "blocked"],
        ["orch", "answer"],
        ["orch", "answer"],
        ["orch", "wait"],
        ["orch", "integrate"],
    ]
    assert "w1 asks on a: Which one?\nw2 asks on b: How?\n" in played.stderr
    assert list(script.surprises(script.calls())) == []


def test_a_plan_with_an_error_leads_no_other_run(project: Enterprise, shell: str):
    """An open run was once driven and integrated in the place of the one that could not be."""
    project.running()
    before, main = project.contents(), git(project.folder, "rev-parse", "main")
    (project.folder.parent / "bad.yaml").write_text("tasks: [{task: a, titel: A}]\n")

    led = lead(project, shell, "../bad.yaml", "main")

    assert led.returncode == 2, led.stderr
    assert "titel" in led.stderr
    assert (project.contents(), git(project.folder, "rev-parse", "main")) == (before, main)
    assert led.stdout == ""


def test_the_leader_says_how_it_is_called(project: Enterprise, shell: str):
    led = lead(project, shell)

    assert (led.returncode, led.stderr) == (2, "usage: leader.sh PLAN BRANCH\n")


def test_the_leader_answers_and_integrates_with_an_empty_home(project: Enterprise, shell: str):
    (project.folder.parent / "plan.yaml").write_text(
        "run: {title: Paint}\ntasks: [{task: colour, title: Choose a colour}]\n"
    )
    worker = project.folder.parent / "worker.sh"
    worker.write_text(WORKER)
    working = subprocess.Popen(
        [command_path(), "work", "--agent", "w1", "--mailbox", "workers", "--", "sh", str(worker)],
        cwd=project.folder,
        env={**bare({**os.environ}), "PATH": installed()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    try:
        led = lead(project, shell, "../plan.yaml", "main")
    finally:
        working.terminate()
        working.wait(PATIENCE_SECONDS)

    assert led.returncode == 0, led.stderr
    assert "w1 asks on colour: Which colour?" in led.stderr
    assert git(project.folder, "show", "main:colour") == "red"
