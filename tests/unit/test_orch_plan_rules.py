"""What is wrong with a plan, what its tasks come to with the defaults of the run, and back."""

import pytest

from inbox_orch.orch.runs import limits
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.model import Limits
from inbox_orch.orch.runs.plan import (
    Fault,
    Link,
    Plan,
    TaskSpec,
    arrows,
    columns,
    faults,
    planned,
)

CONFIG = Config(
    max_attempts=4, max_infra_attempts=6, checks=("make",), limits=Limits(run_seconds=9.0)
)


def a_task(key: str, *upstream: str, **changes: object) -> TaskSpec:
    return TaskSpec(key, key.title(), depends_on=tuple(map(Link, upstream)), **changes)


def found(*tasks: TaskSpec, present: tuple[str, ...] = (), repository: bool = True):
    return faults(Plan(tasks), present, repository=repository)


def test_a_plan_in_order_has_no_fault():
    tasks = [a_task("a"), a_task("b", "a", "old"), a_task("c", "b", "a")]

    assert found(*tasks, present=("old",)) == []


def test_a_key_may_stand_once_in_a_plan():
    tasks = [a_task("a"), a_task("b"), a_task("b"), a_task("b")]
    message = "the key `b` is that of tasks[1] already"

    assert found(*tasks) == [
        Fault(("tasks", number, "task"), message, "choose another key") for number in (2, 3)
    ]


def test_a_key_may_not_be_that_of_a_task_of_the_run():
    message = "the run has a task `b` already"

    assert found(a_task("a"), a_task("b"), present=("b",)) == [
        Fault(("tasks", 1, "task"), message, "choose another key", "invalid_state")
    ]


def test_a_task_cannot_wait_for_itself():
    assert found(a_task("z"), a_task("a", "z", "a")) == [
        Fault(
            ("tasks", 1, "depends_on", 1),
            "task `a` cannot wait for itself",
            "leave it out",
            "cycle",
            ("a", "a"),
        )
    ]


def test_a_dependency_may_stand_once():
    assert found(a_task("a"), a_task("b", "a", "a")) == [
        Fault(("tasks", 1, "depends_on", 1), "`a` stands here twice", "keep one")
    ]


def test_an_unknown_name_is_told_with_the_nearest_one():
    assert found(a_task("build"), a_task("b", "biuld", "biuld", "zzz")) == [
        Fault(
            ("tasks", 1, "depends_on", 0),
            "there is no task `biuld`",
            "did you mean `build`?",
            "not_found",
        ),
        Fault(("tasks", 1, "depends_on", 1), "`biuld` stands here twice", "keep one"),
        Fault(("tasks", 1, "depends_on", 2), "there is no task `zzz`", None, "not_found"),
    ]


def test_the_nearest_name_is_looked_for_twenty_times():
    tasks = [a_task(f"t{number}", "biuld") for number in range(22)]
    instead = [fault.instead for fault in found(a_task("build"), *tasks)]

    assert instead == ["did you mean `build`?"] * 20 + [None] * 2


def test_a_run_without_a_repository_has_no_worktrees():
    message = "a run without a repository has no worktrees"
    tasks = [a_task("a", worktree=False), a_task("b")]

    missing = Fault(("tasks", 1), message, "write `worktree: false`")
    assert found(*tasks, repository=False) == [missing]
    assert found(*tasks) == []
    assert len(found(*tasks, present=("a",), repository=False)) == 2, "beside the others"


def test_a_task_without_a_worktree_has_no_place_for_checks():
    tasks = [
        a_task("a", checks=("make",)),
        a_task("b", worktree=False, checks=()),
        a_task("c", worktree=False, checks=("make",)),
    ]

    assert found(*tasks) == [
        Fault(("tasks", 2, "checks"), limits.NO_PLACE_FOR_CHECKS, "leave `checks` out")
    ]


def test_a_task_without_a_worktree_leaves_nothing_to_be_harvested():
    tasks = [a_task("a", harvest=True), a_task("b", worktree=False, harvest=False)]
    wrong = a_task("c", worktree=False, harvest=True)

    assert found(*tasks, wrong) == [
        Fault(("tasks", 2, "harvest"), limits.NOTHING_TO_HARVEST, "leave `harvest` out")
    ]


def test_a_cycle_is_told_at_the_link_that_closes_it():
    tasks = [a_task("free"), a_task("a", "free", "c"), a_task("b", "a"), a_task("c", "b")]

    assert found(*tasks) == [
        Fault(
            ("tasks", 1, "depends_on", 1),
            "that closes a cycle: a -> c -> b -> a",
            "leave one of these dependencies out",
            "cycle",
            ("a", "c", "b", "a"),
        )
    ]


def test_cycles_that_have_no_task_in_common_are_told_ten_at_most():
    tasks = []
    for number in range(12):
        tasks += [a_task(f"a{number}", f"b{number}"), a_task(f"b{number}", f"a{number}")]

    assert [fault.cycle for fault in found(*tasks)] == [
        (f"a{number}", f"b{number}", f"a{number}") for number in range(10)
    ]


def test_cycles_are_joined_by_arrows():
    assert arrows(["a", "b", "a"]) == "a -> b -> a"


# -- the defaults of the run -----------------------------------------------------------------


def test_what_a_task_does_not_say_is_as_the_run_has_it():
    assert columns(a_task("a", body="all"), CONFIG, "box") == {
        "key": "a",
        "title": "A",
        "body": "all",
        "kind": "code",
        "mailbox": "box",
        "priority": 0,
        "max_attempts": 4,
        "max_infra_attempts": 6,
        "worktree": True,
        "allow_empty": False,
        "checks": ("make",),
        "limits": Limits(run_seconds=9.0),
    }


OWN = {
    "mailbox": "mine",
    "kind": "research",
    "priority": 5,
    "max_attempts": 1,
    "max_infra_attempts": 2,
    "worktree": False,
    "allow_empty": True,
    "checks": (),
    "limits": Limits(run_seconds=1.0, block_seconds=2.0),
    "harvest": False,
}


def test_what_a_task_says_goes_before_the_defaults():
    assert columns(a_task("a", **OWN), CONFIG, "box") == {
        "key": "a",
        "title": "A",
        "body": "",
        **OWN,
    }


@pytest.mark.parametrize(
    "task",
    [
        a_task("a", "b", "c", body="x"),
        a_task("a", **{**OWN, "checks": ("other",), "worktree": True}),
        a_task("a", worktree=False, limits=Limits(silent_seconds=3.0)),
    ],
)
def test_a_task_comes_back_as_it_was_planned(task: TaskSpec):
    assert planned(columns(task, CONFIG, "box"), task.depends_on, CONFIG, "box") == task


def test_what_equals_the_default_comes_back_as_unsaid():
    task = a_task(
        "a",
        mailbox="box",
        max_attempts=4,
        max_infra_attempts=6,
        checks=("make",),
        limits=Limits(run_seconds=9.0),
    )

    assert planned(columns(task, CONFIG, "box"), (), CONFIG, "box") == a_task("a")


def test_secrets_are_masked_wherever_a_task_has_text():
    task = a_task("a", body="the s3cret body", checks=("curl s3cret",))._replace(title="s3cret")
    masked = task.with_masked(["s3cret"])

    assert masked == task._replace(title="***", body="the *** body", checks=("curl ***",))
    assert task.with_masked([]) is task
    assert a_task("a").with_masked(["s3cret"]) == a_task("a")
