"""A decision is answered with `split`: the attempt ends, and the parts of the task come into the
graph in its place, in one transaction."""

from collections.abc import Iterator

import pytest

from inbox_orch.orch.attempts import moving
from inbox_orch.orch.runs.model import Run
from inbox_orch.orch.runs.plan import Link, Plan, TaskSpec
from inbox_orch.orch.runs.plan_import import Refused
from inbox_orch.orch.stages.decide import Answered
from inbox_orch.shared.errors import InboxOrchError
from support.patches import disagreements
from support.runs import Site, git, task_spec
from support.stages import Course, add, agent

POLICY = {"forbid_paths": ["no.txt"]}


@pytest.fixture
def run(site: Site) -> Iterator[Run]:
    """`base` has succeeded, `a` builds on it and waits for a decision; `after` waits for it."""
    run = site.open_run()
    site.add(run, "base")
    options = {"mailbox": "builders", "policy": POLICY}
    add(site, run, "a", agent("write"), depends_on=["base"], **options)
    site.add(run, "after", depends_on=["a"])
    site.deliver(site.dispatch(run)["base"], "base.txt")
    site.scheduler.reconcile(run)
    site.dispatch(run)
    Course(site, run).fail("too much at once")
    yield run
    assert disagreements(site) == []
    assert site.scheduler.doctor(verify=True).problems == 0


def part(key: str, *upstream: str, condition: str = "success", **options) -> TaskSpec:
    spec = task_spec(key, f"Do {key}", **options)
    return spec._replace(depends_on=tuple(Link(each, condition) for each in upstream))


PARTS = Plan((part("p1"), part("p2", "p1", mailbox="others")))


def split(site: Site, run: Run, plan: Plan | None = PARTS, hint: str = "", **options):
    decided = Answered("split", hint, parts=plan)
    return site.leader("boss").answer(run, "a", body=hint, decided=decided, **options)


def edges(site: Site, run: Run) -> dict[str, set[str]]:
    shown = site.scheduler.plan_export(run)
    return {each.key: {link.upstream for link in each.depends_on} for each in shown.tasks}


def test_the_parts_stand_where_the_task_stood(site: Site, run: Run):
    told = split(site, run)

    assert (told["answer"], told["parts"]) == ("split", ["p1", "p2"])
    assert site.states(run) == {
        "base": "succeeded",
        "a": "skipped",
        "after": "waiting",
        "p1": "ready",
        "p2": "waiting",
    }
    wanted = {"base": set(), "a": {"base"}, "p1": {"a"}, "p2": {"a", "p1"}, "after": {"p1", "p2"}}
    assert edges(site, run) == wanted
    (attempt,) = site.attempts(run, "a")
    assert (attempt.state, attempt.reason) == ("cancelled", "split into p1, p2 by boss")
    assert site.task(run, "a").reason == "split into p1, p2 by boss"
    course = Course(site, run)
    assert course.way()[-1] == ("decision", "split") and not any(v.live for v in course.visits())


def test_a_part_has_what_it_does_not_say_from_the_task(site: Site, run: Run):
    other = part("p3", policy={"max_lines": 5})
    split(site, run, Plan((*PARTS.tasks, other, part("p4", worktree=False))))
    found = {key: site.task(run, key) for key in ("a", "p1", "p2", "p3", "p4")}

    assert [found[key].mailbox for key in found] == ["builders"] * 2 + ["others"] + ["builders"] * 2
    assert [found[key].blueprint for key in found] == ["tried"] * 4 + [None]
    assert found["p1"].policy == found["p2"].policy == found["a"].policy
    assert found["p3"].policy != found["a"].policy and found["p4"].policy is None


def test_parts_build_on_what_the_task_built_on_and_their_work_is_the_whole(site: Site, run: Run):
    split(site, run, Plan((part("p1"), part("p2", "p1"))))
    for key in ("p1", "p2"):
        site.dispatch(run)
        Course(site, run, key).work(**{f"{key}_txt": f"{key}\n"})
    site.deliver(site.dispatch(run)["after"], "after.txt")
    site.scheduler.reconcile(run)

    assert site.scheduler.status(run).outcome == "succeeded"
    head = str(site.task(run, "after").accepted_head)
    named = git(site.repository, "ls-tree", "--name-only", head).split()
    assert {"p1.txt", "p2.txt"} < set(named)
    base = str(site.task(run, "base").accepted_head)
    assert git(site.repository, "merge-base", base, head) == base


@pytest.mark.parametrize("plan, message", [
    (Plan(()), "a split needs parts"),
    (Plan((part("after"),)), "the run has a task `after` already"),
    (Plan((part("p1", "after"),)), "`after` waits for `a`, and so for its parts"),
    (Plan((part("p1", "a", condition="failed"),)), "`a` is split, and so never fails"),
    (Plan((part("p1", "p2"), part("p2", "p1"))), "that closes a cycle"),
    (Plan((part("p1", "nobody"),)), "there is no task `nobody`"),
])  # fmt: skip
def test_a_plan_that_cannot_be_changes_nothing(site: Site, run: Run, plan: Plan, message: str):
    before = site.states(run), edges(site, run)
    with pytest.raises(Refused) as refused:
        split(site, run, plan)

    assert message in [fault.message for fault in refused.value.faults][-1]
    assert (site.states(run), edges(site, run)) == before
    assert Course(site, run).visits()[-1].live
    split(site, run)
    assert site.states(run)["a"] == "skipped"


@pytest.mark.parametrize("given, message", [
    (Answered("split", "so"), "split needs the plan of its parts"),
    (Answered("continue", "so", parts=PARTS), "a plan goes with split alone"),
])  # fmt: skip
def test_a_plan_and_split_go_together(site: Site, run: Run, given: Answered, message: str):
    with pytest.raises(InboxOrchError, match=message):
        site.scheduler.answer(run, "a", body="", decided=given)
    assert Course(site, run).visits()[-1].live


class Died(BaseException):
    """As if the process were killed."""


def test_one_that_dies_before_the_end_has_done_nothing(site: Site, run: Run, monkeypatch):
    def dies(*given, **named):
        raise Died

    before = site.states(run), edges(site, run)
    with monkeypatch.context() as patched:
        patched.setattr(moving, "move_task", dies)
        with pytest.raises(Died):
            split(site, run)

    assert (site.states(run), edges(site, run)) == before
    split(site, run)


def test_the_same_call_again_adds_nothing(site: Site, run: Run):
    first = split(site, run, key="k")
    again = split(site, run, key="k")
    assert again == {**first, "replayed": True}
    with pytest.raises(InboxOrchError) as raised:
        split(site, run, Plan((part("p9"),)), key="k")
    assert raised.value.code == "key_conflict"


def test_what_waited_for_its_end_or_its_failure_waits_for_that_of_all_parts(site: Site, run: Run):
    site.scheduler.add_dependency(run, "after", "base")
    for key, condition in (("report", "finished"), ("mourn", "failed")):
        site.add(run, key)
        site.scheduler.add_dependency(run, key, "a", condition)
    split(site, run)
    exported = {each.key: each.depends_on for each in site.scheduler.plan_export(run).tasks}

    assert set(exported["report"]) == {Link("p1", "finished"), Link("p2", "finished")}
    assert set(exported["mourn"]) == {Link("p1", "failed"), Link("p2", "failed")}
    assert {link.upstream for link in exported["after"]} == {"base", "p1", "p2"}


def test_a_task_that_was_split_is_over(site: Site, run: Run):
    split(site, run)
    for verb in ("retry", "cancel"):
        with pytest.raises(InboxOrchError, match="task a is skipped"):
            getattr(site.scheduler, verb)(run, ["a"])
    assert site.scheduler.skip(run, ["a"]).already == ("a",)


def test_a_run_that_was_cancelled_takes_no_parts(site: Site, run: Run):
    site.scheduler.cancel_run(run)
    with pytest.raises(InboxOrchError, match="it waits for no decision"):
        split(site, run)
    assert "p1" not in site.states(run)
