"""`wait`, `drive` and `board` of one run say the same, however its tasks stand."""

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import pytest

from inbox_orch.orch.board.view import Place, head_lines
from inbox_orch.orch.leader.drive import Drive
from inbox_orch.orch.runs.model import Run
from inbox_orch.shared.errors import InboxOrchError
from support.runs import Site

ANSWER = "`orch blocked` shows the questions, `orch answer TASK --body TEXT` answers"
MERGE = "merge by hand, then: orch dispatch TASK --base COMMIT"
STATUS = "`orch status` shows which tasks failed and why"


class Said(NamedTuple):
    """How waiting has ended: `well`, `goes on`, or the code of an error with what it says."""

    code: str
    message: str = ""
    hint: str | None = None
    details: dict[str, Any] | None = None


WELL, GOES_ON = Said("well"), Said("goes on")


def said(failure: InboxOrchError | None) -> Said:
    if failure is None:
        return WELL
    if failure.code == "timeout":
        return GOES_ON
    return Said(failure.code, failure.message, failure.hint, failure.details)


def by_wait(site: Site, run: Run, until: str, after: str) -> Said:
    try:
        waited = site.scheduler.wait(run, until=until, after=after, wait_seconds=0, checks=False)
    except InboxOrchError as error:
        return said(error)
    return said(waited.failure)


def by_drive(site: Site, run: Run, until: str, after: str) -> Said:
    wanted = Drive(until=until, after=after, wait_seconds=0, checks=False)
    *_, last = site.scheduler.drive(run, wanted)
    assert last.ending is not None
    return said(last.ending.failure)


def by_board(site: Site, run: Run) -> Said:
    verdict = site.scheduler.board(run).verdict
    return GOES_ON if verdict is None else said(verdict.failure())


def everything_said(site: Site, run: Run) -> dict[str, Said]:
    """What is said of a run for each goal, after `wait`, `drive` and `board` were found to agree;
    `news` is the goal `change` when there is something that has not been told.

    A drive comes last, because it dispatches what is ready.
    """
    site.scheduler.reconcile(run, checks=False)
    status = site.scheduler.status(run)
    now = status.next_cursor
    tasks = [f"task:{row.standing.task.key}" for row in status.rows]
    goals = {goal: (goal, now) for goal in ("change", "blocked", "run", *tasks)}
    goals["news"] = ("change", "0")
    waits = {name: by_wait(site, run, *goal) for name, goal in goals.items()}
    board = by_board(site, run)
    drives = {name: by_drive(site, run, *goal) for name, goal in goals.items()}

    assert waits == drives
    assert board == waits["run"]
    return waits


# -- ways to bring a task into each standing -------------------------------------------------


def succeed(site: Site, run: Run) -> None:
    site.add(run, "done", worktree=False)
    site.done(site.dispatch(run, "done")["done"])


def fail(site: Site, run: Run) -> None:
    site.add(run, "bad", worktree=False)
    site.fail(site.dispatch(run, "bad")["bad"], fatal=True)


def cancel(site: Site, run: Run) -> None:
    site.add(run, "off", worktree=False)
    site.scheduler.cancel(run, ["off"])


def skip(site: Site, run: Run) -> None:
    site.add(run, "left", worktree=False)
    site.scheduler.skip(run, ["left"])


def block(site: Site, run: Run) -> None:
    site.add(run, "asks", worktree=False)
    item = site.dispatch(run, "asks")["asks"]
    site.worker.ask(item["thread"], site.claim(item, lease_seconds=3600), body="which?")


def strand(site: Site, run: Run) -> None:
    site.add(run, "gone", worktree=False)
    site.add(run, "never", depends_on=["gone"], worktree=False)
    site.scheduler.cancel(run, ["gone"])


def back_off(site: Site, run: Run) -> None:
    site.add(run, "again", worktree=False)
    site.fail(site.dispatch(run, "again")["again"])


def work(site: Site, run: Run) -> None:
    site.add(run, "works", worktree=False)
    site.claim(site.dispatch(run, "works")["works"], lease_seconds=3600)


def add(site: Site, run: Run) -> None:
    site.add(run, "next", worktree=False)


def conflict(site: Site, run: Run) -> None:
    """`merged` depends on two tasks whose work does not merge, and `later` on `merged`."""
    site.add(run, "left-side", "right-side")
    site.add(run, "merged", depends_on=["left-side", "right-side"])
    site.add(run, "later", depends_on=["merged"])
    for key, item in site.dispatch(run, "left-side", "right-side").items():
        site.deliver(item, "same.txt", f"{key}\n")
    site.scheduler.reconcile(run)
    site.dispatch(run)  # finds that they do not merge


STANDINGS: dict[str, Callable[[Site, Run], None]] = {
    "base_conflict": conflict,  # first, because it dispatches whatever is ready
    "succeeded": succeed,
    "failed": fail,
    "cancelled": cancel,
    "skipped": skip,
    "unreachable": strand,
    "backing_off": back_off,
    "blocked": block,
    "active": work,
    "ready": add,
}
TOGETHER = [
    names
    for most in range(3)
    for names in combinations(STANDINGS, most)
] + [
    ("base_conflict", "failed", "blocked"),
    ("base_conflict", "blocked", "active"),
    ("succeeded", "failed", "blocked"),
]  # fmt: skip


@pytest.mark.parametrize("names", TOGETHER, ids=lambda names: "+".join(names) or "nothing")
def test_wait_drive_and_board_say_the_same_however_tasks_stand(site: Site, names: tuple[str, ...]):
    run = site.open_run()
    for name in names:
        STANDINGS[name](site, run)
    site.scheduler.reconcile(run)
    assert set(names) <= set(site.states(run).values())

    site.scheduler.pause_run(run)
    paused = everything_said(site, run)
    if not {"active", "blocked"} & set(names):
        site.scheduler.close_run(run)
        assert GOES_ON not in everything_said(site, run).values()
        site.scheduler.reopen_run(run)
    else:
        site.scheduler.resume_run(run)
    opened = everything_said(site, run)
    if "active" in names:
        assert opened["run"] == paused["run"] == GOES_ON
    site.scheduler.cancel_run(run)
    cancelled = everything_said(site, run)
    assert cancelled["run"].code in ("goes on", "run_unsuccessful")


@pytest.mark.parametrize("policy", ["fail-fast", "abort"])
@pytest.mark.parametrize("name", ["ready", "blocked", "active", "backing_off"])
def test_they_say_the_same_after_a_failure_that_stops_others(site: Site, policy: str, name: str):
    run = site.open_run(on_failure=policy)
    STANDINGS[name](site, run)
    fail(site, run)

    everything_said(site, run)


def test_they_say_the_same_while_a_cancelled_worker_has_not_heard_of_it(site: Site):
    run = site.open_run()
    block(site, run)
    work(site, run)
    site.scheduler.cancel_run(run)
    assert site.scheduler.run(run.id).state == "cancelling"

    told = everything_said(site, run)
    assert (told.pop("blocked"), told.pop("news")) == (GOES_ON, WELL)
    assert {what.code for what in told.values()} <= {"goes on", "run_unsuccessful"}
    site.clock.advance(3601)
    assert everything_said(site, run)["run"].message == f"run {run.name} is cancelled"


# -- what they say ---------------------------------------------------------------------------


def needs_decision(run: Run, reasons: str, hint: str, *tasks: str) -> Said:
    message = f"run {run.name}: nothing runs, and {reasons}"
    return Said("needs_decision", message, hint, {"tasks": list(tasks)})


def test_work_that_does_not_merge_is_told_with_the_way_out(site: Site):
    run = site.open_run()
    conflict(site, run)

    told = everything_said(site, run)
    expected = needs_decision(run, "what it depends on does not merge: merged", MERGE, "merged")
    ended = {"task:left-side", "task:right-side", "news"}
    assert {name for name, what in told.items() if what == WELL} == ended
    assert [what for name, what in told.items() if name not in ended] == [expected] * 5


def test_work_that_does_not_merge_beside_a_question_is_told_with_both_ways_out(site: Site):
    run = site.open_run()
    conflict(site, run)
    block(site, run)

    assert everything_said(site, run)["run"] == needs_decision(
        run,
        "questions are open: asks; what it depends on does not merge: merged",
        f"{ANSWER}; {MERGE}",
        "asks",
        "merged",
    )


def test_work_that_does_not_merge_is_no_failure_beside_one(site: Site):
    run = site.open_run()
    conflict(site, run)
    fail(site, run)

    told = everything_said(site, run)
    assert (told["run"].code, told["run"].details) == ("needs_decision", {"tasks": ["merged"]})
    assert told["task:bad"].message == "bad is failed"


def test_a_question_is_told_whatever_is_waited_for_once_nothing_else_moves(site: Site):
    run = site.open_run()
    block(site, run)
    site.add(run, "after", depends_on=["asks"], worktree=False)

    told = everything_said(site, run)
    expected = needs_decision(run, "questions are open: asks", ANSWER, "asks")
    assert (told["blocked"], told["news"]) == (WELL, WELL)
    for name in ("change", "run", "task:asks", "task:after"):
        assert told[name] == expected


def test_a_question_that_holds_the_last_slot_is_told(site: Site):
    run = site.open_run(max_parallel=1)
    block(site, run)
    add(site, run)

    assert everything_said(site, run)["task:next"].code == "needs_decision"


def test_a_failure_is_told_with_what_can_never_start(site: Site):
    run = site.open_run()
    fail(site, run)
    site.add(run, "after", depends_on=["bad"], worktree=False)

    told = everything_said(site, run)
    facts = {"outcome": "failed", "unreachable": ["after"]}
    failed = Said("run_unsuccessful", f"run {run.name} is failed", STATUS, facts)
    assert told["run"] == told["change"] == told["blocked"] == failed
    assert told["task:after"] == failed._replace(message="after is unreachable")


def said_by_a_board(site: Site, run: Run) -> list[str]:
    lines = head_lines(site.scheduler.board(run), Place(), 100, 24)
    return ["".join(text for text, _ in line) for line in lines]


def test_a_board_shows_the_verdict_with_its_hint(site: Site):
    run = site.open_run()
    conflict(site, run)

    drawn = said_by_a_board(site, run)
    assert f"run {run.name}: nothing runs, and what it depends on does not merge: merged" in drawn
    assert MERGE in drawn


@pytest.mark.parametrize("bring", [add, work, succeed], ids=["ready", "active", "succeeded"])
def test_a_board_of_a_run_that_goes_on_or_ended_well_shows_none(site: Site, bring: Any):
    run = site.open_run()
    bring(site, run)

    drawn = said_by_a_board(site, run)
    assert not [line for line in drawn if "run" in line.split()[:1]]
