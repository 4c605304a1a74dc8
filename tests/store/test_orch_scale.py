"""Large runs: what is read of them is bounded, and the deepest graphs are no trouble."""

import json

import pytest

from inbox_orch.orch.gates.definitions import Gate
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.plan import Link, Plan, TaskSpec
from inbox_orch.orch.stages.decide import Answered
from support.buses import refused
from support.runs import Site
from support.stages import Course, add, agent, gates


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    made.close()


def chain(length: int) -> Plan:
    return Plan(
        tuple(
            TaskSpec(f"t{n}", f"Do {n}", "body", depends_on=(Link(f"t{n - 1}"),) if n else ())
            for n in range(length)
        )
    )


def test_a_cycle_through_two_thousand_tasks_is_refused_with_its_path(site):
    run = site.open_run()
    site.scheduler.plan_import(run, chain(2000))
    with refused("cycle") as raised:
        site.scheduler.add_dependency(run, "t0", "t1999")

    path = raised.value.details["cycle"]
    assert (len(path), path[:2], path[-2:]) == (2001, ["t0", "t1999"], ["t1", "t0"])
    assert site.scheduler.doctor(verify=True).problems == 0


def test_a_status_that_is_cut_shows_first_what_needs_somebody(site):
    run = site.open_run()
    site.add(run, *(f"t{n}" for n in range(8)))
    site.add(run, "later", depends_on=["t0"])
    item = site.dispatch(run, "t5")["t5"]
    site.fail(item, fatal=True)
    whole = site.scheduler.status(run)
    cut = whole.limited(3)

    assert [row.standing.task.key for row in cut.rows] == ["t0", "t1", "t5"]
    assert cut.counts == whole.counts == {"ready": 7, "failed": 1, "waiting": 1}
    assert cut.as_json()["truncated"] is True
    assert whole.limited(9) == whole
    assert whole.as_json()["truncated"] is False


def test_a_status_names_first_what_needs_somebody_and_can_be_had_of_some_alone(site):
    run = site.open_run()
    site.add(run, *(f"t{n}" for n in range(4)))
    site.add(run, "later", depends_on=["t2"])
    site.fail(site.dispatch(run, "t2")["t2"], fatal=True)
    asking = site.dispatch(run, "t3")["t3"]
    site.worker.ask(asking["thread"], site.claim(asking), body="Which one?")
    site.scheduler.skip(run, ["t0"])
    whole = site.scheduler.status(run)
    some = whole.only(["failed", "ready"])

    assert [row.standing.task.key for row in whole.by_need] == ["t3", "t2", "later", "t0", "t1"]
    assert whole.as_json()["needs"] == ["t3", "t2", "later"]
    assert [item["key"] for item in whole.as_json()["items"]] == ["t0", "t1", "t2", "t3", "later"]
    brief = whole.brief_json()
    assert [item["why"] for item in brief["items"]] == [
        "its worker asks",
        "attempt 1 failed: it does not work",
        "because of t2",
        None,
        None,
    ]
    assert (brief["run"], brief["items"][0]["holder"]) == (run.name, "w1")
    assert [row.standing.task.key for row in some.rows] == ["t1", "t2"]
    assert (some.counts, some.as_json()["truncated"]) == (whole.counts, False)


def test_a_brief_status_of_two_hundred_tasks_is_small(site):
    run = site.open_run()
    site.scheduler.plan_import(run, chain(200))
    status = site.scheduler.status(run)

    assert len(json.dumps(status.brief_json())) < 25_000
    assert len(json.dumps(status.as_json())) > 60_000


def test_what_is_ready_is_cut_from_the_end(site):
    run = site.open_run()
    site.add(run, "a", "b", "c")
    cut = site.scheduler.ready(run).limited(2).as_json()

    assert [item["key"] for item in cut["items"]] == ["a", "b"]
    assert cut["truncated"] is True


def test_a_picture_of_a_run_does_not_hold_the_bodies(site):
    run = site.open_run()
    site.add(run, "a", body="long")

    assert site.standing(run, "a").task.body == ""
    item = site.dispatch(run)["a"]
    assert "long" in site.worker.claim(item["thread"], mailboxes=["workers"]).messages[0].body


def test_no_command_of_the_daily_work_goes_through_a_whole_table(engine, site):
    # `cleanup` looks at every attempt once, and is left out.
    run, other = site.open_run(), site.open_run()
    site.add(other, "x", worktree=False)
    site.dispatch(other)
    with engine.statements(site.scheduler.database) as seen:
        site.add(run, "a", "b", worktree=False)
        site.add(run, "c", worktree=False, depends_on=["a"])
        items = site.dispatch(run)
        site.scheduler.ready(run)
        site.scheduler.status(run)
        site.done(items["a"])
        site.scheduler.reconcile(run)
        site.scheduler.status(run)
        site.dispatch(run)
        site.scheduler.cancel(run, ["b"])
        site.scheduler.retry(run, ["b"])

    scans = {
        (what, statement)
        for what, statement in engine.scans(site.scheduler.database, seen)
        # What is begun at this moment, by anybody.
        if what != "SCAN intent USING INDEX intent_open"
    }
    assert len(seen) > 300
    assert scans == set()


STAGES = (
    agent("write", on_success="all"),
    gates("all", on_success="look"),
    gates("look", run="! grep -q bad a.txt", on_failure="mend"),
    agent("mend", max_visits=1, on_success="all"),
)


def test_no_step_of_a_blueprint_goes_through_a_whole_table(engine, site):
    run = site.open_run(config=Config(gates=(Gate("any", "true").as_json(),), finds=()))
    course = Course(site, run)
    with engine.statements(site.scheduler.database) as seen:
        add(site, run, "a", *STAGES, checks=["true"])
        site.dispatch(run)
        course.lead()
        course.work(a_txt="bad\n")
        site.scheduler.status(run)
        course.work(a_txt="bad as ever\n")
        site.scheduler.answer(run, "a", body="", decided=Answered("accept"))
        course.lead()
        site.scheduler.status(run)

    scans = {
        (what, statement)
        for what, statement in engine.scans(site.scheduler.database, seen)
        if what != "SCAN intent USING INDEX intent_open"
    }
    ways = [("write", "succeeded"), ("all", "succeeded"), ("look", "failed"), ("mend", "succeeded")]
    assert course.way()[:4] == ways
    assert site.states(run) == {"a": "succeeded"}
    tables = ("visit", "blueprint", "gate_result", "surroundings")
    assert [t for t in tables if not any(t in statement for statement in seen)] == []
    assert scans == set()


def test_a_look_asks_no_more_for_tasks_with_blueprints_that_are_over(engine, site):
    run = site.open_run(config=Config(finds=()))
    for key in ("a", "b", "c"):
        add(site, run, key, agent("write"))
    site.dispatch(run)

    def looks() -> int:
        with engine.statements(site.scheduler.database) as seen:
            site.scheduler.reconcile(run)
            site.scheduler.status(run)
        return len(seen)

    Course(site, run, "a").work(a_txt="a\n")
    before = looks()
    Course(site, run, "b").work(a_txt="b\n")

    assert looks() <= before
    assert site.states(run) == {"a": "succeeded", "b": "succeeded", "c": "active"}
