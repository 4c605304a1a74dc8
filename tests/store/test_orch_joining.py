"""How commits are merged: never without a common history, always with their own attributes."""

from pathlib import Path

import pytest

from inbox_orch.orch.git.comparing import comparison
from inbox_orch.orch.git.repository import Repository
from inbox_orch.shared.errors import InboxOrchError
from support.runs import Site, commit, git


def accepted(site: Site, run, key: str, name: str, content: str) -> None:
    """A task whose work, one file more, is accepted."""
    site.add(run, key)
    site.deliver(site.dispatch(run, key)[key], name, content)
    site.scheduler.reconcile(run)


def shallow_clone(site: Site) -> Path:
    """A clone without the commit that its two branches come from; `main` has deleted a file."""
    commit(site.repository, "gone.txt", "gone\n")
    git(site.repository, "branch", "dev")
    git(site.repository, "rm", "--quiet", "gone.txt")
    git(site.repository, "commit", "--quiet", "--message", "Delete it")
    commit(site.repository, "main.txt", "main\n")
    git(site.repository, "checkout", "--quiet", "dev")
    commit(site.repository, "dev.txt", "dev\n")
    git(site.repository, "checkout", "--quiet", "main")
    clone, source = site.folder / "shallow", f"file://{site.repository}"
    git(site.folder, "clone", "-q", "--depth", "1", "--no-single-branch", source, str(clone))
    git(clone, "branch", "--quiet", "dev", "origin/dev")
    return clone


def test_an_integration_in_a_shallow_clone_is_refused_and_succeeds_after_unshallow(site: Site):
    clone = shallow_clone(site)
    run = site.open_run(clone, base="main")
    accepted(site, run, "a", "a.txt", "a\n")
    before = git(clone, "rev-parse", "dev")

    with pytest.raises(InboxOrchError, match="no common history") as failure:
        site.scheduler.integrate(run, onto="dev")

    assert "git fetch --unshallow" in str(failure.value.hint)
    assert git(clone, "rev-parse", "dev") == before
    git(clone, "fetch", "--quiet", "--unshallow")
    site.scheduler.integrate(run, onto="dev")
    assert git(clone, "ls-tree", "--name-only", "dev").split() == [
        "README.md",
        "a.txt",
        "dev.txt",
        "main.txt",
    ]


def test_a_comparison_without_a_common_history_names_all_that_differs(site: Site):
    repository = Repository(str(site.repository))
    one = git(site.repository, "rev-parse", "main")
    git(site.repository, "checkout", "--quiet", "--orphan", "other")
    other = commit(site.repository, "new.txt", "new\n")

    with comparison(repository) as compared:
        assert compared.conflicts(one, other) == ("new.txt",)


UNION = {".gitattributes": "*.log merge=union\n", "deep/.gitattributes": "*.log merge=union\n"}


@pytest.mark.parametrize("where", UNION)
@pytest.mark.parametrize("kind", ["bare", "other branch", "deleted"])
def test_merges_have_the_attributes_of_what_is_merged(site: Site, where: str, kind: str):
    folder = str(Path(where).parent)
    repository, name = site.repository, str(Path(folder, "x.log"))
    plain = commit(repository, name, "start\n")
    base = commit(repository, where, UNION[where])
    if kind == "other branch":
        git(repository, "checkout", "--quiet", "-b", "other", plain)
    elif kind == "deleted":
        Path(repository, where).unlink()
    elif kind == "bare":
        git(site.folder, "clone", "--quiet", "--bare", str(repository), "bare.git")
        repository = site.folder / "bare.git"
    run = site.open_run(repository, base=base)
    site.add(run, "a", "b")
    for key, item in site.dispatch(run).items():
        site.deliver(item, name, f"start\n{key}\n")
    site.scheduler.reconcile(run)

    done = site.scheduler.integrate(run, dry_run=True)

    assert {i["key"]: i["state"] for i in done.as_json()["items"]}["b"] == "merged"


def test_attributes_that_only_the_main_checkout_has_count_for_nothing(site: Site):
    base = commit(site.repository, "x.log", "start\n")
    (site.repository / ".gitattributes").write_text("*.log merge=union\n")
    run = site.open_run(base=base)
    site.add(run, "a", "b")
    for key, item in site.dispatch(run).items():
        site.deliver(item, "x.log", f"start\n{key}\n")
    site.scheduler.reconcile(run)

    done = site.scheduler.integrate(run, dry_run=True)

    assert {i["key"]: i["state"] for i in done.as_json()["items"]}["b"] == "conflict"
