"""What a repository's settings, hooks and contents make `orch` run, and what not.

A setting of the user's own, that git has to obey to give the right files, is obeyed; all else
that a repository or what lies in it brings along is not. docs/security.md has the same list.
"""

import os
import stat
from pathlib import Path

import pytest

from inbox_orch.orch.git.commands import output_of
from inbox_orch.orch.git.nested import nested_repositories
from inbox_orch.orch.runs.config import Config
from support.buses import refused
from support.runs import Site, commit, git, make_repository

HOOKS = (
    *("post-checkout", "reference-transaction", "post-index-change", "pre-commit", "post-commit"),
    *("pre-merge-commit", "post-merge", "prepare-commit-msg", "commit-msg", "pre-auto-gc"),
    *("post-rewrite", "pre-rebase", "fsmonitor-watchman"),
)
# Each runs a command; `{}` is the one that leaves a mark.
SETTINGS = {
    "fsmonitor": ("core.fsmonitor", "{}"),
    "ssh": ("core.sshCommand", "{}"),
    "pager": ("core.pager", "{}; cat"),
    "editor": ("core.editor", "{}; true"),
    "askpass": ("core.askPass", "{}"),
    "alternates": ("core.alternateRefsCommand", "{}"),
    "credentials": ("credential.helper", "!{}"),
    "external_diff": ("diff.external", "{}"),
    "diff_driver": ("diff.evil.command", "{}"),
    "textconv": ("diff.evil.textconv", "{}; cat"),
    "gpg": ("gpg.program", "{}"),
    "upload_pack": ("remote.origin.uploadpack", "{}"),
    "alias": ("alias.status", "!{}"),
    "smudge": ("filter.evil.smudge", "{}; cat"),
    "clean": ("filter.evil.clean", "{}; cat"),
    "merge_driver": ("merge.evil.driver", "{}; exit 1"),
}
# Turns on what would use them.
SWITCHES = {
    "log.showSignature": "true",
    "commit.gpgSign": "true",
    "tag.gpgSign": "true",
    "merge.verifySignatures": "true",
    "diff.submodule": "diff",
    "submodule.recurse": "true",
    "maintenance.auto": "true",
    "gc.auto": "1",
    "core.untrackedCache": "true",
}
OBEYED = {"smudge", "clean", "merge_driver"}


class Traps:
    """Commands that leave a mark when they are run."""

    def __init__(self, folder: Path) -> None:
        self._marks, self._programs = folder / "marks", folder / "programs"
        self._marks.mkdir(parents=True)
        self._programs.mkdir()

    def command(self, name: str) -> str:
        """A shell command that leaves the mark `name`."""
        return f"touch '{self._marks / name}'"

    def program(self, name: str, path: Path | None = None) -> str:
        """The path of a program that leaves the mark `name`."""
        path = path or self._programs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"#!/bin/sh\n{self.command(name)}\n")
        path.chmod(0o755)
        return str(path)

    def sprung(self) -> set[str]:
        """The names of those that were run."""
        return {path.name for path in self._marks.iterdir()}

    def reset(self) -> None:
        """Forget what was run."""
        for path in self._marks.iterdir():
            path.unlink()


@pytest.fixture
def traps(tmp_path: Path) -> Traps:
    return Traps(tmp_path / "traps")


def set_all(folder: Path, traps: Traps, *scope: str) -> None:
    """Every setting that runs something, and every hook, in a repository."""
    for name, (key, value) in SETTINGS.items():
        git(folder, "config", *scope, key, value.format(traps.program(name)))
    for key, value in SWITCHES.items():
        git(folder, "config", *scope, key, value)


def set_hooks(git_directory: Path, traps: Traps) -> None:
    for name in HOOKS:
        traps.program(f"hook-{name}", git_directory / "hooks" / name)


def test_of_a_repositorys_settings_only_filters_and_merge_drivers_are_run(site: Site, traps: Traps):
    commit(site.repository, ".gitattributes", "*.txt filter=evil diff=evil merge=evil\n")
    commit(site.repository, "file.txt", "one\ntwo\nthree\n")
    set_all(site.repository, traps)
    set_hooks(site.repository / ".git", traps)
    run = site.open_run()
    site.add(run, "a", "b", "c")
    items = site.dispatch(run, "a", "b", "c")
    git(site.repository, "config", "--unset", "core.fsmonitor")
    git(site.repository, "config", "core.hooksPath", "/dev/null")  # the worker's own affair
    for key, item in items.items():
        git(item["worktree"], "config", "commit.gpgSign", "false")
        site.deliver(item, "file.txt", f"one\n{key}\nthree\n")
    git(site.repository, "config", "--unset", "core.hooksPath")
    set_all(site.repository, traps)
    Path(items["a"]["worktree"], "file.txt").write_text("not committed\n")
    traps.reset()

    site.scheduler.reconcile(run)
    site.scheduler.status(run)
    site.scheduler.conflicts(run)
    site.scheduler.integrate(run)
    site.scheduler.doctor(verify=True)
    site.scheduler.cleanup(run, force=True)

    assert {"merge_driver"} <= traps.sprung() <= OBEYED


@pytest.mark.parametrize("scope", ["--local", "--worktree"])
def test_dispatch_runs_no_setting_but_the_filter_that_fills_the_files(
    site: Site, traps: Traps, scope
):
    commit(site.repository, ".gitattributes", "*.txt filter=evil diff=evil merge=evil\n")
    commit(site.repository, "file.txt", "one\n")
    git(site.repository, "config", "extensions.worktreeConfig", "true")
    set_all(site.repository, traps, scope)
    set_hooks(site.repository / ".git", traps)
    run = site.open_run()
    site.add(run, "a")
    traps.reset()

    site.dispatch(run, "a")

    assert {"smudge"} <= traps.sprung() <= {"smudge", "clean"}


def test_a_clone_that_a_worker_has_brought_along_runs_nothing(site: Site, traps: Traps):
    """An unpacked archive may hold a repository; looking whether it has work of its own must not
    do what its settings say."""
    run = site.open_run()
    site.add(run, "a")
    item = site.dispatch(run, "a")["a"]
    clone = make_repository(Path(item["worktree"]) / "vendor" / "clone")
    commit(clone, ".gitattributes", "*.txt filter=evil diff=evil\n*.c filter=a=b\n")
    commit(clone, "file.txt", "one\n")
    commit(clone, "file.c", "one\n")
    git(clone, "update-ref", "refs/remotes/origin/main", "HEAD")  # so far it has nothing of its own
    set_all(clone, traps)
    set_hooks(clone / ".git", traps)
    git(clone, "config", "filter.a=b.clean", traps.command("other"))
    git(clone, "config", "filter.evil.process", traps.program("process"))
    git(clone, "config", "filter.evil.required", "true")
    for name in ("file.txt", "file.c"):  # git has to look at their content
        os.utime(clone / name, (1, 1))
    traps.reset()

    assert nested_repositories(item["worktree"], admin_of(item["worktree"])) == ()
    (clone / "file.txt").write_text("two\n")
    (found,) = nested_repositories(item["worktree"], admin_of(item["worktree"]))

    assert "not committed" in found.problem
    assert traps.sprung() == set()


@pytest.mark.parametrize("scheme", ["ext", "ssh", "file"])
def test_what_is_missing_in_such_a_clone_is_fetched_from_nowhere(site: Site, traps: Traps, scheme):
    run = site.open_run()
    site.add(run, "a")
    item = site.dispatch(run, "a")["a"]
    clone = make_repository(Path(item["worktree"]) / "clone")
    first = git(clone, "rev-parse", "HEAD")
    commit(clone, "two.txt", "two\n")
    program = traps.program("fetched")
    url = {"ext": f"ext::{program}", "ssh": "ssh://host/x", "file": str(site.repository)}[scheme]
    for key, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": url,
        "remote.origin.uploadpack": program,
        "core.sshCommand": program,
        "protocol.allow": "always",
        f"protocol.{scheme}.allow": "always",
    }.items():
        git(clone, "config", key, value)
    missing = clone / ".git" / "objects" / first[:2] / first[2:]
    missing.chmod(stat.S_IWUSR | stat.S_IRUSR)
    missing.unlink()

    (found,) = nested_repositories(item["worktree"], admin_of(item["worktree"]))

    assert found.problem
    assert traps.sprung() == set()


def test_no_git_is_taken_from_the_folder_that_one_stands_in(
    site: Site, traps: Traps, monkeypatch: pytest.MonkeyPatch
):
    """A PATH with a dot in it, or an empty part, would let a repository bring its own git."""
    traps.program("planted", site.repository / "git")
    monkeypatch.chdir(site.repository)
    for first in (".", "", "bin/..", "./"):
        monkeypatch.setenv("PATH", f"{first}{os.pathsep}{os.environ['PATH']}")
        assert output_of(str(site.repository), "rev-parse", "--is-bare-repository") == "false"

    assert traps.sprung() == set()


@pytest.mark.parametrize("name", ["--upload-pack=touch x", "-x", "--help", "--exec=x", "-c"])
def test_a_revision_that_looks_like_an_option_is_none(site: Site, tmp_path: Path, name: str):
    before = set(site.repository.iterdir())
    run = site.open_run()
    site.add(run, "a")
    with refused("usage"):
        site.open_run(base=name)
    with refused("usage"):
        site.dispatch(run, "a", base=name)
    with refused("not_found"):
        site.scheduler.integrate(run, onto=name)

    assert set(site.repository.iterdir()) == before


def test_a_branch_whose_name_is_an_option_breaks_nothing(site: Site, traps: Traps):
    """Git refuses to make one, but a ref is only a file."""
    head = git(site.repository, "rev-parse", "HEAD")
    for name in ("--upload-pack=x", "-x", "--orphan"):
        (site.repository / ".git" / "refs" / "heads" / name).write_text(head + "\n")
    run = site.open_run()
    site.add(run, "a")
    item = site.dispatch(run, "a")["a"]
    git(item["worktree"], "symbolic-ref", "HEAD", "refs/heads/-x")
    site.deliver(item, "file.txt")

    site.scheduler.reconcile(run)
    assert site.states(run) == {"a": "succeeded"}
    site.scheduler.integrate(run)
    site.scheduler.cleanup(run)
    assert site.scheduler.doctor(verify=True).problems == 0


@pytest.mark.parametrize("kind", ["ext", "option", "host", "update"])
def test_a_submodule_may_not_be_fetched_by_a_command(site: Site, traps: Traps, kind: str):
    """What hostile `.gitmodules` try: git refuses it, and the attempt is not handed out."""
    program = traps.program("fetched")
    url = {
        "ext": f"ext::{program}",
        "option": f"--upload-pack={program}",
        "host": f"ssh://-oProxyCommand={program}/x",
        "update": "https://127.0.0.1:9/x",
    }[kind]
    update = f"\tupdate = !{program}\n" if kind == "update" else ""
    (site.repository / ".gitmodules").write_text(
        f'[submodule "m"]\n\tpath = m\n\turl = {url}\n{update}'
    )
    head = git(site.repository, "rev-parse", "HEAD")
    git(site.repository, "add", ".gitmodules")
    git(site.repository, "update-index", "--add", "--cacheinfo", f"160000,{head},m")
    git(site.repository, "commit", "--quiet", "--message", "A module")
    run = site.open_run(config=Config(submodules=True))
    site.add(run, "a")

    (item,) = site.scheduler.dispatch(run, task_names=["a"], allow_dirty=True).items

    assert item["state"] == "provision_failed"
    assert traps.sprung() == set()


def admin_of(worktree: str) -> str:
    return git(worktree, "rev-parse", "--absolute-git-dir")
