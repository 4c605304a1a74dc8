"""What the commands print of patches that are refused or wait, on a terminal and in a pipe."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from inbox_orch.orch import schemas
from inbox_orch.orch.runs.config import Config
from support.commands import Outcome, run
from support.contracts import validated
from support.runs import Site, commit
from support.terminals import show

POLICY = {"ask_paths": ["ci.yml"], "forbid_paths": ["no.txt"]}
WHY = "`forbid_paths` of the run: no.txt may not be changed (no.txt)"
ASKED = "`ask_paths` of the run: ci.yml is not changed unasked (ci.yml)"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A patch that was refused, one that waits, and one that has come in."""
    site = Site(tmp_path_factory.mktemp("patches"))
    opened = site.open_run(config=Config(policy=POLICY))
    files = {"refused": "no.txt", "waits": "ci.yml", "came": "a.txt"}
    for key in files:
        site.add(opened, key, max_attempts=1)
    items = site.dispatch(opened)
    for key, file in files.items():
        commit(items[key]["worktree"], file, "text\n")
        site.done(items[key])
    site.scheduler.reconcile(opened)
    yield site.repository
    site.close()


def orch(folder: Path, *words: str) -> Outcome:
    return run(*words, folder=folder, program="orch")


def test_an_attempt_shows_its_patch_in_a_line(folder: Path):
    lines = orch(folder, "attempt", "show", "refused").text.splitlines()
    (line,) = [line for line in lines if line.startswith("patch\t")]
    assert line.startswith(f"patch\trefused/1/1 quarantined, 1 file, +1 -0: {WHY}; ")
    assert "patch\twaits/1/1 queued, 1 file, +1 -0: " in orch(folder, "show", "waits/1").text

    shown = orch(folder, "attempt", "show", "refused", "--json")
    validated("attempt show", shown.stdout, schemas.COMMANDS)
    assert [each["name"] for each in shown.data["patches"]] == ["refused/1/1"]


def test_a_task_shows_them_in_a_table(folder: Path):
    lines = orch(folder, "task", "show", "waits").text.splitlines()
    assert f"waits/1/1\tqueued\t1 file, +1 -0\tw1\t{ASKED}" in lines
    shown = orch(folder, "task", "show", "waits", "--json")
    validated("task show", shown.stdout, schemas.COMMANDS)
    assert shown.data["attempts"][0]["patches"][0]["state"] == "queued"

    screen = show("task", "show", "came", folder=folder, columns=100, program="orch").lines
    heads = next(line.split() for line in screen if line.startswith("PATCH"))
    assert heads == ["PATCH", "STATE", "CHANGES", "AUTHOR"]
    assert any(line.startswith("came/1/1  committed  1 file, +1 -0") for line in screen)


def test_a_report_tells_of_those_that_were_held_up(folder: Path):
    lines = orch(folder, "report").text.splitlines()
    told = [line.split("\t") for line in lines if line.startswith("patch\t")]
    assert [row[1:5] for row in told] == [
        ["refused/1/1", "quarantined", "1 file, +1 -0", "w1"],
        ["waits/1/1", "queued", "1 file, +1 -0", "w1"],
    ]
    screen = show("report", folder=folder, columns=160, program="orch").lines
    assert any(line.split() == ["PATCH", "STATE", "CHANGES", "AUTHOR", "WHY"] for line in screen)
    assert not any("came/1/1" in line for line in screen)
    assert (
        '<span class="state rejected">quarantined</span>' in orch(folder, "report", "--html").text
    )
    shown = orch(folder, "report", "--json")
    validated("report", shown.stdout, schemas.COMMANDS)
    assert [each["name"] for each in shown.data["patches"]] == ["refused/1/1", "waits/1/1"]


def test_a_diff_names_what_is_not_in_or_was_refused_beside_what_git_prints(folder: Path):
    shown = orch(folder, "diff", "refused")
    assert shown.text.startswith("diff --git a/no.txt b/no.txt\n")
    assert f"patch refused/1/1 quarantined, 1 file, +1 -0: {WHY}; " in shown.stderr.decode()
    assert "patch" not in orch(folder, "diff", "came").stderr.decode()

    as_json = orch(folder, "diff", "waits", "--json")
    validated("diff", as_json.stdout, schemas.COMMANDS)
    assert [each["state"] for each in as_json.data["patches"]] == ["queued"]


def test_a_diff_of_a_patch_is_had_from_the_command_that_masks_keys(folder: Path):
    refused = orch(folder, "diff", "waits/1/1", "--json")
    assert refused.code == 3
    assert "`orch patch show waits/1/1 --diff`" in refused.error["hint"]
