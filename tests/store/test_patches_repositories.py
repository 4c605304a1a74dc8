"""Repositories that are not like most: what is judged, let in, refused, handed in as text, gone
back to and undone is the same there."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from inbox_orch.orch.attempts import submit
from inbox_orch.orch.git.repository import Repository
from inbox_orch.orch.integration.rules import branch_of
from inbox_orch.orch.patches import given as handing
from inbox_orch.orch.patches.policy import Layer, Policy
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.model import Run
from inbox_orch.orch.runs.policies import layers_of
from inbox_orch.orch.stages.decide import Answered
from inbox_orch.orch.views import patch_check
from support.buses import refused
from support.patches import disagreements
from support.runs import Site, commit, git

POLICY = Config(policy={"forbid_paths": ["bad.txt"]})
TEXT = """\
--- a/README.md
+++ b/README.md
@@ -1 +1 @@
-A project.
+A better project.
"""


def made(folder: Path, *options: str) -> Path:
    """A repository of its own, with a README like that of the others."""
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch", "main", *options)
    git(folder, "config", "maintenance.auto", "false")
    for name in ("kept/k.txt", "away/w.txt"):
        (folder / name).parent.mkdir()
        (folder / name).write_text(f"{name}\n")
    commit(folder, "README.md", "A project.\n")
    return folder


def sha256(folder: Path) -> Path:
    """Less than all of it is checked out, by patterns."""
    place = made(folder / "there", "--object-format=sha256")
    git(place, "sparse-checkout", "set", "--no-cone", "/*", "!/away/")
    return place


def reftable(folder: Path) -> Path:
    asked = ["git", "init", "--quiet", "--ref-format=reftable", str(folder / "asked")]
    if subprocess.run(asked, capture_output=True).returncode:
        pytest.skip("this git knows no reftable")
    return made(folder / "there", "--ref-format=reftable")


def cloned(folder: Path, *options: str) -> Path:
    origin = made(folder / "origin")
    for name in ("uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"):
        git(origin, "config", name, "true")
    commit(origin, "away/more.txt", "more\n")
    git(folder, "clone", "--quiet", *options, f"file://{origin}", "there")
    return folder / "there"


def partial(folder: Path) -> Path:
    """What is not checked out was never fetched."""
    place = cloned(folder, "--filter=blob:none", "--no-checkout")
    git(place, "sparse-checkout", "set", "--cone", "kept")
    git(place, "checkout", "--quiet", "main")
    return place


def shallow(folder: Path) -> Path:
    """With settings of other systems."""
    place = cloned(folder, "--depth=1")
    for name, value in (("core.autocrlf", "true"), ("core.fileMode", "false")):
        git(place, "config", name, value)
    git(place, "config", "extensions.worktreeConfig", "true")
    git(place, "config", "--worktree", "core.ignoreCase", "true")
    return place


def bare(folder: Path) -> Path:
    """Its objects are borrowed, from where they lie as seen from its own."""
    place = cloned(folder, "--bare", "--shared")
    (place / "objects/info/alternates").write_text("../../origin/.git/objects\n")
    return place


def linked(folder: Path) -> Path:
    """The git folder lies elsewhere and names the working tree, and the run is opened in another
    one."""
    place = made(folder / "main", "--separate-git-dir", str(folder / "elsewhere"))
    git(place, "config", "core.worktree", str(place))
    git(place, "worktree", "add", "--quiet", "--detach", str(folder / "there"))
    git(folder / "elsewhere", "config", "--unset", "core.worktree")
    git(place, "config", "extensions.worktreeConfig", "true")
    git(place, "config", "--worktree", "core.worktree", str(place))
    return folder / "there"


def equipped(folder: Path) -> Path:
    """With a submodule, and with a filter of its owner's without which git adds no file."""
    made(folder / "library")
    place = made(folder / "there")
    allow = ("-c", "protocol.file.allow=always")
    git(place, *allow, "submodule", "--quiet", "add", str(folder / "library"), "library")
    for name, value in (("clean", "tr a-z A-Z"), ("smudge", "tr A-Z a-z"), ("required", "true")):
        git(place, "config", f"filter.turned.{name}", value)
    (place / ".gitattributes").write_text("*.txt filter=turned\n")
    git(place, "add", "--renormalize", "--all")
    commit(place, "big.txt", "large\n")
    return place


KINDS: dict[str, Callable[[Path], Path]] = {
    each.__name__: each for each in (sha256, reftable, partial, shallow, bare, linked, equipped)
}


@pytest.mark.parametrize("kind", KINDS)
def test_patches_are_what_they_are_elsewhere(site: Site, tmp_path: Path, kind: str):
    repository = KINDS[kind](tmp_path)
    run = site.open_run(repository, config=POLICY)
    site.add(run, "a", "b", max_attempts=1)
    item = site.dispatch(run, "b")["b"]
    site.deliver(item, "bad.txt", "no\n")
    handed_in = submit.submit(site.leader("eve").desk, run, "a", TEXT.encode())

    assert site.states(run) == {"a": "succeeded", "b": "failed"}
    assert "bad.txt may not be changed" in str(site.attempts(run, "b")[0].reason)
    assert handed_in.state == "committed"
    gone_back_to(site, run, Path(item["worktree"]))
    undone(site, run, repository)
    assert disagreements(site) == []
    git(repository, "fsck", "--strict", *(["--connectivity-only"] if kind == "partial" else []))


def gone_back_to(site: Site, run: Run, worktree: Path) -> None:
    """What was refused, with what lay beside it."""
    (worktree / "left.txt").write_bytes(b"left\r\n")
    kept = site.scheduler.checkpoint_make(*site.scheduler.attempt_named("b", run.name))
    before = listed(worktree)
    (worktree / "left.txt").unlink()
    (worktree / "README.md").write_text("spoiled\n")
    chosen = site.scheduler.checkpoint_named(kept.checkpoint.name, run.name)
    site.scheduler.checkpoint_restore(*chosen)

    assert listed(worktree) == before
    assert git(worktree, "status", "--porcelain") == "?? left.txt"


def listed(worktree: Path) -> dict[str, bytes]:
    found = (path for path in worktree.rglob("*") if path.is_file() and path.name != ".git")
    return {str(path.relative_to(worktree)): path.read_bytes() for path in found}


def undone(site: Site, run: Run, repository: Path) -> None:
    """What was accepted is brought in, and taken back."""
    site.scheduler.integrate(run)
    names = git(repository, "ls-tree", "-r", "--name-only", branch_of(run)).split()
    assert "README.md" in names and "bad.txt" not in names
    assert git(repository, "show", f"{branch_of(run)}:README.md") == "A better project."
    site.scheduler.patch_rollback(run, "a/1/1")
    assert git(repository, "show", f"{branch_of(run)}:README.md") == "A project."


# -- submodules and filters ------------------------------------------------------------------


def test_a_submodule_that_is_moved_on_is_asked_about_and_then_comes_in(site: Site, tmp_path: Path):
    repository = equipped(tmp_path)
    run = site.open_run(repository, config=Config(policy={}))
    site.add(run, "a", max_attempts=1)
    item = site.dispatch(run)["a"]
    newer = commit(tmp_path / "library", "new.txt", "new\n")
    git(item["worktree"], "update-index", "--cacheinfo", f"160000,{newer},library")
    modules = Path(item["worktree"], ".gitmodules")
    modules.write_text(modules.read_text().replace("/library\n", "/other\n"))
    git(item["worktree"], "commit", "--quiet", "--message", "Another library", "-i", ".gitmodules")
    site.done(item)
    site.scheduler.reconcile(run)
    (question,) = site.scheduler.questions(run)
    assert question.decision is not None
    assert "`submodules`" in question.decision.sentence
    assert ".gitmodules" in question.decision.sentence

    site.leader("boss").answer(run, "a", body="", decided=Answered("approve"))
    site.scheduler.reconcile(run)
    site.scheduler.integrate(run)
    assert git(repository, "rev-parse", f"{branch_of(run)}:library") == newer


def test_what_the_owners_filter_has_to_make_is_not_committed_without_it(site: Site, tmp_path: Path):
    repository = equipped(tmp_path)
    run = site.open_run(repository, config=POLICY)
    site.add(run, "a", harvest=True, max_attempts=1)
    item = site.dispatch(run)["a"]
    Path(item["worktree"], "big.txt").write_text("larger\n")
    git(repository, "config", "filter.turned.clean", "no-such-program")
    site.done(item)
    site.scheduler.reconcile(run)

    (attempt,) = site.attempts(run, "a")
    assert attempt.state == "rejected"
    assert "clean filter 'turned' failed" in str(attempt.reason)
    assert git(item["worktree"], "rev-parse", "HEAD") == attempt.base_commit
    assert Path(item["worktree"], "big.txt").read_text() == "larger\n"


# -- what was never fetched ------------------------------------------------------------------

AWAY = """\
--- a/away/w.txt
+++ b/away/w.txt
@@ -1 +1 @@
-away/w.txt
+two
"""
EDITS = '{"edits": [{"path": "away/w.txt", "old": "away/w.txt", "new": "two"}]}'


@pytest.fixture
def lacking(site: Site, tmp_path: Path) -> tuple[Run, Path]:
    """A run in a partial clone that lacks away/w.txt, with a worktree for task `a`."""
    repository = partial(tmp_path)
    run = site.open_run(repository, config=POLICY)
    site.add(run, "a", "b", max_attempts=1)
    return run, repository


def is_here(repository: Path, path: str) -> bool:
    words = ("rev-list", "--objects", "--missing=print", "main", "--", path)
    return "?" not in git(repository, *words)


@pytest.mark.parametrize("text", [AWAY, EDITS])
def test_what_a_text_changes_is_fetched_where_the_clone_lacks_it(site: Site, lacking, text: str):
    run, repository = lacking
    assert not is_here(repository, "away/w.txt")
    done = submit.submit(site.leader("eve").desk, run, "a", text.encode())

    assert done.state == "committed"
    head = str(site.task(run, "a").accepted_head)
    assert git(repository, "show", f"{head}:away/w.txt") == "two"


def test_what_is_only_checked_is_fetched_too(lacking):
    _, repository = lacking
    base = git(repository, "rev-parse", "main")
    policy = Policy(tuple(Layer(*named) for named in layers_of(POLICY.policy)))
    for text in (AWAY, EDITS):
        given = handing.of_file(text.encode())
        found = patch_check.check(Repository(str(repository)), base, given, policy)
        assert found.examined.outcome == "allowed"


def without_its_file(site: Site, run: Run) -> None:
    item = site.dispatch(run, "a")["a"]
    git(item["worktree"], "rm", "--quiet", "--sparse", "away/w.txt")
    git(item["worktree"], "commit", "--quiet", "--message", "Without it")
    site.done(item)
    site.scheduler.reconcile(run)


def test_what_has_to_be_looked_at_is_fetched_and_nothing_else(site: Site, lacking):
    run, repository = lacking
    without_its_file(site, run)

    assert site.states(run)["a"] == "succeeded"
    assert is_here(repository, "away/w.txt") and not is_here(repository, "away/more.txt")


def test_what_cannot_be_fetched_any_more_is_denied_in_one_sentence(site: Site, lacking):
    run, repository = lacking
    (repository.parent / "origin").rename(repository.parent / "gone")
    without_its_file(site, run)
    with refused("git_failed") as error:
        submit.submit(site.leader("eve").desk, run, "b", AWAY.encode())

    said = f"{repository}/.git is a partial clone that has never fetched"
    assert site.attempts(run, "a")[0].state == "rejected"
    assert said in str(site.attempts(run, "a")[0].reason)
    assert said in error.value.message and site.task(run, "b").attempts == 0
    (repository.parent / "gone").rename(repository.parent / "origin")
    site.scheduler.adopt(run, "a")
    assert site.states(run)["a"] == "succeeded"
