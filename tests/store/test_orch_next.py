"""What the line that leads on is told of a real run, from its opening to its end."""

from inbox_orch.orch.leader.next_facts import facts_of
from inbox_orch.orch.leader.next_rules import Facts, next_line
from inbox_orch.orch.leader.overview import overview
from inbox_orch.orch.leader.wish import Wish, open_wish, plan_of
from inbox_orch.orch.runs.model import Run
from inbox_orch.orch.runs.plan import Opening
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


def test_of_a_run_of_do_the_next_line_is_the_same_call_as_there_is_no_worker(site: Site):
    wish = Wish(plan_of("Fix it", "", ()), Opening("Fix it"), str(site.repository), "main")
    run, _ = open_wish(site.scheduler.desk, wish)
    other = site.open_run()
    site.add(other, "a")

    def line(of: Run) -> str:
        return next_line(facts_of(site.scheduler.desk, of, of.name, None))

    assert line(run) == "the same `orch do` call again goes on to the end"
    assert line(other).startswith("`orch dispatch` opens the attempts, `orch drive --worker CMD`")
    (waiting, _) = overview(site.scheduler.desk, None)
    assert waiting.next == "the same `orch do` call again goes on to the end"
    assert site.scheduler.report(run, most=1).by_do
    assert not site.scheduler.report(other, most=1).by_do
