"""Work that comes in although its task was done anew, and work that drops out: both are told."""

from support.runs import Site, commit


def deliver(site: Site, run, key: str, **files: str) -> None:
    """The next attempt at a task, accepted with these files."""
    item = site.dispatch(run, key)[key]
    for name, text in files.items():
        commit(item["worktree"], name, text)
    site.done(item)
    site.scheduler.reconcile(run)


def told(site: Site, run) -> list[tuple[str, str, int]]:
    plan = site.scheduler.integrate(run, dry_run=True).plan
    return [(m.reason, m.key, m.attempt.number) for m in plan.missed]


def test_what_was_built_on_superseded_work_is_told_until_it_is_done_anew(site: Site):
    run = site.open_run(base="main")
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    deliver(site, run, "a", secret="s\n", a="a\n")
    deliver(site, run, "b", b="b\n")
    assert told(site, run) == []
    site.scheduler.retry(run, ["a"], force=True)
    assert told(site, run) == [("superseded", "b", 1)]
    deliver(site, run, "a", a="a\n")
    assert told(site, run) == [("superseded", "b", 1)]

    site.scheduler.retry(run, ["b"], force=True)
    deliver(site, run, "b", b="b\n")

    assert told(site, run) == []


def test_work_that_goes_on_with_the_earlier_attempt_supersedes_nothing(site: Site):
    run = site.open_run(base="main")
    site.add(run, "a")
    site.add(run, "b", depends_on=["a"])
    deliver(site, run, "a", a="a\n")
    deliver(site, run, "b", b="b\n")
    site.scheduler.retry(run, ["a"], from_attempt=1, force=True)
    deliver(site, run, "a", more="more\n")

    assert told(site, run) == []


def test_a_resolution_without_the_work_is_told_until_the_task_is_done_anew(site: Site):
    run = site.open_run(base="main")
    site.add(run, "a", "b")
    deliver(site, run, "a", same="a\n")
    deliver(site, run, "b", same="b\n", precious="p\n")
    (item,) = site.scheduler.integrate(run).dispatched
    commit(item["worktree"], "other", "other\n")
    site.done(item)
    site.scheduler.reconcile(run)

    assert told(site, run) == [("not_resolved", "b", 2)]
    assert site.scheduler.integrate(run).plan.missed != ()
    assert told(site, run) == [("not_resolved", "b", 2)], "it is out of it still"

    site.scheduler.retry(run, ["b"], force=True)
    deliver(site, run, "b", precious="p\n")

    assert told(site, run) == []
