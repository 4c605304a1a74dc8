"""Runs, tasks, attempts and what is said of them in JSON: every key, and what stands there when
there is nothing."""

from typing import get_args

import pytest

from inbox_orch.orch.attempts import texts
from inbox_orch.orch.cleanup.reasons import (
    ALWAYS,
    ERRORS,
    UNLESS_FORCED,
    Reason,
    about,
    error_code,
    standing_in_the_way,
)
from inbox_orch.orch.gates.checks import Checked
from inbox_orch.orch.integration import rules as integration
from inbox_orch.orch.integration.pairs import Conflicts, Pair, Side
from inbox_orch.orch.patches import states
from inbox_orch.orch.patches.model import WAYS
from inbox_orch.orch.runs.critical import Step
from inbox_orch.orch.runs.model import Attempt, Limits, Run, Task
from inbox_orch.orch.runs.readiness import Standing
from inbox_orch.orch.schemas import things
from inbox_orch.shared.processes.endings import Ending

AT, AT_TEXT = 1_700_000_000_123, "2023-11-14T22:13:20.123Z"
LATER, LATER_TEXT = AT + 60_000, "2023-11-14T22:14:20.123Z"

RUN = Run(
    id="R",
    name="title-abc",
    title="Title",
    state="closed",
    leader="lead",
    repository="/repo",
    repository_identity="identity",
    base_ref="main",
    base_commit="c0",
    worktree_root="/trees",
    on_failure="continue",
    max_parallel=3,
    config="{}",
    created_at=AT,
    closed_at=LATER,
    cancelled_at=None,
)
LIMITS = Limits(queue_seconds=1.0, run_seconds=2.0)
LIMITS_JSON = {
    "queue_seconds": 1.0,
    "run_seconds": 2.0,
    "silent_seconds": None,
    "block_seconds": None,
    "check_seconds": None,
}
TASK = Task(
    id="T",
    number=4,
    run_id="R",
    key="login",
    title="Log in",
    body="all of it",
    kind="code",
    mailbox="box",
    state="succeeded",
    priority=7,
    worktree=True,
    allow_empty=False,
    checks=("make", "make test"),
    limits=LIMITS,
    max_attempts=3,
    max_infra_attempts=5,
    attempts=2,
    work_failures=1,
    infra_failures=0,
    not_before=LATER,
    accepted_attempt="A",
    accepted_head="c2",
    next_base="c1",
    next_base_source="restore",
    reason="because",
    created_at=AT,
    updated_at=LATER,
)
TASK_JSON = {
    "id": "T",
    "key": "login",
    "title": "Log in",
    "kind": "code",
    "mailbox": "box",
    "state": "succeeded",
    "priority": 7,
    "worktree": True,
    "allow_empty": False,
    "checks": ["make", "make test"],
    "limits": LIMITS_JSON,
    "attempts": 2,
    "max_attempts": 3,
    "max_infra_attempts": 5,
    "work_failures": 1,
    "infra_failures": 0,
    "not_before": LATER_TEXT,
    "accepted_attempt": "A",
    "accepted_head": "c2",
    "next_base": "c1",
    "next_base_source": "restore",
    "reason": "because",
    "created_at": AT_TEXT,
    "updated_at": LATER_TEXT,
}
ATTEMPT = Attempt(
    id="A",
    run_id="R",
    task_id="T",
    number=2,
    state="succeeded",
    ending_as=None,
    mailbox="box",
    thread_id="H",
    branch="orch/title/t/login/2",
    worktree_path="/trees/login-2",
    base_ref="main",
    base_commit="c0",
    base_source="run",
    dirty_paths='["a.txt"]',
    head_commit="c2",
    commits_ahead=2,
    reason="done",
    details='{"a": 1}',
    fatal=False,
    clock="run",
    goes_back=False,
    conflict='["b.txt"]',
    salvage_commit="c9",
    created_at=AT,
    updated_at=LATER,
    ended_at=LATER,
    removed_at=None,
)
ATTEMPT_JSON = {
    "id": "A",
    "run": "R",
    "task": "T",
    "number": 2,
    "state": "succeeded",
    "ending_as": None,
    "mailbox": "box",
    "thread": "H",
    "branch": "orch/title/t/login/2",
    "worktree": "/trees/login-2",
    "base_ref": "main",
    "base_commit": "c0",
    "base_source": "run",
    "dirty_paths": ["a.txt"],
    "head_commit": "c2",
    "commits_ahead": 2,
    "reason": "done",
    "details": {"a": 1},
    "fatal": False,
    "clock": "run",
    "conflict": ["b.txt"],
    "salvage_commit": "c9",
    "created_at": AT_TEXT,
    "updated_at": LATER_TEXT,
    "ended_at": LATER_TEXT,
    "removed_at": None,
}

# -- runs, tasks, attempts -------------------------------------------------------------------


def test_a_run_has_every_key():
    assert RUN.as_json() == {
        "id": "R",
        "name": "title-abc",
        "title": "Title",
        "state": "closed",
        "leader": "lead",
        "repository": "/repo",
        "base_ref": "main",
        "base_commit": "c0",
        "worktree_root": "/trees",
        "on_failure": "continue",
        "max_parallel": 3,
        "created_at": AT_TEXT,
        "closed_at": LATER_TEXT,
        "cancelled_at": None,
    }
    assert RUN._replace(cancelled_at=AT).as_json()["cancelled_at"] == AT_TEXT


def test_a_task_has_every_key():
    assert TASK.as_json() == TASK_JSON


def test_the_text_of_a_task_is_its_title_and_the_body_where_there_is_one():
    assert TASK.text == "Log in\n\nall of it"
    assert TASK._replace(body="").text == "Log in"


def test_an_attempt_has_every_key():
    assert ATTEMPT.as_json() == ATTEMPT_JSON
    assert ATTEMPT._replace(removed_at=AT).as_json() == ATTEMPT_JSON | {"removed_at": AT_TEXT}


def test_an_attempt_that_has_just_begun_has_the_same_keys():
    nothing = dict.fromkeys(
        ("dirty_paths", "details", "conflict", "ended_at", "branch", "worktree_path")
    )

    assert ATTEMPT._replace(**nothing).as_json() == ATTEMPT_JSON | {
        "dirty_paths": [],
        "details": None,
        "conflict": None,
        "ended_at": None,
        "branch": None,
        "worktree": None,
    }


def test_an_attempt_lives_until_it_has_ended():
    assert ATTEMPT._replace(ended_at=None).live
    assert not ATTEMPT.live


def test_a_standing_is_its_task_and_what_follows_for_it():
    standing = Standing(TASK, "waiting", ("up",), LATER, ("a.txt",))

    assert standing.as_json() == TASK_JSON | {
        "standing": "waiting",
        "because": ["up"],
        "until": LATER_TEXT,
        "conflict_paths": ["a.txt"],
    }


def test_a_step_of_the_critical_path_names_its_task():
    assert Step(Standing(TASK, "ready"), 2.5, True).as_json() == {
        "task": "T",
        "key": "login",
        "title": "Log in",
        "standing": "ready",
        "seconds": 2.5,
        "estimated": True,
    }


# -- what is worked on, compared -------------------------------------------------------------

ONE = Side(TASK, ATTEMPT, "c2", ("a.txt",), frozenset({"c2"}))
OTHER = Side(
    TASK._replace(id="U", key="logout"), ATTEMPT._replace(id="B", number=1), "c5", (), frozenset()
)
ONE_NAMED = {"task": "T", "key": "login", "attempt": "A", "number": 2}
OTHER_NAMED = {"task": "U", "key": "logout", "attempt": "B", "number": 1}


def test_a_side_is_named_by_its_key_and_number():
    assert (ONE.name, OTHER.name) == ("login/2", "logout/1")


@pytest.mark.parametrize("other, named", [(OTHER, OTHER_NAMED), (None, None)])
def test_a_pair_names_both_of_its_sides(other, named):
    assert Pair(ONE, other, ("a",), ("b", "c")).as_json() == {
        "one": ONE_NAMED,
        "other": named,
        "paths": ["a"],
        "overlap": ["b", "c"],
    }


@pytest.mark.parametrize("compared, truncated", [(2, True), (3, False)])
def test_the_picture_of_conflicts_says_whether_all_pairs_were_looked_at(compared, truncated):
    pair = Pair(ONE, OTHER, ("a",), ())
    found = Conflicts(RUN, (ONE, OTHER), (pair,), 3, compared, "c7", False).as_json()

    assert found == {
        "items": [pair.as_json()],
        "truncated": truncated,
        "next_cursor": None,
        "attempts": [
            {**ONE_NAMED, "state": "succeeded", "head": "c2", "uncommitted": ["a.txt"]},
            {**OTHER_NAMED, "state": "succeeded", "head": "c5", "uncommitted": []},
        ],
        "integration": "c7",
        "pairs": 3,
        "compared": compared,
        "stale": False,
    }


# -- what is integrated ----------------------------------------------------------------------


def accepted(key: str, **changes: object) -> Task:
    return TASK._replace(id=key, key=key, accepted_attempt=f"A-{key}", **changes)


def attempts_of(*tasks: Task) -> list[Attempt]:
    return [ATTEMPT._replace(id=f"A-{task.key}", task_id=task.id) for task in tasks]


def test_accepted_work_comes_after_what_it_depends_on():
    late, early = accepted("late"), accepted("early", accepted_head="c8")
    edges = [integration.Dependency("late", "early", "success")]

    found = integration.pieces([late, early], edges, attempts_of(late, early))

    assert [(piece.name, piece.head) for piece in found] == [("early/2", "c8"), ("late/2", "c2")]
    assert found[0].task is early and found[0].attempt.id == "A-early"


def test_only_what_succeeded_with_work_of_a_known_attempt_is_brought_in():
    tasks = [
        accepted("good"),
        accepted("failed", state="failed"),
        accepted("research", accepted_head=None),
        accepted("unknown"),
        accepted("last"),
    ]
    attempts = [a for a in attempts_of(*tasks) if a.id != "A-unknown"]

    assert [p.task.key for p in integration.pieces(tasks, [], attempts)] == ["good", "last"]


def test_a_result_says_what_came_of_a_piece():
    piece = integration.Piece(TASK, ATTEMPT, "c2")
    shape = {
        "task": "T",
        "key": "login",
        "attempt": "A",
        "number": 2,
        "branch": "orch/title/t/login/2",
        "head": "c2",
        "state": "merged",
        "commit": "c3",
        "paths": [],
        "because": [],
        "offered": None,
    }

    assert integration.Result(piece, "merged", "c3").as_json() == shape
    assert integration.Result(piece, "conflict", None, ("a",), ("up",), "B").as_json() == shape | {
        "state": "conflict",
        "commit": None,
        "paths": ["a"],
        "because": ["up"],
        "offered": "B",
    }


@pytest.mark.parametrize(
    "ending, passed, sentence",
    [
        (Ending(0), True, "`make test` ended with exit status 0"),
        (Ending(1), False, "`make test` ended with exit status 1"),
        (Ending(None, 9), False, "`make test` was killed by signal 9 (SIGKILL)"),
        (Ending(0, None, 5.0), False, "`make test` was stopped after 5 s, its time limit"),
    ],
)
def test_a_check_of_what_is_integrated_says_how_it_ended(ending, passed, sentence):
    tried = Checked("make  test", ending, 1.5, "tail", 900)

    assert tried.sentence == sentence
    assert tried.as_json() == {
        "command": "make  test",
        "passed": passed,
        "exit_status": ending.exit_status,
        "signal": ending.signal,
        "timed_out_seconds": ending.timed_out,
        "seconds": 1.5,
        "output_tail": "tail",
        "output_bytes": 900,
    }


def test_the_branch_and_the_message_of_an_integration_name_the_run():
    piece = integration.Piece(TASK, ATTEMPT, "c2")

    assert integration.branch_of(RUN) == "orch/title-abc/integration"
    assert integration.merge_message(RUN, piece) == (
        "Integrate login: Log in\n\nRun title-abc, attempt 2."
    )


@pytest.mark.parametrize("branch, named", [("b", "  (it is branch b)"), (None, "")])
def test_who_resolves_a_conflict_is_told_how(branch, named):
    assert texts.conflict_account("c7", ["a", "b"], "c2", branch) == (
        "Accepted, but it does not merge with what was integrated before it (c7), which your"
        " branch starts from. They conflict in: a, b.\n"
        f"Bring that work in and resolve the conflict: git merge c2{named}\n"
        "Then see that everything still works, and commit the merge."
    )


# -- why a worktree is kept ------------------------------------------------------------------


def test_a_reason_shows_five_of_what_it_is_about_and_keeps_a_hundred():
    names = [str(number) for number in range(103)]
    reason = about("dirty", "there are changes", names)

    assert reason.message == "there are changes: 0, 1, 2, 3, 4 and 98 more"
    assert (reason.code, reason.items, reason.how_many) == ("dirty", tuple(names[:100]), 103)
    assert reason.as_json() == {
        "code": "dirty",
        "message": reason.message,
        "items": names[:100],
        "count": 103,
        "overridable": True,
    }


def test_a_reason_about_a_few_things_names_them_all():
    assert about("dirty", "changes", list("abcde")).message == "changes: a, b, c, d, e"
    assert about("dirty", "changes", list("abcdef")).message == (
        "changes: a, b, c, d, e and 1 more"
    )
    assert about("missing", "it is gone") == Reason("missing", "it is gone", (), 0)


def test_a_reason_that_is_not_in_the_table_is_a_bug():
    with pytest.raises(AssertionError, match=r"^mood is not in the table$"):
        about("mood", "no")


@pytest.mark.parametrize("code", sorted(ERRORS))
def test_force_overcomes_what_is_about_work_and_nothing_else(code):
    reason = about(code, "why")

    assert reason.overridable is (code in UNLESS_FORCED)
    assert standing_in_the_way([reason], force=False) == (reason,)
    assert standing_in_the_way([reason], force=True) == ((reason,) if code in ALWAYS else ())


def test_the_error_is_that_of_what_no_flag_overcomes():
    dirty, live = about("dirty", "a"), about("process_inside", "b")

    assert error_code([dirty, live]) == "live_attempt"
    assert error_code([dirty]) == "dirty_repository"
    assert error_code([about("unmerged_work", "a"), dirty]) == "unmerged_work"


def test_the_published_words_of_patches_are_those_that_are_stored():
    assert get_args(things.PatchState) == states.STATES
    assert get_args(things.Way) == WAYS
