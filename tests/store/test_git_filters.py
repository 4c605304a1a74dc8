"""A harvest goes through the filters that the owner has set up, and, where that is asked for,
through none that an attempt has brought in itself."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from inbox_orch.orch.git import filters, harvest, manifest
from inbox_orch.orch.git.harvest import Left, Unfit
from inbox_orch.orch.git.repository import Repository
from support.runs import Site, commit, git


@pytest.fixture
def ran(site: Site, tmp_path: Path) -> Path:
    """The repository has a filter for `*.loud`, and programs of filters that nothing uses; where
    one of those has run, there is this file."""
    ran = tmp_path / "ran"
    git(site.repository, "config", "filter.loud.clean", "tr a-z A-Z")
    git(site.repository, "config", "filter.loud.required", "true")
    git(site.repository, "config", "filter.spy.clean", f"touch {ran}; cat")
    commit(site.repository, ".gitattributes", "*.loud filter=loud\n*.none filter=nowhere\n")
    return ran


def dispatched(site: Site):
    run = site.open_run()
    site.add(run, "a")
    return site.dispatch(run)["a"]


def harvested(site: Site, item, *, strict: bool = True, known: Sequence[str] = ()) -> None:
    repository = Repository(str(site.repository))
    base = item["base_commit"] if strict else None
    left = Left(item["worktree"], item["branch"], known, "w1", 1_800_000_000, "Do a", base)
    found = repository.look_at(item["worktree"], item["base_commit"], known)
    assert found is not None
    harvest.commit_left(repository, left, found, ())


def test_the_owners_filters_are_used(site: Site, ran: Path):
    item = dispatched(site)
    Path(item["worktree"], "a.loud").write_text("quiet\n")
    Path(item["worktree"], "a.none").write_text("as it is\n")

    harvested(site, item)

    assert git(site.repository, "show", f"{item['branch']}:a.loud") == "QUIET"
    assert git(site.repository, "show", f"{item['branch']}:a.none") == "as it is"


@pytest.mark.parametrize("attributes", [".gitattributes", "deep/.gitattributes"])
@pytest.mark.parametrize("name", ["loud", "spy"])
def test_a_filter_that_the_attempt_brings_in_is_refused(
    site: Site, ran: Path, attributes: str, name: str
):
    item = dispatched(site)
    path = Path(item["worktree"], attributes)
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"*.loud filter=loud\n*.txt filter={name}\n")
    commit(item["worktree"], "own.md", "own\n")
    Path(item["worktree"], "deep").mkdir(exist_ok=True)
    Path(item["worktree"], "deep", "a.txt").write_text("text\n")
    before = git(item["worktree"], "status", "--porcelain")

    with pytest.raises(Unfit, match=rf"deep/a\.txt would go through a filter .* \({name}\)"):
        harvested(site, item)

    assert git(item["worktree"], "status", "--porcelain") == before
    assert not ran.exists()
    harvested(site, item, strict=False)
    assert git(item["worktree"], "status", "--porcelain") == ""


def test_a_filter_without_a_program_and_attributes_without_a_filter_are_none(site: Site, ran: Path):
    item = dispatched(site)
    Path(item["worktree"], ".gitattributes").write_text(
        "*.loud filter=loud\n*.txt filter=nowhere\n*.md -filter text\n"
    )
    for name in ("a.txt", "a.md"):
        Path(item["worktree"], name).write_text("text\n")

    harvested(site, item)

    assert git(item["worktree"], "status", "--porcelain") == ""
    assert git(site.repository, "show", f"{item['branch']}:a.txt") == "text"


def test_a_program_that_is_set_for_the_worktree_alone_is_refused(site: Site, ran: Path):
    git(site.repository, "config", "extensions.worktreeConfig", "true")
    item = dispatched(site)
    git(item["worktree"], "config", "--worktree", "filter.nowhere.clean", f"touch {ran}; cat")
    Path(item["worktree"], "a.none").write_text("text\n")

    with pytest.raises(Unfit, match=r"a\.none would go through a filter .* \(nowhere\)"):
        harvested(site, item)
    assert not ran.exists()


def test_a_required_filter_without_a_program_is_told(site: Site, ran: Path):
    git(site.repository, "config", "filter.nowhere.required", "true")
    item = dispatched(site)
    Path(item["worktree"], "a.none").write_text("text\n")

    with pytest.raises(Unfit, match="clean filter 'nowhere' failed"):
        harvested(site, item)


def test_what_set_up_made_is_left_out_however_much_it_is(site: Site, ran: Path):
    item = dispatched(site)
    for number in range(130):
        Path(item["worktree"], f"made-{number}").write_text("made\n")
    manifest.write(item["worktree"])
    Path(item["worktree"], "own.txt").write_text("own\n")
    known = [f"made-{number}" for number in range(100)]

    harvested(site, item, known=known)

    assert git(site.repository, "show", "--format=", "--name-only", item["branch"]) == "own.txt"
    git(item["worktree"], "add", "made-7")
    with pytest.raises(Unfit, match="set-up has made made-7"):
        harvested(site, item, known=known)


def test_no_path_is_asked_about_without_need(site: Site, ran: Path):
    item = dispatched(site)
    assert filters.brought_in(item["worktree"], item["base_commit"], []) == []
    assert filters.brought_in(item["worktree"], item["base_commit"], ["a.loud", "b\nc"]) == []
