"""Patches where people and programs look at tasks: only those that say more than the attempt."""

from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch.board import view
from inbox_orch.orch.board.close_up import detail_lines
from inbox_orch.orch.cli.report import _for_a_pipe as for_a_pipe
from inbox_orch.orch.cli.report import _for_people as for_people
from inbox_orch.orch.cli.task.show import _blocks as task_blocks
from inbox_orch.orch.leader import patches as deeds
from inbox_orch.orch.pictures.page import page
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.schemas import COMMANDS
from inbox_orch.orch.views.detail import detail
from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.blocks import plain as piped
from support.patches import Plain
from support.runs import Site
from support.stages import Course, add, agent
from support.tooling import Caller

ASKING = {"ask_paths": ["ci.yml"]}
SAYS = "`ask_paths` of the run: ci.yml is not changed unasked (ci.yml)"
DENIED = (
    "`max_files` of the run: 2 files are changed, and at most 1 are let in; change what is handed"
    " in; or `orch patch release a/1/1 --rule max_files --reason TEXT` lets this one in"
)


@pytest.fixture
def plain(site: Site) -> Plain:
    return Plain(site)


def shape(command: str, data: dict[str, Any]) -> None:
    """What `--json` gives is what the schema says."""
    COMMANDS[command].results[0].model_validate(data)


def told(plain: Plain) -> list[str]:
    """The lines of the task's patches, as JSON and as what is printed have them."""
    shown = plain.site.scheduler.show_task(plain.run, "a")
    data = shown.as_json()
    shape("task show", data)
    named = [each["name"] for own in data["attempts"] for each in own.get("patches", ())]
    every = [each for own in shown.patches.values() for each in own]
    printed = "".join(map(piped, task_blocks(shown)))
    assert named == [each.name for each in every]
    assert all(f"{each.name}\t{each.state}\t{each.size}\t" in printed for each in every)
    return [each.line for each in every]


def say(plain: Plain, deed: Any, *words: str, number: int = 0) -> None:
    desk = plain.site.leader("boss").desk
    deed(desk, plain.run, plain.patches()[number].patch, *words)


@pytest.mark.parametrize("check", [[], ["true"], ["false"]])
def test_without_a_policy_a_patch_that_goes_as_its_attempt_does_is_not_shown(plain: Plain, check):
    plain.open(checks=check, max_attempts=1).handed_in(a_txt="one\n")
    assert told(plain) == []
    plain.lead()

    assert told(plain) == [] and len(plain.patches()) == 1
    attempts = plain.site.scheduler.show_task(plain.run, "a").as_json()["attempts"]
    assert "patches" not in attempts[0]


def test_without_a_policy_what_breaks_the_floor_is_shown(plain: Plain):
    item = plain.open(max_attempts=1) and plain.site.dispatch(plain.run)["a"]
    Path(item["worktree"], "out").symlink_to("/etc/passwd")
    plain.site.deliver(item, "a.txt")
    plain.lead()

    (line,) = told(plain)
    assert line.startswith("a/1/1 quarantined, ")
    assert ": link_outside (floor): out leads out of the repository, to /etc/passwd; " in line


def test_with_a_policy_every_patch_is_shown_by_whoever_gives_it(plain: Plain):
    plain.open({}).handed_in(a_txt="one\n", b_txt="two\n")
    plain.lead()
    assert told(plain) == ["a/1/1 committed, 2 files, +2 -0"]

    plain.open(policy={"max_lines": 10}).handed_in(a_txt="one\n")
    plain.lead()
    assert told(plain) == ["a/1/1 committed, 1 file, +1 -0"]


def test_what_goes_by_a_blueprint_is_held_to_one_and_shown(site: Site):
    run = site.open_run()
    add(site, run, "a", agent("write"))
    site.dispatch(run)
    Course(site, run).work("w1", a_txt="one\n")

    shown = site.scheduler.show_task(run, "a")
    shape("task show", shown.as_json())
    (patches,) = shown.patches.values()
    assert [each.line for each in patches] == ["a/1/1 committed, 1 file, +1 -0"]


def test_what_is_refused_says_why_and_what_was_said_since(plain: Plain):
    plain.open({"max_files": 1}, max_attempts=1).handed_in(a_txt="one\n", b_txt="two\n")
    plain.lead()
    assert told(plain) == [f"a/1/1 quarantined, 2 files, +2 -0: {DENIED}"]
    assert str(plain.attempt.reason) == f"policy: {DENIED}"

    say(plain, deeds.release, "max_files", "both belong\ntogether")
    words = "boss has released `max_files`: both belong together"
    assert told(plain) == [f"a/1/1 quarantined, 2 files, +2 -0: {words}"]
    plain.site.scheduler.adopt(plain.run, "a")
    assert told(plain)[1:] == ["a/1/2 committed, 2 files, +2 -0"]


def test_what_waits_says_for_what_and_how_far_that_is(plain: Plain):
    plain.open({**ASKING, "min_reviewers": 2}, max_attempts=1).handed_in(ci_yml="on: push\n")
    plain.lead()
    plain.decide("approve", by="boss")
    (line,) = told(plain)
    assert line.startswith(f"a/1/1 queued, 1 file, +1 -0: {SAYS}; ")
    assert line.endswith(" (1 of 2 approvals, approved by boss)")

    say(plain, deeds.refuse, "not now")
    plain.lead()
    assert told(plain) == ["a/1/1 quarantined, 1 file, +1 -0: boss refuses it: not now"]


def test_what_is_given_up_says_why_and_what_went_with_its_attempt_does_not(plain: Plain):
    plain.open({**ASKING, "max_files": 1}, max_attempts=2).handed_in(ci_yml="on: push\n")
    plain.lead()
    plain.site.scheduler.cancel(plain.run, ["a"])
    assert told(plain) == ["a/1/1 dropped, 1 file, +1 -0"]

    plain.open({"max_files": 1}, max_attempts=1).handed_in(a_txt="one\n", b_txt="two\n")
    plain.lead()
    say(plain, deeds.drop, "done anew")
    assert told(plain) == ["a/1/1 dropped, 2 files, +2 -0: done anew"]


def test_a_run_from_before_shows_none(plain: Plain):
    plain.open({"max_files": 1}, max_attempts=1)
    with plain.site.scheduler.database.transaction() as tx:
        tx.run("UPDATE run SET patches = 0")
    plain.run = plain.site.scheduler.run(plain.run.name)
    plain.handed_in(a_txt="one\n")
    plain.lead()

    assert told(plain) == []


def test_a_task_without_attempts_shows_none(site: Site):
    run = site.open_run(config=Config(policy={}))
    site.add(run, "a")
    assert "patches" not in str(site.scheduler.show_task(run, "a").as_json())


# -- the report ------------------------------------------------------------------------------


def reported(plain: Plain, most: int = 9) -> list[str]:
    """The names and states of the patches of a report, as it is printed and as JSON has them."""
    report = plain.site.scheduler.report(plain.run, most=most)
    data = {**report.as_json(), "format": "text", "text": None, "path": None}
    shape("report", data)
    found = [f"{each.name} {each.state}" for each in report.patches]
    assert [f"{each['name']} {each['state']}" for each in data.get("patches", ())] == found
    lines = "".join(map(piped, for_a_pipe(report))).splitlines()
    told = [line.split("\t") for line in lines if line.startswith("patch\t")]
    assert [f"{words[1]} {words[2]}" for words in told] == found
    assert ("Patches that wait" in page(report)) == bool(found)
    titles = [block.headings[0] for block in for_people(report) if isinstance(block, Table)]
    assert titles.count("PATCH") == bool(found)
    return found


def test_a_report_tells_of_what_waits_was_refused_or_taken_back(plain: Plain):
    plain.open({**ASKING, "max_files": 1}, max_attempts=2).handed_in(a_txt="one\n", b_txt="two\n")
    plain.lead()
    assert reported(plain) == ["a/1/1 quarantined"]

    plain.site.clock.advance(3600)
    plain.handed_in(ci_yml="on: push\n")
    plain.lead()
    assert reported(plain) == ["a/1/1 quarantined", "a/2/1 queued"]
    assert reported(plain, most=1) == ["a/2/1 queued"]
    plain.decide("approve", by="boss")
    say(plain, deeds.release, "max_files", "so")
    assert reported(plain) == ["a/1/1 quarantined"]
    (patch,) = plain.site.scheduler.report(plain.run, most=9).patches
    assert patch.why == "boss has released `max_files`: so"
    say(plain, deeds.drop)
    assert reported(plain) == []


@pytest.mark.parametrize("policy", [None, {}])
def test_a_report_has_no_section_of_patches_that_came_in_or_failed_a_check(plain: Plain, policy):
    plain.open(policy, checks=["! grep -q bad a.txt"], max_attempts=2).handed_in(a_txt="bad\n")
    plain.lead()
    plain.site.clock.advance(3600)
    plain.handed_in(a_txt="good\n")
    plain.lead()

    assert [each.state for each in plain.patches()] == ["dropped", "committed"]
    assert reported(plain) == []


# -- the board -------------------------------------------------------------------------------


def near(plain: Plain) -> list[str]:
    """The task as a board shows it from near, a line each."""
    board = plain.site.scheduler.board(plain.run)
    (row,) = board.status.rows
    seen = detail(plain.site.scheduler.desk, plain.run, "a")
    return ["".join(text for text, _ in line) for line in detail_lines(board, row, seen, 400)]


def test_the_board_shows_a_patch_in_the_words_of_the_commands(plain: Plain):
    plain.open({"max_files": 1}, max_attempts=1).handed_in(a_txt="one\n", b_txt="two\n")
    plain.lead()

    (line,) = told(plain)
    assert f"    patch {line}" in near(plain)


def test_the_board_shows_no_patch_that_goes_as_its_attempt_does(plain: Plain):
    plain.open().handed_in(a_txt="one\n")
    plain.lead()
    assert not any("a/1/1" in line for line in near(plain))


def test_the_board_says_what_is_to_be_approved_and_how(plain: Plain):
    plain.open(ASKING).handed_in(ci_yml="on: push\n")
    plain.lead()
    board = plain.site.scheduler.board(plain.run)
    (row,) = board.status.rows
    lines = near(plain)

    assert SAYS in view.note_of(board, row)
    assert f"- patch a/1/1, by w1: {SAYS}" in lines
    assert "`orch patch show a/1/1 --diff` shows it." in lines
    offered = [line for line in lines if line.startswith("  › ")]
    assert [line.split()[1] for line in offered] == ["approve:", "refuse:", "abandon:"]
    assert f"    patch a/1/1 queued, 1 file, +1 -0: {SAYS}" in lines


# -- tools -----------------------------------------------------------------------------------


def test_a_tool_shows_what_waits_and_another_one_approves_of_it(plain: Plain):
    plain.open(ASKING).handed_in(ci_yml="on: push\n")
    plain.lead()
    call = Caller(plain.site.office.path, "boss", "orch")

    (attempt,) = call("task_show", task="a")["data"]["attempts"]
    (patch,) = attempt["patches"]
    assert (patch["name"], patch["state"], patch["reason"]) == ("a/1/1", "queued", SAYS)
    assert patch["facts"]["paths"] == ["ci.yml"]
    said = call("answer", task="a", body="so", decide="approve")
    assert "data" in said, said
    plain.lead()
    (attempt,) = call("task_show", task="a")["data"]["attempts"]
    assert [each["state"] for each in attempt["patches"]] == ["committed"]


# -- taken back ------------------------------------------------------------------------------


def test_without_a_policy_what_was_taken_back_is_shown_with_what_undid_it(plain: Plain):
    plain.open().handed_in(a_txt="one\n")
    plain.lead()
    plain.site.scheduler.integrate(plain.run)
    assert told(plain) == reported(plain) == []
    plain.site.scheduler.patch_rollback(plain.run, "a/1/1", reason="it is slow")

    assert told(plain) == [
        "a/1/1 rolled_back, 1 file, +1 -0: it is slow",
        "a/1/2 committed, 1 file, +0 -1",
    ]
    assert reported(plain) == ["a/1/1 rolled_back"]
