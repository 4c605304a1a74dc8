"""No file is changed anywhere but where git itself says that it is.

With `extensions.worktreeConfig`, a `core.worktree` or `core.bare` in the config that all worktrees
share goes for every one of them (git-worktree(1), "Configuration file").
"""

import os
from pathlib import Path

import pytest

from inbox_orch.orch.attempts import choosing, fold, judge, verify
from inbox_orch.orch.git import harvest, standing
from inbox_orch.orch.git.repository import Repository
from inbox_orch.orch.git.standing import require_apart, require_here
from inbox_orch.shared.errors import InboxOrchError
from support.buses import refused
from support.runs import Site, branches, commit, git, worktree_paths

SETTINGS = ("elsewhere", "itself", "nowhere", "bare")


@pytest.fixture(params=SETTINGS)
def setting(site: Site, request: pytest.FixtureRequest):
    """A call that makes the setting in the shared config, one that takes it back, and the folder
    that nobody may touch."""
    return Setting(site, request.param)


class Setting:
    """One of the settings that send git elsewhere."""

    def __init__(self, site: Site, kind: str) -> None:
        self.site = site
        self.config = site.repository / ".git" / "config"
        self.elsewhere = site.folder / "elsewhere"
        self.elsewhere.mkdir()
        (self.elsewhere / "README.md").write_text("somebody's\n")
        (self.elsewhere / "private").write_text("somebody's\n")
        values = {
            "elsewhere": ("core.worktree", str(self.elsewhere)),
            "itself": ("core.worktree", str(site.repository)),
            "nowhere": ("core.worktree", str(site.folder / "nowhere")),
            "bare": ("core.bare", "true"),
        }
        self.name, self.value = values[kind]
        self.precious = site.repository / "README.md"

    def make(self) -> None:
        self.precious.write_text("precious, in no commit\n")
        self._set("extensions.worktreeConfig", "true")
        self._set(self.name, self.value)

    def take_back(self) -> None:
        """As the hint says, but for what goes into the other file."""
        self._set("--unset-all", self.name)

    def _set(self, *words: str) -> None:
        git(self.site.folder, "config", "--file", str(self.config), *words)

    def nothing_was_touched(self) -> None:
        assert self.precious.read_text() == "precious, in no commit\n"
        files = {path.name: path.read_text() for path in self.elsewhere.iterdir()}
        assert files == {"README.md": "somebody's\n", "private": "somebody's\n"}
        assert not (self.site.folder / "nowhere").exists()
        assert not (self.site.repository / ".git" / "README.md").exists()

    def is_told_by(self, error: InboxOrchError) -> None:
        assert f"move {self.name} from {self.config} to {self.config}.worktree" in error.message
        assert f"--unset {self.name}" in str(error.hint)


def with_work(site: Site, *keys: str, **options):
    """A run with one attempt of each task, each with a commit and something that is in none."""
    run = site.open_run()
    site.add(run, *keys, **options)
    items = site.dispatch(run)
    for key, item in items.items():
        commit(item["worktree"], f"{key}.txt", "work\n")
    return run, items


def test_nothing_is_dispatched_where_git_would_fill_another_folder(site: Site, setting: Setting):
    run = site.open_run(base="main")
    site.add(run, "a")
    setting.make()

    with refused("git_failed") as caught:
        site.dispatch(run)
    setting.is_told_by(caught.value)
    assert site.attempts(run, "a") == []
    assert branches(site.repository) == set()
    found = {check.name: check for check in site.scheduler.doctor().checks}
    assert found["repositories"].status == "problem"
    setting.nothing_was_touched()

    setting.take_back()
    item = site.dispatch(run, allow_dirty=True)["a"]
    assert Path(item["worktree"], "README.md").exists()
    setting.nothing_was_touched()


def test_a_worktree_that_git_would_fill_elsewhere_is_not_filled(
    site: Site, setting: Setting, monkeypatch: pytest.MonkeyPatch
):
    """The setting came while the attempt was begun."""
    run = site.open_run(base="main")
    site.add(run, "a")

    def meanwhile(common: str) -> None:
        require_apart(common)
        monkeypatch.setattr(Repository, "working_tree_at", lambda *_: None)
        setting.make()

    monkeypatch.setattr(choosing, "require_apart", meanwhile)
    site.dispatch(run)

    (attempt,) = site.attempts(run, "a")
    assert attempt.state == "provision_failed"
    assert f"move {setting.name} from" in str(attempt.reason)
    setting.nothing_was_touched()
    setting.take_back()
    assert worktree_paths(site.repository) == set()
    assert branches(site.repository) == set()


def test_work_that_git_cannot_look_at_waits_until_it_can(site: Site, setting: Setting):
    run, items = with_work(site, "a")
    site.done(items["a"])
    setting.make()

    with refused("git_failed") as caught:
        site.scheduler.reconcile(run)
    setting.is_told_by(caught.value)
    assert site.attempts(run, "a")[0].state == "submitted"
    setting.nothing_was_touched()

    setting.take_back()
    site.scheduler.reconcile(run)
    assert site.attempts(run, "a")[0].state == "succeeded"


def test_nothing_is_harvested_where_git_is_in_another_folder(site: Site, setting: Setting):
    run = site.open_run(base="main")
    site.add(run, "a")
    item = site.dispatch(run, harvest=True)["a"]
    Path(item["worktree"], "new.txt").write_text("the worker's\n")
    site.done(item)
    setting.make()

    with refused("git_failed") as caught:
        site.scheduler.reconcile(run)
    setting.is_told_by(caught.value)
    assert (
        git(site.folder, f"--git-dir={setting.config.parent}", "rev-parse", item["branch"])
        == (item["base_commit"])
    )
    setting.nothing_was_touched()

    setting.take_back()
    site.scheduler.reconcile(run)
    (attempt,) = site.attempts(run, "a")
    files = git(site.repository, "ls-tree", "-r", "--name-only", str(attempt.head_commit))
    assert (attempt.state, files.split()) == ("succeeded", ["README.md", "new.txt"])


@pytest.mark.parametrize("step", ["_tree_with", "add_to_index", "_move"])
def test_a_harvest_goes_no_step_further_once_git_is_in_another_folder(
    site: Site, setting: Setting, monkeypatch: pytest.MonkeyPatch, step: str
):
    """The setting came in the middle of it."""
    run = site.open_run(base="main")
    site.add(run, "a")
    item = site.dispatch(run, harvest=True)["a"]
    Path(item["worktree"], "new.txt").write_text("the worker's\n")
    site.done(item)
    genuine = getattr(harvest, step)

    def from_now_on(*arguments):
        monkeypatch.undo()
        setting.make()
        return genuine(*arguments)

    monkeypatch.setattr(harvest, step, from_now_on)
    with refused("git_failed") as caught:
        site.scheduler.reconcile(run)
    setting.is_told_by(caught.value)
    assert site.attempts(run, "a")[0].state == "submitted"
    setting.nothing_was_touched()

    setting.take_back()
    site.scheduler.reconcile(run)
    (attempt,) = site.attempts(run, "a")
    assert (attempt.state, attempt.commits_ahead) == ("succeeded", 1)


def test_no_check_runs_where_git_is_in_another_folder(site: Site, setting: Setting):
    ran = site.folder / "ran"
    run, items = with_work(site, "a", checks=["true", f"touch '{ran}'; git clean -fdxq"])
    site.done(items["a"])
    fold.fold(site.scheduler.desk, run)
    verify.verify(site.scheduler.desk, run)
    setting.make()

    with refused("git_failed"):
        judge.check_all(site.scheduler.desk, run)
    assert not ran.exists()
    assert site.attempts(run, "a")[0].state == "submitted"
    setting.nothing_was_touched()

    setting.take_back()
    judge.check_all(site.scheduler.desk, run)
    assert ran.exists()
    assert site.attempts(run, "a")[0].state == "succeeded"


def test_a_check_that_sends_git_elsewhere_is_the_last_one(site: Site):
    ran = site.folder / "ran"
    sending = f"git config extensions.worktreeConfig true; git config core.worktree '{site.folder}'"
    run, items = with_work(site, "a", checks=[sending, f"touch '{ran}'"])
    site.done(items["a"])

    with refused("git_failed"):
        site.scheduler.reconcile(run)
    assert not ran.exists()


def test_a_branch_comes_forward_only_where_git_is(site: Site, setting: Setting):
    """The branch is checked out in a linked worktree of the user's."""
    run, items = with_work(site, "a")
    site.done(items["a"])
    site.scheduler.reconcile(run)
    mine = site.folder / "mine"
    git(site.repository, "worktree", "add", "-q", "-b", "mine", str(mine))
    before = git(site.repository, "rev-parse", "refs/heads/mine")
    setting.make()

    for dry_run in (True, False):
        done = site.scheduler.integrate(run, onto="mine", dry_run=dry_run)
        assert done.onto is not None
        assert (done.onto["state"], done.onto["worktree"]) == ("checked_out", str(mine))
        assert f"move {setting.name} from" in done.onto["reason"]
    setting.nothing_was_touched()
    assert not (mine / "a.txt").exists()

    setting.take_back()
    assert git(site.repository, "rev-parse", "refs/heads/mine") == before
    done = site.scheduler.integrate(run, onto="mine")
    assert done.onto is not None
    assert done.onto["state"] == "fast_forwarded"
    assert (mine / "a.txt").exists()
    assert git(mine, "status", "--porcelain") == ""


def test_an_integration_is_not_tried_out_in_another_folder(site: Site, setting: Setting):
    run, items = with_work(site, "a")
    site.done(items["a"])
    site.scheduler.reconcile(run)
    ran = site.folder / "ran"
    setting.make()

    with refused("git_failed") as caught:
        site.scheduler.integrate(run, checks=[f"touch '{ran}'"])
    setting.is_told_by(caught.value)
    assert not ran.exists()
    setting.nothing_was_touched()
    setting.take_back()
    assert worktree_paths(site.repository) == {items["a"]["worktree"]}


def test_late_work_is_not_adopted_by_checks_in_another_folder(site: Site, setting: Setting):
    ran = site.folder / "ran"
    run, items = with_work(site, "a", max_attempts=1, checks=[f"touch '{ran}'"])
    site.fail(items["a"])
    site.scheduler.reconcile(run)
    setting.make()

    with refused("git_failed") as caught:
        site.scheduler.adopt(run, "a")
    setting.is_told_by(caught.value)
    assert not ran.exists()
    setting.nothing_was_touched()


def test_clean_up_neither_salvages_another_folder_nor_takes_the_worktree(
    site: Site, setting: Setting
):
    run, items = with_work(site, "a", max_attempts=1)
    only_here = Path(items["a"]["worktree"], "only-here.txt")
    only_here.write_text("only here\n")
    site.fail(items["a"])
    site.scheduler.reconcile(run)
    setting.make()

    (item,) = site.scheduler.cleanup(run, force=True).items
    assert (item.action, [reason.code for reason in item.reasons]) == ("kept", ["unreadable"])
    assert f"move {setting.name} from" in item.reasons[0].message
    assert only_here.read_text() == "only here\n"
    setting.nothing_was_touched()

    setting.take_back()
    assert git(site.repository, "for-each-ref", "refs/orch/salvage") == ""
    (item,) = site.scheduler.cleanup(run, force=True).items
    assert item.action == "removed"
    files = git(site.repository, "ls-tree", "-r", "--name-only", str(item.salvage)).split()
    assert files == ["README.md", "a.txt", "only-here.txt"]


def test_salvage_comes_back_into_its_own_folder(site: Site, setting: Setting):
    run, items = with_work(site, "a", max_attempts=1)
    site.fail(items["a"])
    site.scheduler.reconcile(run)
    Path(items["a"]["worktree"], "only-here.txt").write_text("only here\n")
    site.scheduler.cleanup(run, force=True)
    setting.make()

    restored = site.folder / "restored"
    run, listed = site.scheduler.attempt_named("a", None)
    site.scheduler.attempt_restore(run, listed, into=str(restored))
    assert sorted(os.listdir(restored)) == ["README.md", "a.txt", "only-here.txt"]
    setting.nothing_was_touched()


def test_a_worktree_that_its_worker_has_sent_elsewhere_is_no_lost_work(site: Site):
    """The setting is the worktree's own, so that the others go on."""
    run, items = with_work(site, "a", "b")
    for item in items.values():
        site.done(item)
    git(site.repository, "config", "extensions.worktreeConfig", "true")
    git(items["a"]["worktree"], "config", "--worktree", "core.worktree", str(site.folder))

    site.scheduler.reconcile(run)

    attempt = site.attempts(run, "a")[0]
    assert attempt.state == "rejected"
    assert str(attempt.reason).startswith("unreadable: git looks for the files of")
    assert site.attempts(run, "b")[0].state == "succeeded"


@pytest.mark.parametrize("set_when", ["before the run", "after it"])
@pytest.mark.parametrize("onto", ["main", "orch/a-run/integration"])
def test_no_branch_moves_behind_a_checkout_that_git_takes_for_a_bare_repository(
    site: Site, set_when: str, onto: str
):
    if set_when == "before the run":
        git(site.repository, "config", "core.bare", "true")
    run = site.open_run(base="main")
    site.add(run, "a", "b")
    git(site.repository, "config", "core.bare", "false")
    item = site.dispatch(run, "a")["a"]
    site.deliver(item, "a.txt")
    site.scheduler.reconcile(run)
    if onto != "main":
        site.scheduler.integrate(run)
        onto = site.scheduler.integrate(run).plan.branch
        git(site.repository, "switch", "--quiet", onto)
        site.deliver(site.dispatch(run, "b")["b"], "b.txt")
        site.scheduler.reconcile(run)
    before = git(site.repository, "rev-parse", f"refs/heads/{onto}")
    git(site.repository, "config", "core.bare", "true")

    if onto == "main":
        done = site.scheduler.integrate(run, onto="main")
        assert done.onto is not None
        assert done.onto["state"] == "checked_out"
        assert "core.bare is true" in done.onto["reason"]
    else:
        with refused("dirty_repository") as caught:
            site.scheduler.integrate(run)
        assert "core.bare is true" in caught.value.message

    assert git(site.repository, "rev-parse", f"refs/heads/{onto}") == before
    git(site.repository, "config", "core.bare", "false")
    assert git(site.repository, "status", "--porcelain") == ""


def test_a_bare_repository_that_never_had_files_has_no_checkout(site: Site):
    bare = site.folder / "bare" / ".git"
    git(site.folder, "clone", "--quiet", "--bare", str(site.repository), str(bare))
    run = site.open_run(bare)
    site.add(run, "a")
    site.deliver(site.dispatch(run)["a"], "a.txt")
    site.scheduler.reconcile(run)

    done = site.scheduler.integrate(run, onto="main")
    assert done.onto is not None
    assert done.onto["state"] == "fast_forwarded"
    assert site.scheduler.doctor().problems == 0


def test_doctor_names_a_checkout_that_git_will_not_work_in(site: Site):
    site.open_run()
    git(site.repository, "config", "core.bare", "true")

    found = {check.name: check for check in site.scheduler.doctor().checks}

    assert (found["repositories"].status, found["repositories"].total) == ("problem", 1)
    (item,) = found["repositories"].items
    assert "core.bare is true" in item


def test_a_submodule_is_worked_in_until_its_setting_goes_for_every_worktree(site: Site):
    upper = site.folder / "upper"
    git(site.folder, "init", "--quiet", "--initial-branch=main", str(upper))
    git(upper, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
        str(site.repository), "lower")  # fmt: skip
    lower, shared = upper / "lower", upper / ".git" / "modules" / "lower"
    run = site.open_run(lower, base="main")
    site.add(run, "a", "b")
    item = site.dispatch(run, "a")["a"]
    assert Path(item["worktree"], "README.md").exists()
    git(lower, "config", "extensions.worktreeConfig", "true")
    before = (shared / "config").read_bytes()

    with refused("git_failed") as caught:
        site.dispatch(run, "b")
    assert f"move core.worktree from {shared}/config" in caught.value.message
    assert (shared / "config").read_bytes() == before
    assert not (shared / "README.md").exists()

    # What git-worktree(1) tells to do.
    value = git(lower, "config", "core.worktree")
    git(lower, "config", "--file", str(shared / "config.worktree"), "core.worktree", value)
    git(lower, "config", "--file", str(shared / "config"), "--unset", "core.worktree")
    assert Path(site.dispatch(run, "b")["b"]["worktree"], "README.md").exists()


@pytest.mark.parametrize("part", ["top", "own", "common", "index_file"])
def test_each_place_that_git_names_must_be_the_one_that_is_meant(
    site: Site, monkeypatch: pytest.MonkeyPatch, part: str
):
    common = str(site.repository / ".git")
    require_here(str(site.repository), common)

    asked = standing._asked

    def otherwise(folder, environment):
        found = asked(folder, environment)
        assert found is not None
        return found._replace(**{part: "/elsewhere"})

    monkeypatch.setattr(standing, "_asked", otherwise)
    with refused("git_failed") as caught:
        require_here(str(site.repository), common)
    assert "/elsewhere" in caught.value.message


def test_what_is_not_committed_is_compared_only_where_git_is(site: Site, setting: Setting):
    run, _ = with_work(site, "a", "b")
    setting.make()

    with refused("git_failed") as caught:
        site.scheduler.conflicts(run)
    setting.is_told_by(caught.value)


def test_a_folder_called_worktrees_makes_no_setting_a_workers_own(site: Site):
    repository = site.folder / "worktrees"
    git(site.folder, "clone", "--quiet", str(site.repository), str(repository))
    git(repository, "config", "core.bare", "true")

    with refused("git_failed") as caught:
        require_here(str(repository), str(repository / ".git"))
    assert caught.value.details["status"] == -1


@pytest.mark.parametrize(
    "written",
    [
        "[extensions]\n\tworktreeConfig = true\n",
        "[EXTENSIONS]WORKTREECONFIG\n",
        "[extensions]\r\n worktreeconfig=\\\r\nyes\r\n",
        "[extensions] # worktreeConfig = false\n\tWorktreeConfig = 1",
    ],
)
def test_the_setting_counts_in_whichever_way_it_is_written(site: Site, written: str):
    common = site.repository / ".git"
    with (common / "config").open("a") as file:
        file.write(f"[core]\n\tbare = true\n{written}")

    with refused("git_failed"):
        require_apart(str(common))


@pytest.mark.parametrize("also", ["", "[extensions]\n\tworktreeConfig = false\n"])
def test_a_config_that_does_not_set_it_sends_git_nowhere(site: Site, also: str):
    common = site.repository / ".git"
    with (common / "config").open("a") as file:
        file.write(f"[core]\n\tbare = true\n{also}")

    require_apart(str(common))
