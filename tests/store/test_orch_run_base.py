"""The commit that a run begins at: it stays although its branch was rewritten."""

from support.runs import Site, commit, git


def rewrite(site: Site) -> None:
    """Rewrite the branch, and collect what nothing names any more."""
    git(site.repository, "commit", "--quiet", "--amend", "--message", "Another")
    git(site.repository, "reflog", "expire", "--expire=now", "--all")
    git(site.repository, "gc", "--quiet", "--prune=now")


def kept(site: Site, run) -> str:
    return git(site.repository, "for-each-ref", "--format=%(objectname)", f"refs/orch/run/{run.id}")


def test_a_run_begins_at_its_base_after_a_rewrite_and_a_collection(site: Site):
    base = git(site.repository, "rev-parse", "main")
    run = site.open_run(base="main")
    site.add(run, "a")

    rewrite(site)

    assert site.dispatch(run)["a"]["base_commit"] == base


def test_the_base_of_an_older_run_is_kept_by_its_next_dispatch(site: Site):
    base = git(site.repository, "rev-parse", "main")
    run = site.open_run(base="main")
    git(site.repository, "update-ref", "-d", f"refs/orch/run/{run.id}")

    site.scheduler.dispatch(run)

    assert kept(site, run) == base


def test_a_clean_up_lets_go_of_the_base_of_a_closed_run_that_is_elsewhere(site: Site):
    run = site.open_run(base="main")
    commit(site.repository, "more.txt", "more\n")
    site.scheduler.cleanup(run)
    assert kept(site, run) != ""
    site.scheduler.close_run(run)

    site.scheduler.cleanup(site.scheduler.run(run.id))

    assert kept(site, run) == ""


def test_a_clean_up_keeps_the_base_of_a_closed_run_that_is_nowhere_else(site: Site):
    run = site.open_run(base="main")
    rewrite(site)
    site.scheduler.close_run(run)

    site.scheduler.cleanup(site.scheduler.run(run.id))

    assert kept(site, run) != ""
