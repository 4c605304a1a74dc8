"""What a dispatch chooses, when another leader or a repeat of the call is in between."""

import functools

import pytest

from inbox_orch.orch.attempts import dispatch, provision
from inbox_orch.orch.runs.config import Config
from support.buses import refused
from support.runs import Site, only_for


@pytest.fixture
def run(site: Site):
    return site.open_run()


def before_it_allocates(monkeypatch, scheduler, happening) -> None:
    """Let something happen once, between the choice and the transaction that makes attempts."""
    allocate, left = functools.partial(dispatch._allocate, scheduler.desk), [happening]

    def happen_and_allocate(*arguments, **options):
        if left:
            left.pop()()
        return allocate(*arguments, **options)

    only_for(monkeypatch, scheduler, dispatch, "_allocate", happen_and_allocate)


def stored_keys(site: Site) -> int:
    with site.scheduler.database.snapshot() as snapshot:
        return snapshot.one("SELECT count(*) FROM request")[0]


# -- dry runs and keys -----------------------------------------------------------------------


def test_a_dry_run_with_the_key_of_a_dispatch_repeats_nothing(site: Site, run):
    site.add(run, "a")
    site.scheduler.dispatch(run, key="k")
    site.add(run, "b")

    done = site.scheduler.dispatch(run, key="k", dry_run=True)

    assert done.dry_run
    assert done.replayed is None
    assert [(i["key"], i["state"]) for i in done.items] == [("b", "planned")]


def test_a_dry_run_finishes_nothing_that_a_killed_call_with_its_key_began(
    site: Site, run, monkeypatch
):
    site.add(run, "a")

    def die(*arguments):
        raise KeyboardInterrupt

    only_for(monkeypatch, site.scheduler, provision, "provision", die)
    with pytest.raises(KeyboardInterrupt):
        site.scheduler.dispatch(run, key="k")
    monkeypatch.undo()

    assert site.scheduler.dispatch(run, key="k", dry_run=True).items == ()
    assert site.attempts(run, "a")[0].state == "allocating"
    assert not site.worktrees.exists()


def test_a_dry_run_keeps_its_key_for_the_real_one(site: Site, run):
    site.add(run, "a")

    site.scheduler.dispatch(run, key="k", dry_run=True)

    assert stored_keys(site) == 0
    done = site.scheduler.dispatch(run, key="k")
    assert (done.replayed, done.items[0]["state"]) == (False, "offered")


def test_a_dry_run_with_a_key_that_cannot_be_one_is_refused(site: Site, run):
    with refused("usage"):
        site.scheduler.dispatch(run, key="", dry_run=True)


# -- another leader in between ---------------------------------------------------------------


def test_a_named_task_that_another_leader_took_meanwhile_is_refused(site: Site, run, monkeypatch):
    site.add(run, "a", "b")
    other = site.leader()
    before_it_allocates(monkeypatch, site.scheduler, lambda: other.dispatch(run, task_names=["a"]))

    with refused("invalid_state") as failure:
        site.dispatch(run, "a", "b", key="k")

    assert failure.value.details["task"] == "a"
    assert stored_keys(site) == 0
    assert site.states(run) == {"a": "active", "b": "ready"}


def test_named_tasks_for_which_no_slot_is_left_meanwhile_are_refused(site: Site, monkeypatch):
    run = site.open_run(max_parallel=2)
    site.add(run, "a", "b", "c")
    other = site.leader()
    before_it_allocates(monkeypatch, site.scheduler, lambda: other.dispatch(run, task_names=["c"]))

    with refused("invalid_state"):
        site.dispatch(run, "a", "b")

    assert site.states(run) == {"a": "ready", "b": "ready", "c": "active"}


def test_what_another_leader_took_meanwhile_is_left_out_when_it_was_not_named(
    site: Site, run, monkeypatch
):
    site.add(run, "a", "b")
    other = site.leader()
    before_it_allocates(monkeypatch, site.scheduler, lambda: other.dispatch(run, task_names=["a"]))

    assert set(site.dispatch(run)) == {"b"}


def test_no_slot_is_given_twice_when_another_leader_has_taken_the_last(site: Site, monkeypatch):
    run = site.open_run(max_parallel=1)
    site.add(run, "a", "b")
    other = site.leader()
    before_it_allocates(monkeypatch, site.scheduler, lambda: other.dispatch(run, task_names=["b"]))

    assert site.dispatch(run) == {}

    assert site.states(run) == {"a": "ready", "b": "active"}


def test_what_is_ready_and_finds_no_slot_is_told_with_the_limit(site: Site):
    run = site.open_run(max_parallel=1)
    site.add(run, "a", "b", "c")

    planned = site.scheduler.dispatch(run, dry_run=True)
    first = site.scheduler.dispatch(run)
    second = site.scheduler.dispatch(run)

    limit = ("at most 1 at once in this run",)
    assert [len(done.items) for done in (planned, first, second)] == [1, 1, 0]
    assert [done.held_back for done in (planned, first, second)] == [(2, limit)] * 3
    site.fail(first.items[0], fatal=True)
    site.scheduler.cancel(run, ["b", "c"])
    assert site.scheduler.dispatch(run).held_back == (0, ())


def test_a_full_mailbox_holds_back_what_goes_there_and_nothing_else(site: Site):
    run = site.open_run(config=Config(mailboxes={"workers": 1}))
    site.add(run, "a", "b")
    site.add(run, "c", mailbox="others")

    done = site.scheduler.dispatch(run)

    assert [item["key"] for item in done.items] == ["a", "c"]
    assert done.held_back == (1, ("at most 1 at once in mailbox workers",))


def test_two_calls_with_one_key_at_once_dispatch_once(site: Site, run, monkeypatch):
    site.add(run, "a", "b")
    other = site.leader()
    firsts = []

    def call_it_too():
        firsts.append(other.dispatch(run, key="k").as_json())
        site.add(run, "c")

    before_it_allocates(monkeypatch, site.scheduler, call_it_too)
    second = site.scheduler.dispatch(run, key="k").as_json()

    assert second["replayed"] is True
    assert [i["id"] for i in second["items"]] == [i["id"] for i in firsts[0]["items"]]
    assert site.states(run) == {"a": "active", "b": "active", "c": "ready"}


@pytest.mark.parametrize("named", [(), ("b",)], ids=["all", "named"])
def test_a_base_that_has_changed_meanwhile_is_chosen_anew(
    site: Site, run, monkeypatch, named: tuple[str, ...]
):
    site.add(run, "a")
    head = site.deliver(site.dispatch(run)["a"], "a.txt")
    site.scheduler.reconcile(run)
    site.add(run, "b")
    other = site.leader()
    before_it_allocates(monkeypatch, site.scheduler, lambda: other.add_dependency(run, "b", "a"))

    item = site.dispatch(run, *named)["b"]

    assert (item["base_commit"], item["base_source"]) == (head, "task")


def test_a_run_that_never_stands_still_is_busy_and_dispatches_nothing(site: Site, run, monkeypatch):
    site.add(run, "a")
    only_for(monkeypatch, site.scheduler, dispatch, "_allocate", lambda *arguments: None)

    with refused("busy"):
        site.dispatch(run)

    assert site.states(run) == {"a": "ready"}


def test_a_wrong_base_is_refused_also_when_nothing_is_ready(site: Site):
    run = site.open_run()

    with refused("usage"):
        site.scheduler.dispatch(run, base="no-such-commit")


@pytest.mark.parametrize(
    "state, command",
    [("paused", "orch run resume"), ("closed", "orch run reopen")],
)
def test_a_dispatch_that_the_run_does_not_allow_names_the_command_that_does(
    site: Site, state: str, command: str
):
    run = site.open_run()
    {"paused": site.scheduler.pause_run, "closed": site.scheduler.close_run}[state](run)

    with refused("invalid_state") as failure:
        site.scheduler.dispatch(site.scheduler.run(run.name))
    assert command in failure.value.hint


def test_a_task_that_is_not_ready_is_refused_with_what_can_be_done(site: Site):
    run = site.open_run()
    site.add(run, "a", max_attempts=1)
    site.fail(site.dispatch(run)["a"])
    site.scheduler.reconcile(run)

    with refused("invalid_state") as failure:
        site.scheduler.dispatch(run, task_names=["a"])
    assert "orch retry a" in failure.value.hint


@pytest.mark.parametrize(
    "verb, state, says",
    [
        ("skip", "active", "orch cancel a"),
        ("retry", "active", "orch cancel a"),
        ("skip", "cancelled", "orch retry a"),
        ("retry", "skipped", "another task"),
        ("retry", "pending", "by itself"),
    ],
)
def test_what_a_task_s_state_does_not_allow_is_refused_with_what_can_be_done(
    site: Site, verb: str, state: str, says: str
):
    run = site.open_run()
    site.add(run, "a")
    if state == "active":
        site.dispatch(run)
    elif state != "pending":
        {"cancelled": site.scheduler.cancel, "skipped": site.scheduler.skip}[state](run, ["a"])

    with refused("invalid_state") as failure:
        getattr(site.scheduler, verb)(run, ["a"])
    assert says in failure.value.hint
