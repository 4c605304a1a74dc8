"""What the line that leads on is told of a real run, from its opening to its end."""

from inbox_orch.orch.leader.next_facts import facts_of
from inbox_orch.orch.leader.next_rules import Facts
from support.runs import Site


def test_the_facts_follow_a_run_from_its_opening_to_its_clean_up(site: Site):
    run = site.open_run()

    def seen(default: str | None = None) -> Facts:
        return facts_of(site.scheduler.desk, run, default, None)

    assert seen() == Facts(None, "open")
    site.add(run, "a", "b")
    assert (seen().tasks, seen().ready, seen().offered) == (2, 2, ())
    attempt = site.dispatch(run, "a")["a"]
    assert (seen().ready, seen().offered, seen().unmerged) == (1, ("workers",), False)
    site.scheduler.skip(run, ["b"])
    site.deliver(attempt, "a.txt")
    site.scheduler.reconcile(run)
    assert (seen().moving, seen().offered, seen().unmerged) == (0, (), True)
    site.scheduler.integrate(run)
    assert (seen().unmerged, seen().worktrees) == (False, True)
    site.scheduler.close_run(run)
    assert (seen().name, seen().state) == (run.name, "closed")
    site.scheduler.cleanup(run)
    assert not seen().worktrees


def test_a_run_is_named_unless_the_default_leads_to_it(site: Site):
    run = site.open_run()

    def name(default: str | None) -> str | None:
        return facts_of(site.scheduler.desk, run, default, None).name

    assert (name(None), name(run.name), name("other")) == (None, None, run.name)
    site.open_run()
    assert (name(None), name(run.name)) == (run.name, None)
