"""Tasks that wait to be dispatched are changed in place or taken out; nothing else is."""

import pytest

from inbox_orch.orch.attempts import dispatch
from inbox_orch.orch.attempts.rework import Edit, edit_task, remove_task
from inbox_orch.orch.leader import wait as waiting
from inbox_orch.orch.runs import task_rows
from inbox_orch.orch.runs.model import Limits
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store import events
from support.buses import refused
from support.chambers import Chamber
from support.runs import Site, only_for


@pytest.fixture
def run(site: Site):
    return site.open_run()


@pytest.fixture
def chamber(tmp_path):
    chamber = Chamber(tmp_path)
    yield chamber
    chamber.close()


def kinds(site: Site, run) -> list[str]:
    with site.scheduler.database.snapshot() as snapshot:
        matching = events.Matching(run_id=run.id)
        return [e.kind for e in events.after(snapshot, 0, limit=1000, matching=matching)]


def sound(site: Site) -> bool:
    """Whether the tables are what the events say."""
    return site.scheduler.doctor(verify=True).problems == 0


# -- edit ------------------------------------------------------------------------------------


def test_a_pending_task_is_as_it_was_edited_when_it_is_dispatched(site: Site, run):
    site.add(run, "a", checks=["false"])
    wanted = Edit(
        title="Another",
        body="In other words.",
        priority=5,
        checks=("true",),
        limits=Limits(run_seconds=60),
    )

    done = edit_task(site.scheduler.desk, run, "a", wanted)

    assert done.data["changed"] == ["title", "body", "priority", "checks", "limits"]
    task = site.task(run, "a")
    assert (task.title, task.priority, task.checks) == ("Another", 5, ("true",))
    assert task.limits.run_seconds == 60
    item = site.dispatch(run)["a"]
    said = site.worker.messages(item["thread"])[0].body
    assert said is not None
    assert said.startswith("Another\n\nIn other words.")
    assert kinds(site, run).count("task_edited") == 1
    assert sound(site)


def test_to_say_what_is_so_changes_nothing(site: Site, run):
    site.add(run, "a")

    done = edit_task(site.scheduler.desk, run, "a", Edit(title="Do a", priority=0))

    assert done.data["changed"] == []
    assert "task_edited" not in kinds(site, run)


def test_a_key_makes_a_repeat_return_the_first_answer(site: Site, run):
    site.add(run, "a", "b")
    desk = site.scheduler.desk
    first = edit_task(desk, run, "a", Edit(title="One"), key="k")
    edit_task(desk, run, "a", Edit(title="Two"))

    again = edit_task(desk, run, "a", Edit(title="One"), key="k")

    assert (again.replayed, again.data) == (True, first.data)
    assert site.task(run, "a").title == "Two"
    with refused("key_conflict"):
        edit_task(desk, run, "a", Edit(title="Three"), key="k")
    removed = remove_task(desk, run, "b", key="k")
    assert remove_task(desk, run, "b", key="k").data == removed.data


@pytest.mark.parametrize("call", [lambda d, r: edit_task(d, r, "a", Edit(priority=1)), remove_task])
def test_what_is_with_a_worker_stays_as_it_was_handed_out(site: Site, run, call):
    site.add(run, "a")
    site.dispatch(run)
    before = kinds(site, run)

    with refused("invalid_state") as failure:
        call(site.scheduler.desk, run, *(() if call is not remove_task else ("a",)))

    assert "orch cancel a" in str(failure.value.hint)
    assert kinds(site, run) == before


def test_a_task_that_is_to_be_tried_again_can_be_put_in_other_words(site: Site, run):
    site.add(run, "a")
    site.fail(site.dispatch(run)["a"])

    edit_task(site.scheduler.desk, run, "a", Edit(body="Mind the gap."))

    assert "Mind the gap." in site.task(run, "a").body
    with refused("invalid_state"):
        remove_task(site.scheduler.desk, run, "a")


def test_checks_need_a_worktree(site: Site, run):
    site.add(run, "a", worktree=False)

    with refused("usage"):
        edit_task(site.scheduler.desk, run, "a", Edit(checks=("true",)))


# -- remove ----------------------------------------------------------------------------------


def test_a_task_that_was_never_dispatched_is_taken_out_with_its_edges(site: Site, run):
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    desk = site.scheduler.desk

    with refused("invalid_state") as failure:
        remove_task(desk, run, "a")
    assert failure.value.details["dependents"] == ["b"]

    assert remove_task(desk, run, "b").data["depends_on"] == ["a"]
    assert site.states(run) == {"a": "ready"}
    with refused("not_found"):
        remove_task(desk, run, "b")
    remove_task(desk, run, "a")
    assert kinds(site, run)[-3:] == ["dependency_removed", "task_removed", "task_removed"]
    assert sound(site)
    site.add(run, "a")
    assert site.states(run) == {"a": "ready"}


def test_a_task_that_is_removed_while_it_is_chosen_is_not_dispatched(
    site: Site, run, monkeypatch: pytest.MonkeyPatch
):
    site.add(run, "a", "b")
    genuine, other = dispatch._allocate, site.leader()

    def remove_and_allocate(*arguments):
        if "b" in site.states(run):
            remove_task(other.desk, run, "b")
        return genuine(site.scheduler.desk, *arguments)

    only_for(monkeypatch, site.scheduler, dispatch, "_allocate", remove_and_allocate)

    assert set(site.dispatch(run)) == {"a"}
    site.add(run, "b")
    with refused("not_found"):
        site.dispatch(run, "b")


def test_who_is_told_of_a_run_is_told_nothing_of_what_was_removed(site: Site, run):
    site.add(run, "a", "b")
    site.scheduler.cancel(run, ["a"])
    site.scheduler.retry(run, ["a"])
    remove_task(site.scheduler.desk, run, "a")
    site.scheduler.skip(run, ["b"])

    waited = site.scheduler.wait(run, after="0", wait_seconds=0)

    assert {waited.keys[str(event.task_id)] for event in waited.changes} == {"b"}


def test_waiting_for_a_task_that_is_removed_ends(site: Site, run, monkeypatch):
    site.add(run, "a", "b")
    goal = "task:a"
    genuine = waiting.reconcile

    def remove_then_reconcile(*arguments, **named):
        if "a" in site.states(run):
            remove_task(site.leader().desk, run, "a")
        return genuine(site.scheduler.desk, *arguments, **named)

    only_for(monkeypatch, site.scheduler, waiting, "reconcile", remove_then_reconcile)

    waited = site.scheduler.wait(run, until=goal, wait_seconds=0)

    assert isinstance(waited.failure, InboxOrchError)
    assert (waited.failure.code, waited.failure.message) == ("run_unsuccessful", "a was removed")


def test_a_seat_of_a_council_is_neither_changed_nor_taken_out(chamber):
    run = chamber.start()
    with chamber.scheduler.database.snapshot() as snapshot:
        key = task_rows.of_run(snapshot, run.id)[0].key

    for call in (remove_task, lambda d, r, k: edit_task(d, r, k, Edit(priority=1))):
        with refused("invalid_state"):
            call(chamber.scheduler.desk, run, key)
