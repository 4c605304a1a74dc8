"""`drive`, look by look: what it does, what it tells, and when it ends."""

from collections.abc import Callable, Generator, Sequence
from typing import Any

import pytest

from inbox_orch.orch.attempts import dispatch, provision
from inbox_orch.orch.git import worktrees
from inbox_orch.orch.leader.drive import Drive, Driven, Step
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.model import Run
from inbox_orch.shared.errors import InboxOrchError
from support.buses import refused
from support.runs import Site, add_task, commit


def drive(site: Site, run: Run, scheduler: Scheduler | None = None, **options: Any) -> list[Step]:
    """One look, and what it told; the last step is the ending."""
    leader = scheduler or site.scheduler
    told = []
    for step in leader.drive(run, Drive(**{"wait_seconds": 0, **options})):
        told.append(step)
        leader.mark_told(step)
    return told


def ending(steps: Sequence[Step]) -> Driven:
    assert steps[-1].ending is not None
    return steps[-1].ending


def code(steps: Sequence[Step]) -> str | None:
    """With which error it has ended."""
    failure = ending(steps).failure
    return None if failure is None else failure.code


def lines(steps: Sequence[Step], *types: str) -> list[tuple[str, str]]:
    """What was told: the type, or the kind of the change, and the key."""
    return [
        (line.facts.get("kind") or line.type, line.facts.get("key") or line.facts["code"])
        for step in steps
        for line in step.lines
        if not types or line.type in types
    ]


def items(steps: Sequence[Step]) -> dict[str, dict[str, Any]]:
    """What has been dispatched, by key."""
    return {
        line.facts["key"]: line.facts
        for step in steps
        for line in step.lines
        if line.type == "dispatched"
    }


# -- bringing a run forward ------------------------------------------------------------------


def test_it_dispatches_what_has_become_ready_until_the_run_has_succeeded(site: Site):
    run = site.open_run()
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])

    first = drive(site, run)
    assert lines(first) == [("dispatched", "a")]
    assert code(first) == "timeout"
    site.deliver(items(first)["a"], "a.txt")
    second = drive(site, run)
    assert ("task_succeeded", "a") in lines(second)
    assert items(second)["b"]["base_source"] == "task"
    site.deliver(items(second)["b"], "b.txt")

    assert (code(drive(site, run)), ending(drive(site, run)).outcome) == (None, "succeeded")


def test_what_is_dispatched_is_told_with_all_that_a_worker_needs(site: Site):
    run = site.open_run()
    site.add(run, "a")

    item = items(drive(site, run))["a"]
    assert item == provision.handed_out(site.scheduler.desk, run, site.attempts(run, "a")[0])
    assert item["brief"]


def test_the_mailbox_of_the_call_is_used_instead_of_the_tasks_own(site: Site):
    run = site.open_run()
    site.add(run, "a")

    assert items(drive(site, run, mailbox="reviewers"))["a"]["mailbox"] == "reviewers"


def test_no_more_is_dispatched_than_may_run_at_once(site: Site):
    run = site.open_run(max_parallel=2)
    site.add(run, "a", "b", "c")

    assert set(items(drive(site, run))) == {"a", "b"}
    assert drive(site, run)[0].lines == ()


def test_a_failed_task_is_tried_again_when_its_back_off_is_over_and_not_before(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    first = items(drive(site, run))
    site.fail(first["a"])

    assert "a" not in items(drive(site, run))
    until = site.standing(run, "a").until
    assert until is not None
    site.clock.advance((until - site.clock.wall_ms) / 1000 - 0.001)
    assert "a" not in items(drive(site, run))
    site.clock.advance(0.001)
    assert items(drive(site, run))["a"]["number"] == 2


def test_a_worktree_that_cannot_be_made_does_not_stop_the_drive(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    run = site.open_run()
    site.add(run, "a", "b")
    make = worktrees.make

    def fail_for_a(repository, place, *rest):
        if place.branch.endswith("/a/1"):
            raise InboxOrchError("git_failed", "no room")
        make(repository, place, *rest)

    monkeypatch.setattr(worktrees, "make", fail_for_a)

    steps = drive(site, run)
    assert set(items(steps)) == {"b"}
    assert ("attempt_provision_failed", "a") in lines(steps)
    assert code(steps) == "timeout"
    site.clock.advance(3)
    assert items(drive(site, run))["a"]["number"] == 2


@pytest.mark.parametrize("reason", ["disk_full", "git_failed", "read_only"])
def test_a_disk_that_takes_nothing_now_does_not_stop_the_drive(
    site: Site, monkeypatch: pytest.MonkeyPatch, reason: str
):
    run = site.open_run()
    site.add(run, "a")
    with monkeypatch.context() as patch:

        def refuse(*_: object, **__: object) -> None:
            raise InboxOrchError(reason, "not now")

        patch.setattr(dispatch, "dispatch", refuse)
        steps = drive(site, run)
    assert (lines(steps, "notice"), code(steps)) == ([("notice", reason)], "timeout")
    assert set(items(drive(site, run))) == {"a"}


def test_a_drive_finishes_what_an_earlier_call_of_its_own_process_could_not(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    run = site.open_run()
    site.add(run, "a")
    with monkeypatch.context() as patch, refused("busy"):

        def busy(*_: object) -> None:
            raise InboxOrchError("busy", "another writer")

        patch.setattr(provision, "_hand_out", busy)
        site.scheduler.dispatch(run)
    assert [a.state for a in site.attempts(run, "a")] == ["allocating"]

    assert set(items(drive(site, run))) == {"a"}


# -- telling ---------------------------------------------------------------------------------


def test_a_second_drive_goes_on_from_what_has_been_told(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    first = items(drive(site, run))
    site.fail(first["a"], fatal=True)

    untold = list(site.scheduler.drive(run, Drive(wait_seconds=0)))
    again = drive(site, run)
    assert lines(untold) == lines(again)
    assert ("task_failed", "a") in lines(again)
    assert lines(drive(site, run)) == []


def test_what_another_leader_dispatches_is_told_too(site: Site):
    run = site.open_run()
    site.add(run, "a")
    site.dispatch(run)

    assert lines(drive(site, run)) == [("dispatched", "a")]


def test_a_thread_that_is_offered_again_is_not_told_as_dispatched(site: Site):
    run = site.open_run()
    site.add(run, "a")
    item = items(drive(site, run))["a"]
    token = site.claim(item)
    drive(site, run)
    site.worker.release(item["thread"], token)

    assert lines(drive(site, run)) == []


def test_more_events_than_fit_into_one_step_are_all_told(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("inbox_orch.orch.leader.drive._MOST_EVENTS", 2)
    run = site.open_run()
    keys = [f"t{n}" for n in range(5)]
    site.add(run, *keys, worktree=False)
    for item in site.dispatch(run).values():
        site.done(item)

    steps = drive(site, run, wait_seconds=1)
    assert sorted(key for kind, key in lines(steps) if kind == "task_succeeded") == keys
    assert code(steps) is None


# -- decisions -------------------------------------------------------------------------------


def ask(site: Site, item: dict[str, Any]) -> str:
    token = site.claim(item)
    site.worker.ask(item["thread"], token, body="which?")
    return token


def test_a_question_is_told_at_once_and_ends_the_drive_only_when_nothing_else_moves(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    first = items(drive(site, run))
    ask(site, first["a"])

    steps = drive(site, run)
    assert ("question", "a") in lines(steps)
    assert code(steps) == "timeout"
    site.deliver(first["b"], "b.txt")
    last = drive(site, run)
    assert code(last) == "needs_decision"
    assert [q.task.key for q in ending(last).questions] == ["a"]


def test_until_blocked_ends_at_the_first_question(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    first = items(drive(site, run))
    ask(site, first["a"])

    steps = drive(site, run, until="blocked")
    assert (code(steps), [q.task.key for q in ending(steps).questions]) == (None, ["a"])


def test_an_answer_sets_the_drive_going_again(site: Site):
    run = site.open_run()
    site.add(run, "a")
    item = items(drive(site, run))["a"]
    token = ask(site, item)
    assert code(drive(site, run)) == "needs_decision"

    site.scheduler.answer(run, "a", body="this")
    assert code(drive(site, run)) == "timeout"
    commit(item["worktree"], "a.txt", "text")
    site.worker.done(item["thread"], token, body="done")
    assert code(drive(site, run)) is None


def conflicting(site: Site, run: Run) -> None:
    """`c` depends on two tasks whose work does not merge."""
    site.add(run, "a", "b")
    site.add(run, "c", depends_on=["a", "b"])
    for key, item in items(drive(site, run)).items():
        site.deliver(item, "same.txt", f"{key}\n")


def test_work_that_does_not_merge_needs_a_decision_once_nothing_else_moves(site: Site):
    run = site.open_run()
    conflicting(site, run)
    site.add(run, "d")

    steps = drive(site, run)
    assert ("base_conflict", "c") in lines(steps)
    assert code(steps) == "timeout", "d moves"
    site.deliver(items(steps)["d"], "d.txt")
    last = drive(site, run)
    assert code(last) == "needs_decision"
    assert [standing.task.key for standing in ending(last).conflicts] == ["c"]
    assert "--base" in str(ending(last).failure.hint)


def test_a_run_that_failed_ends_the_drive_and_names_what_can_never_start(site: Site):
    run = site.open_run()
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    site.fail(items(drive(site, run))["a"], fatal=True)

    last = drive(site, run)
    assert (code(last), ending(last).unreachable) == ("run_unsuccessful", ("b",))


@pytest.mark.parametrize("fatal, expected", [(False, None), (True, "run_unsuccessful")])
def test_until_a_task_ends_with_it(site: Site, fatal: bool, expected: str | None):
    run = site.open_run()
    site.add(run, "a", "b")
    item = items(drive(site, run))["a"]
    if fatal:
        site.fail(item, fatal=True)
    else:
        site.deliver(item, "a.txt")

    assert code(drive(site, run, until="task:a")) == expected


def test_until_change_ends_with_the_first_one(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    assert code(drive(site, run, until="change")) == "timeout", "to dispatch is no change"
    site.deliver(
        provision.handed_out(site.scheduler.desk, run, site.attempts(run, "a")[0]), "a.txt"
    )

    steps = drive(site, run, until="change")
    assert (code(steps), ending(steps).outcome) == (None, "running")


# -- what keeps it from dispatching ----------------------------------------------------------


def test_changes_that_no_worker_would_see_end_it_when_nothing_else_moves(site: Site):
    run = site.open_run()
    site.add(run, "a")
    (site.repository / "README.md").write_text("changed")

    steps = drive(site, run)
    assert code(steps) == "dirty_repository"
    assert lines(steps, "notice") == [("notice", "dirty_repository")]
    assert site.attempts(run, "a") == []
    assert set(items(drive(site, run, allow_dirty=True))) == {"a"}


def test_what_runs_goes_on_though_nothing_more_can_be_dispatched(site: Site):
    run = site.open_run()
    site.add(run, "a")
    item = items(drive(site, run))["a"]
    site.add(run, "b")
    (site.repository / "README.md").write_text("changed")

    steps = drive(site, run)
    assert code(steps) == "timeout"
    assert "README.md" in str(ending(steps).obstacle)
    site.deliver(item, "a.txt")
    last = drive(site, run)
    assert ("task_succeeded", "a") in lines(last)
    assert code(last) == "dirty_repository"


def test_a_run_without_tasks_is_waited_for(site: Site):
    assert code(drive(site, site.open_run())) == "timeout"


def test_what_cannot_be_waited_for_is_a_wrong_call(site: Site):
    run = site.open_run()
    with refused("usage"):
        drive(site, run, until="doomsday")
    with refused("not_found"):
        drive(site, run, until="task:nobody")
    with refused("usage"):
        drive(site, run, mailbox="no mailbox")


# -- waking ----------------------------------------------------------------------------------


def test_the_end_of_a_back_off_is_when_it_looks_again(site: Site, monkeypatch: pytest.MonkeyPatch):
    run = site.open_run()
    site.add(run, "a")
    site.fail(items(drive(site, run))["a"])
    looks = []

    def never_sleep(database, topics, look, **_: object):
        looks.append(look())

    drive(site, run)
    monkeypatch.setattr("inbox_orch.shared.store.waits.wait", never_sleep)
    drive(site, run)
    assert looks[0].found is None
    assert looks[0].due_wall_ms == site.standing(run, "a").until


# -- checks ----------------------------------------------------------------------------------


def test_checks_are_run_once_there_is_nothing_else_to_do(site: Site):
    run = site.open_run()
    site.add(run, "a", checks=["test -e a.txt"])
    site.add(run, "b", depends_on=["a"])
    site.deliver(items(drive(site, run))["a"], "a.txt")

    steps = drive(site, run, wait_seconds=1, until="task:a")
    assert [kind for kind, _ in lines(steps[:1])] == ["attempt_submitted"]
    assert ("task_succeeded", "a") in lines(steps)
    assert "b" in items(steps), "which was dispatched in the same look"


def test_checks_are_left_to_another_leader_on_request(site: Site):
    run = site.open_run()
    site.add(run, "a", checks=["true"])
    site.deliver(items(drive(site, run))["a"], "a.txt")

    drive(site, run, wait_seconds=0, checks=False)
    assert site.attempts(run, "a")[0].state == "submitted"


def drive_through_a_check(
    site: Site, run: Run, meanwhile: Callable[[], object], **options: Any
) -> list[Step]:
    """Drive work whose check goes on until `release`: do something while it runs, release it at
    the step that tells of that, and go on to the end."""
    release = site.folder / "release"
    site.add(run, "a", checks=[f"until test -e {release}; do sleep 0.02; done"])
    site.deliver(items(drive(site, run))["a"], "a.txt")
    drive(site, run, checks=False)  # and tell of all that
    begun: list[str] = []

    def pulse() -> None:
        if not begun:
            begun.append(site.attempts(run, "a")[0].state)
            meanwhile()

    told = []
    for step in site.scheduler.drive(run, Drive(wait_seconds=60, pulse=pulse, **options)):
        told.append(step)
        if begun and not release.exists():
            assert step.ending is None
            assert site.attempts(run, "a")[0].state == begun[0] == "verifying"
            release.touch()
    assert begun
    return told


def test_what_becomes_ready_while_a_check_runs_is_dispatched_before_its_end(site: Site):
    run = site.open_run()
    other = site.leader()

    told = drive_through_a_check(
        site, run, lambda: add_task(other, run, key_name="b", title="Do b"), until="task:a"
    )
    order = lines(told, "dispatched", "change")
    assert order.index(("dispatched", "b")) < order.index(("task_succeeded", "a"))
    assert code(told) is None


def test_a_question_that_comes_while_a_check_runs_is_told_and_cuts_no_check_short(site: Site):
    run = site.open_run()
    site.add(run, "b")
    b = items(drive(site, run))["b"]
    token = site.claim(b)

    told = drive_through_a_check(
        site, run, lambda: site.worker.ask(b["thread"], token, body="Which?"), until="blocked"
    )
    order = lines(told)
    assert order.index(("question", "b")) < order.index(("task_succeeded", "a"))
    assert code(told) is None


def test_what_ends_a_drive_while_a_check_runs_ends_it_after_the_check(site: Site):
    run = site.open_run()
    site.add(run, "c")
    c = items(drive(site, run))["c"]

    told = drive_through_a_check(site, run, lambda: site.fail(c, fatal=True), until="task:c")
    order = lines(told)
    assert order.index(("task_failed", "c")) < order.index(("task_succeeded", "a"))
    assert code(told) == "run_unsuccessful"


def test_a_drive_until_the_next_change_ends_after_the_check_that_ran_meanwhile(site: Site):
    run = site.open_run()
    site.add(run, "c")
    c = items(drive(site, run))["c"]

    told = drive_through_a_check(site, run, lambda: site.fail(c), until="change")
    assert code(told) is None
    assert ("attempt_failed", "c") in lines(told[:1])


def test_a_drive_that_is_left_while_a_check_runs_gives_the_work_back(site: Site):
    run = site.open_run()
    site.add(run, "a", checks=["sleep 60"])
    site.deliver(items(drive(site, run))["a"], "a.txt")
    other = site.leader()
    steps = site.scheduler.drive(
        run,
        Drive(
            wait_seconds=60,
            pulse=lambda: add_task(
                other, run, key_name=f"t{len(site.states(run))}", title="Another"
            ),
        ),
    )
    assert isinstance(steps, Generator)
    while site.attempts(run, "a")[0].state != "verifying":
        next(steps)

    steps.close()
    assert site.attempts(run, "a")[0].state == "submitted"
    assert site.open_intents(run) == []


# -- a run as a whole ------------------------------------------------------------------------


def test_a_paused_run_is_waited_for_and_goes_on_when_it_is_resumed(site: Site):
    run = site.open_run()
    site.add(run, "a")
    site.scheduler.pause_run(run)

    steps = drive(site, run)
    assert (lines(steps), code(steps)) == ([], "timeout")
    site.scheduler.resume_run(run)
    assert set(items(drive(site, run))) == {"a"}


def test_a_question_is_a_decision_also_while_the_run_is_paused(site: Site):
    run = site.open_run()
    site.add(run, "a", "b", max_attempts=1)
    ask(site, items(drive(site, run))["a"])
    site.scheduler.cancel(run, ["b"])
    site.add(run, "c")
    site.scheduler.pause_run(run)

    assert code(drive(site, run)) == "needs_decision"


@pytest.mark.parametrize("verb, outcome", [("close_run", "failed"), ("cancel_run", "cancelled")])
def test_a_run_that_is_over_before_it_is_done_ends_the_drive(site: Site, verb: str, outcome: str):
    run = site.open_run()
    site.add(run, "a")
    getattr(site.scheduler, verb)(run)

    steps = drive(site, run)
    assert (code(steps), ending(steps).outcome) == ("run_unsuccessful", outcome)
    assert items(steps) == {}


def test_a_retried_task_is_dispatched_by_the_drive_that_goes_on(site: Site):
    run = site.open_run()
    site.add(run, "a", "b")
    site.fail(items(drive(site, run))["a"], fatal=True)
    drive(site, run)

    site.scheduler.retry(run, ["a"])
    assert items(drive(site, run))["a"]["number"] == 2
