"""By a mark one knows which locks a git that is gone may have left; no other lock is removed."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from inbox_orch.orch.git import marks, mending
from inbox_orch.orch.git.integrating import Move, fast_forward
from inbox_orch.orch.git.repository import Repository
from support.deaths import locks
from support.processes import Child
from support.runs import Site, commit, git

_DYING = """
import os, signal
from inbox_orch.orch.git import marks
common, names = {common!r}, {names!r}
with marks.marked(common, names, {forward!r}):
    for name, content in {left!r}.items():
        path = os.path.join(common, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(content)
    os.kill(os.getpid(), signal.SIGKILL)
"""
REF = "refs/heads/orch/run/integration"
COMMIT = "1" * 40


@pytest.fixture
def common(site: Site) -> str:
    return str(site.repository / ".git")


def die(common: str, left: dict[str, str], commit: str = COMMIT, forward=None) -> None:
    """Somebody who has marked a change of REF leaves these files, and is gone."""
    names = marks.of_refs(common, {REF: commit})
    if forward is not None:
        names[forward["index_lock"]] = None
    code = _DYING.format(common=common, names=names, left=left, forward=forward)
    child = Child(code)
    child.process.wait()
    child.close()


@contextmanager
def a_git_at_work(folder: Path, tmp_path: Path) -> Iterator[None]:
    """A process that is called git, and works in a folder."""
    program = tmp_path / "git"
    shutil.copy(str(shutil.which("sleep")), program)
    with subprocess.Popen([program, "600"], cwd=folder) as process:
        try:
            yield
        finally:
            process.kill()


def test_what_the_killed_one_has_left_goes(common: str, site: Site):
    die(common, {f"{REF}.lock": COMMIT[:7], "HEAD.lock": "", "packed-refs.new": "half"})

    marks.forget_left(common)

    assert locks(site.repository) == []


def test_a_mark_is_written_to_its_end_also_where_the_system_takes_a_little_at_a_time(
    common: str, monkeypatch
):
    write, names = os.write, marks.of_refs(common, {REF: COMMIT})
    monkeypatch.setattr(os, "write", lambda at, content: write(at, content[:7]))

    with marks.marked(common, names) as mark:
        content = json.loads(Path(str(mark.path)).read_text())

    assert content["locks"] == names


def test_a_lock_with_something_else_in_it_stays(common: str, site: Site):
    die(common, {f"{REF}.lock": "2" * 40, "HEAD.lock": "ref: refs/heads/other"})

    marks.forget_left(common)

    assert locks(site.repository) == ["HEAD.lock", f"{REF}.lock"]


def test_a_lock_that_was_there_before_stays(common: str, site: Site):
    Path(common, "packed-refs.lock").touch()
    die(common, {})

    marks.forget_left(common)

    assert locks(site.repository) == ["packed-refs.lock"]


def test_a_lock_that_a_git_at_work_may_have_stays_until_that_has_ended(
    common: str, site: Site, tmp_path: Path
):
    die(common, {"packed-refs.lock": ""})

    with a_git_at_work(site.repository, tmp_path):
        marks.forget_left(common)
        assert "packed-refs.lock" in locks(site.repository)

    marks.forget_left(common)
    assert locks(site.repository) == []


def test_a_git_that_works_elsewhere_keeps_no_lock(common: str, site: Site, tmp_path: Path):
    die(common, {"packed-refs.lock": ""})

    with a_git_at_work(tmp_path, tmp_path):
        marks.forget_left(common)

    assert locks(site.repository) == []


def test_our_own_lock_goes_whoever_is_at_work(common: str, site: Site, tmp_path: Path):
    die(common, {f"{REF}.lock": f"{COMMIT}\n"})

    with a_git_at_work(site.repository, tmp_path):
        marks.forget_left(common)

    assert locks(site.repository) == []


def test_what_a_living_one_of_ours_has_marked_stays(common: str, site: Site):
    die(common, {})
    lock = Path(common, f"{REF}.lock")

    with marks.marked(common, marks.of_refs(common, {REF: COMMIT})):
        lock.parent.mkdir(parents=True)
        lock.write_text(f"{COMMIT}\n")
        marks.forget_left(common)
        assert lock.exists()
        lock.unlink()


def test_a_mark_that_was_not_written_to_its_end_says_nothing(common: str, site: Site):
    Path(common, "inbox-orch-change-0").write_text('{"locks": {"HEAD.lo')
    Path(common, "HEAD.lock").touch()

    marks.forget_left(common)

    assert locks(site.repository) == ["HEAD.lock"]


def test_without_room_for_a_mark_git_is_run_all_the_same(site: Site, monkeypatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    repository = Repository(str(site.repository))
    repository.keep("refs/orch/heads/one", repository.commit_of("HEAD"))

    assert repository.ref_commit("refs/orch/heads/one") is not None
    assert locks(site.repository) == []


# -- the index of a working tree -------------------------------------------------------------


def test_an_index_lock_with_somebody_elses_work_in_it_stays(common: str, site: Site):
    old = git(site.repository, "rev-parse", "HEAD")
    commit(site.repository, "README.md", "ours\n")
    new = git(site.repository, "rev-parse", "HEAD")
    git(site.repository, "reset", "--hard", "--quiet", old)
    forward = {
        "tree": str(site.repository),
        "branch": "main",
        "old": old,
        "new": new,
        "index_lock": "index.lock",
        "theirs": [],
    }
    die(common, {}, forward=forward)
    index = Path(common, "index").read_bytes()
    (site.repository / "README.md").write_text("theirs\n")
    git(site.repository, "add", "README.md")
    os.rename(Path(common, "index"), Path(common, "index.lock"))
    Path(common, "index").write_bytes(index)

    mending.mend(Repository(str(site.repository)))

    assert "index.lock" in locks(site.repository)
    assert (site.repository / "README.md").read_text() == "theirs\n"


@pytest.mark.parametrize("linked", [False, True])
def test_a_copy_of_a_repository_leaves_the_working_tree_of_the_original_alone(
    common: str, site: Site, tmp_path: Path, linked: bool
):
    old = git(site.repository, "rev-parse", "HEAD")
    commit(site.repository, "README.md", "ours\n")
    new = git(site.repository, "rev-parse", "HEAD")
    git(site.repository, "reset", "--hard", "--quiet", old)
    tree = tmp_path / "side" if linked else site.repository
    if linked:
        git(site.repository, "worktree", "add", "--quiet", "-b", "side", str(tree))
    forward = {
        "tree": str(tree),
        "branch": "side" if linked else "main",
        "old": old,
        "new": new,
        "index_lock": "worktrees/side/index.lock" if linked else "index.lock",
        "theirs": [],
    }
    (tree / "README.md").write_text("ours\n")
    die(common, {}, forward=forward)
    copy = tmp_path / "copy"
    shutil.copytree(site.repository, copy)

    mending.mend(Repository(str(copy)))
    assert (tree / "README.md").read_text() == "ours\n"
    assert locks(copy) == []
    mending.mend(Repository(str(site.repository)))

    assert git(tree, "status", "--porcelain") == ""
    assert locks(site.repository) == []


@pytest.mark.parametrize("setting", ["core.worktree", "core.bare"])
def test_a_working_tree_is_put_right_only_where_git_works_on_its_files(
    common: str, site: Site, tmp_path: Path, setting: str
):
    """A setting that goes for every worktree sends git elsewhere (git-worktree(1))."""
    old = git(site.repository, "rev-parse", "HEAD")
    commit(site.repository, "README.md", "ours\n")
    new = git(site.repository, "rev-parse", "HEAD")
    tree, elsewhere = tmp_path / "side", tmp_path / "elsewhere"
    git(site.repository, "worktree", "add", "--quiet", "-b", "side", str(tree), old)
    text = (tree / "README.md").read_text()
    forward = {
        "tree": str(tree),
        "branch": "side",
        "old": old,
        "new": new,
        "index_lock": "worktrees/side/index.lock",
        "theirs": [],
    }
    (tree / "README.md").write_text("ours\n")
    die(common, {}, forward=forward)
    elsewhere.mkdir()
    config = ("config", "--file", str(Path(common, "config")))
    git(tmp_path, *config, "extensions.worktreeConfig", "true")
    git(tmp_path, *config, setting, str(elsewhere) if setting == "core.worktree" else "true")

    mending.mend(Repository(str(site.repository)))
    assert (tree / "README.md").read_text() == "ours\n"
    assert os.listdir(elsewhere) == []
    assert (site.repository / "README.md").read_text() == "ours\n"

    git(tmp_path, *config, "--unset-all", setting)
    mending.mend(Repository(str(site.repository)))
    assert (tree / "README.md").read_text() == text
    assert git(tree, "status", "--porcelain") == ""
    assert locks(site.repository) == []


def test_a_worktree_that_was_taken_away_keeps_no_mark(common: str, site: Site, tmp_path: Path):
    old = git(site.repository, "rev-parse", "HEAD")
    forward = {
        "tree": str(tmp_path / "gone"),
        "branch": "main",
        "old": old,
        "new": old,
        "index_lock": "worktrees/gone/index.lock",
        "theirs": [],
    }
    die(common, {}, forward=forward)

    mending.mend(Repository(str(site.repository)))

    assert locks(site.repository) == []


def test_a_branch_in_a_linked_worktree_comes_forward_there(site: Site, tmp_path: Path):
    git(site.repository, "worktree", "add", "--quiet", "-b", "side", str(tmp_path / "side"))
    old = git(site.repository, "rev-parse", "HEAD")
    commit(site.repository, "new.txt", "new\n")
    new = git(site.repository, "rev-parse", "HEAD")

    moved = fast_forward(Repository(str(site.repository)), Move("side", new, old), "main")

    assert moved.state == "fast_forwarded"
    assert (tmp_path / "side" / "new.txt").exists()
    assert locks(site.repository) == []
