"""Whole plans into runs and out again."""

import pytest

from inbox_orch.orch.runs import plan as plans
from inbox_orch.orch.runs import plan_import
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.model import Limits
from inbox_orch.orch.runs.plan import Link, Opening, Plan, TaskSpec
from inbox_orch.orch.runs.plan_import import Refused
from inbox_orch.shared.errors import InboxOrchError
from support.runs import Site


@pytest.fixture
def site(tmp_path):
    made = Site(tmp_path)
    yield made
    made.close()


def task(key: str, *upstream: str | Link, **options) -> TaskSpec:
    links = tuple(link if isinstance(link, Link) else Link(link) for link in upstream)
    return TaskSpec(key, f"Do {key}", depends_on=links, **options)


def plan(*tasks: TaskSpec) -> Plan:
    return Plan(tasks)


DIAMOND = plan(task("d", "b", Link("c", "finished")), task("b", "a"), task("c", "a"), task("a"))


def faults(site, run, *tasks: TaskSpec) -> list[tuple]:
    with pytest.raises(Refused) as raised:
        site.scheduler.plan_import(run, plan(*tasks))
    return [(fault.code, fault.path, fault.message) for fault in raised.value.faults]


def test_a_plan_in_any_order_becomes_tasks_and_edges(site):
    run = site.open_run()
    done = site.scheduler.plan_import(run, DIAMOND)

    assert (done.data["task_count"], done.data["dependency_count"]) == (4, 4)
    assert site.states(run) == {"d": "waiting", "b": "waiting", "c": "waiting", "a": "ready"}
    assert site.standing(run, "d").because == ("b", "c")


def test_an_import_folds_like_any_other_change(site):
    run = site.open_run()
    site.scheduler.plan_import(run, DIAMOND)

    assert site.scheduler.doctor(verify=True).problems == 0


def test_what_a_task_leaves_open_is_as_the_run_says(site):
    run = site.open_run(config=Config(checks=("make",), max_attempts=7, limits=Limits(5, 6)))
    tasks = (
        task("a"),
        task("b", checks=(), max_attempts=2, limits=Limits(run_seconds=9)),
        task("c", worktree=False),
    )
    site.scheduler.plan_import(run, plan(*tasks))

    a, b, c = (site.task(run, key) for key in "abc")
    assert (a.checks, a.max_attempts, a.limits, a.mailbox) == (
        ("make",),
        7,
        Limits(5, 6),
        "workers",
    )
    assert (b.checks, b.max_attempts, b.limits) == ((), 2, Limits(5, 9))
    assert c.checks == ()


def test_a_task_may_wait_for_one_that_the_run_has_already(site):
    run = site.open_run()
    site.add(run, "old")
    site.scheduler.plan_import(run, plan(task("new", "old")))

    assert site.standing(run, "new").because == ("old",)


def test_everything_that_speaks_against_a_plan_is_said_and_nothing_is_added(site):
    run = site.open_run()
    site.add(run, "lexer")
    found = faults(
        site,
        run,
        task("lexer"),
        task("a", "lexr"),
        task("a"),
        task("b", "b"),
        task("c", "d", "d"),
        task("d", "e"),
        task("e", "c"),
    )

    assert [(code, path) for code, path, _ in found] == [
        ("invalid_state", ("tasks", 0, "task")),
        ("usage", ("tasks", 2, "task")),
        ("not_found", ("tasks", 1, "depends_on", 0)),
        ("cycle", ("tasks", 3, "depends_on", 0)),
        ("usage", ("tasks", 4, "depends_on", 1)),
        ("cycle", ("tasks", 4, "depends_on", 0)),
    ]
    assert found[-1][2] == "that closes a cycle: c -> d -> e -> c"
    assert site.states(run) == {"lexer": "ready"}


def test_an_unknown_task_is_named_with_the_nearest(site):
    run = site.open_run()
    with pytest.raises(Refused) as raised:
        site.scheduler.plan_import(run, plan(task("lexer"), task("parser", "lexr")))

    (fault,) = raised.value.faults
    assert (fault.message, fault.instead) == ("there is no task `lexr`", "did you mean `lexer`?")


def test_cycles_apart_from_one_another_are_all_told(site):
    run = site.open_run()
    found = faults(site, run, task("a", "b"), task("b", "a"), task("c", "d"), task("d", "c"))

    assert [message for _, _, message in found] == [
        "that closes a cycle: a -> b -> a",
        "that closes a cycle: c -> d -> c",
    ]


def test_a_long_cycle_beside_a_long_tail_is_told_whole(site):
    run = site.open_run()
    ring = [task(f"r{n}", f"r{(n + 1) % 3000}") for n in range(3000)]
    tail = [task(f"t{n}", "r0" if n == 0 else f"t{n - 1}") for n in range(3000)]
    with pytest.raises(Refused) as raised:
        site.scheduler.plan_import(run, plan(*tail, *ring))

    (fault,) = raised.value.faults
    assert len(fault.cycle) == 3001
    assert fault.cycle[0] == fault.cycle[-1]


def test_a_run_without_a_repository_takes_no_task_with_a_worktree(site):
    opening = Opening("No git", no_repo=True)
    with pytest.raises(Refused):
        site.scheduler.plan_open(plan(task("a")), opening, repository=None)
    assert site.scheduler.runs() == []

    site.scheduler.plan_open(plan(task("a", worktree=False)), opening, repository=None)
    assert site.states(site.scheduler.run(None)) == {"a": "ready"}


def test_a_plan_that_opens_a_run_does_both_or_neither(site):
    opening = Opening("New", "main", "abort", 3, config=Config(lfs="skip"))
    options = {"repository": str(site.repository), "worktree_root": str(site.worktrees)}
    with pytest.raises(Refused):
        site.scheduler.plan_open(plan(task("a", "b")), opening, **options)
    assert site.scheduler.runs() == []

    done = site.scheduler.plan_open(DIAMOND, opening, key="k", **options)
    again = site.scheduler.plan_open(DIAMOND, opening, key="k", **options)
    (run,) = site.scheduler.runs()
    assert (run.title, run.on_failure, run.max_parallel) == ("New", "abort", 3)
    assert again.data == done.data
    assert again.replayed is True


def test_the_same_key_with_the_same_plan_returns_the_first_result(site):
    run = site.open_run()
    first = site.scheduler.plan_import(run, DIAMOND, key="k")
    again = site.scheduler.plan_import(run, DIAMOND, key="k")
    assert (again.data, again.replayed) == (first.data, True)

    with pytest.raises(InboxOrchError) as raised:
        site.scheduler.plan_import(run, plan(task("z")), key="k")
    assert raised.value.code == "key_conflict"


def test_a_dry_run_finds_the_same_faults_and_writes_nothing(site):
    run = site.open_run()
    with pytest.raises(Refused):
        site.scheduler.plan_check(run, plan(task("a", "b")), repository=True)
    said = site.scheduler.plan_check(run, DIAMOND, repository=True)

    assert (said["task_count"], said["dry_run"]) == (4, True)
    assert site.states(run) == {}


def test_an_exported_run_imports_again_to_an_equal_run(site):
    config = Config(checks=("make",), limits=Limits(5, 6), environment={"A": "1"}, max_attempts=2)
    run = site.open_run(config=config, base="main", on_failure="fail-fast", max_parallel=2)
    tasks = (
        *DIAMOND.tasks,
        task("e", checks=()),
        task("f", checks=("a", "b"), mailbox="gpu", kind="x", priority=-3, allow_empty=True),
        task("g", max_attempts=3, limits=Limits(queue_seconds=1), worktree=False),
        task("h", harvest=True),
        task("i", harvest=False),
    )
    site.scheduler.plan_import(run, plan(*tasks))
    exported = site.scheduler.plan_export(run)
    assert exported.run is not None
    site.scheduler.plan_open(
        exported, exported.run, repository=str(site.repository), worktree_root=str(site.worktrees)
    )

    copy = site.scheduler.runs()[-1]
    assert site.scheduler.plan_export(copy) == exported
    assert copy.config == run.config
    for name in "abcdefghi":
        first, second = site.task(run, name)._asdict(), site.task(copy, name)._asdict()
        for apart in ("id", "number", "run_id", "created_at", "updated_at"):
            del first[apart], second[apart]
        assert first == second


def test_a_key_stands_for_the_same_as_before_tasks_could_say_more(site, monkeypatch):
    asked = []

    def digest_of(request):
        asked.append(request)
        return "0" * 64

    monkeypatch.setattr(plan_import, "digest_of", digest_of)
    run = site.open_run()
    site.scheduler.plan_import(run, plan(task("a"), task("b", harvest=True)), key="k")

    before, said = asked[0]["plan"]
    unsaid = ("result_schema", "harvest", "blueprint", "drawn", "policy", "hands_in")
    names = [name for name in TaskSpec._fields if name not in unsaid]
    assert TaskSpec._fields[-6:] == unsaid
    assert before == [getattr(task("a"), name) for name in names]
    assert said == [*(getattr(task("b"), name) for name in names), None, True]


def test_the_value_of_a_secret_is_not_exported(site):
    config = Config(environment={"TOKEN": "s3cret", "B": "b"}, secrets=("TOKEN",))
    exported = site.scheduler.plan_export(site.open_run(config=config))

    assert exported.run is not None
    assert exported.run.config.environment == {"B": "b"}
    assert exported.run.config.secrets == ("TOKEN",)


def test_a_plan_without_faults_has_none():
    assert plans.faults(DIAMOND, (), repository=True) == []
