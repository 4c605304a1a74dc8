"""What a worker leaves uncommitted is committed for it, where that was asked for: all of it, and
nothing else."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from inbox_orch.orch.attempts import timing, verify
from inbox_orch.orch.git import harvest
from inbox_orch.orch.git.commands import git_bytes
from inbox_orch.orch.runs.config import Config, Setup
from inbox_orch.shared.store import events
from support.buses import refused
from support.runs import Site, commit, git, make_repository

ALLOW = ("-c", "protocol.file.allow=always")


@pytest.fixture
def run(site: Site):
    return site.open_run()


def dispatched(site: Site, run, key: str = "a", **options):
    """An attempt whose worker's leavings are to be committed."""
    site.add(run, key, **options)
    return site.dispatch(run, harvest=True)[key]


def files_in(item) -> Path:
    return Path(item["worktree"])


def decided(site: Site, run, key: str = "a"):
    """The newest attempt after reconciling twice; the second time changes nothing."""
    site.scheduler.reconcile(run)
    before = site.scheduler.status(run).next_cursor
    site.scheduler.reconcile(run)
    assert site.scheduler.status(run).next_cursor == before
    return site.attempts(run, key)[-1]


def harvested(attempt) -> dict | None:
    return json.loads(str(attempt.details)).get("harvested")


def tree_of(folder: Path | str, commit: str) -> dict[str, str]:
    """The paths of a commit with their modes; bytes that are not UTF-8 as surrogates."""
    text = git(folder, "ls-tree", "-r", "-z", commit)
    entries = [entry.split("\t", 1) for entry in text.split("\0") if entry]
    return {path: facts.split(" ")[0] for facts, path in entries}


def accepted(site: Site, run, item, files: int):
    """The attempt, accepted with one commit that was made for its worker."""
    site.done(item)
    attempt = decided(site, run)
    assert (attempt.state, attempt.commits_ahead) == ("succeeded", 1), attempt.reason
    assert harvested(attempt) == {"commit": attempt.head_commit, "files": files}
    assert git(item["worktree"], "status", "--porcelain", "--ignored=no") == ""
    return attempt


def rejected(site: Site, run, item, why: str):
    """Nothing was committed, and the reason says why."""
    before = git(item["worktree"], "rev-parse", "HEAD")
    branch = git(site.repository, "rev-parse", item["branch"])
    status = git(item["worktree"], "status", "--porcelain", "-z")
    site.done(item)
    attempt = decided(site, run)
    assert attempt.state == "rejected"
    assert str(attempt.reason).startswith("dirty: not committed: ")
    assert f"not harvested: {why}" in str(attempt.reason)
    assert git(item["worktree"], "rev-parse", "HEAD") == before
    assert git(site.repository, "rev-parse", item["branch"]) == branch
    assert git(item["worktree"], "status", "--porcelain", "-z") == status
    assert harvested(attempt) is None
    return attempt


# -- what it is ------------------------------------------------------------------------------


def test_what_was_left_is_committed_in_the_workers_name_and_words(site: Site, run, monkeypatch):
    monkeypatch.setenv("HOME", "/nonexistent")
    item = dispatched(site, run)
    (files_in(item) / "new.txt").write_text("new\n")
    (files_in(item) / "README.md").write_text("changed\n")
    token = site.claim(item)
    site.worker.done(item["thread"], token, body="I wrote it.\n\n#1 is done.")

    attempt = decided(site, run)

    assert attempt.state == "succeeded"
    assert harvested(attempt) == {"commit": attempt.head_commit, "files": 2}
    form = "%an <%ae>|%cn <%ce>|%B"
    written = git(site.repository, "log", "-1", f"--format={form}", str(attempt.head_commit))
    assert written.rstrip("\n") == (
        "w1 <w1@inbox-orch.invalid>|inbox-orch <inbox-orch@localhost>|"
        "Do a\n\nI wrote it.\n\n#1 is done."
    )
    assert git(site.repository, "rev-parse", item["branch"]) == attempt.head_commit
    assert git(item["worktree"], "status", "--porcelain") == ""
    assert git(site.repository, "show", f"{attempt.head_commit}:new.txt") == "new"


def test_without_being_asked_for_everything_is_as_it_was(site: Site, run):
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    (files_in(item) / "new.txt").write_text("new\n")
    site.done(item)

    attempt = decided(site, run)

    assert item["details"] is None
    assert attempt.state == "rejected"
    assert attempt.reason == ("dirty: not committed: new.txt; empty: no commit on top of the base")
    assert set(json.loads(str(attempt.details))) == {"dirty_paths", "change_summary"}


def test_it_comes_on_top_of_what_the_worker_committed_itself(site: Site, run):
    item = dispatched(site, run)
    own = commit(files_in(item), "own.txt", "own\n")
    (files_in(item) / "left.txt").write_text("left\n")
    site.done(item)

    attempt = decided(site, run)

    assert (attempt.state, attempt.commits_ahead) == ("succeeded", 2)
    assert git(site.repository, "rev-parse", f"{attempt.head_commit}^") == own
    assert harvested(attempt) == {"commit": attempt.head_commit, "files": 1}


def test_a_worker_that_commits_all_itself_is_no_case_of_it(site: Site, run):
    item = dispatched(site, run)
    head = site.deliver(item, "own.txt")

    attempt = decided(site, run)

    assert (attempt.state, attempt.head_commit, harvested(attempt)) == ("succeeded", head, None)


def test_nothing_left_is_still_nothing_done(site: Site, run):
    item = dispatched(site, run)
    site.done(item)

    assert decided(site, run).reason == "empty: no commit on top of the base"


def test_checks_run_on_what_was_committed_and_what_they_leave_is_nobodys_work(site: Site, run):
    checks = ["git diff --quiet HEAD && git show HEAD:new.txt && echo x >dirt.txt"]
    item = dispatched(site, run, checks=checks)
    (files_in(item) / "new.txt").write_text("new\n")
    site.done(item)

    attempt = decided(site, run)

    assert (attempt.state, attempt.commits_ahead) == ("succeeded", 1)
    assert "dirt.txt" not in tree_of(site.repository, str(attempt.head_commit))
    assert json.loads(str(attempt.details))["harvest"] is False


def test_an_event_tells_of_it_once(site: Site, run):
    item = dispatched(site, run)
    (files_in(item) / "new.txt").write_text("new\n")
    attempt = accepted(site, run, item, 1)

    with site.scheduler.database.snapshot() as snapshot:
        told = [e for e in events.every(snapshot) if e.kind == "work_harvested"]
    assert [e.data["harvested"] for e in told] == [harvested(attempt)]
    assert site.scheduler.doctor(verify=True).problems == 0


def test_the_config_of_the_run_can_ask_for_it(site: Site):
    run = site.open_run(config=Config(harvest=True))
    site.add(run, "a", "b")
    items = site.dispatch(run, "a")
    items |= site.dispatch(run, "b", harvest=False)
    for item in items.values():
        (files_in(item) / "new.txt").write_text("new\n")
        site.done(item)

    site.scheduler.reconcile(run)

    assert [site.attempts(run, key)[0].state for key in "ab"] == ["succeeded", "rejected"]


def test_the_worker_is_told(site: Site, run):
    item = dispatched(site, run)

    assert "What you leave uncommitted there is committed for you" in item["brief"]
    assert "does not count" not in item["brief"]


def test_secrets_do_not_come_into_the_history(site: Site):
    config = Config(harvest=True, secrets=("TOKEN",), environment={"TOKEN": "hunter2hunter2"})
    run = site.open_run(config=config)
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    (files_in(item) / "new.txt").write_text("new\n")
    site.worker.done(item["thread"], site.claim(item), body="used hunter2hunter2 for it")

    attempt = decided(site, run)

    message = git(site.repository, "log", "-1", "--format=%b", str(attempt.head_commit))
    assert message.strip() == "used *** for it"


def test_no_hook_no_editor_and_no_signature_is_asked_for(site: Site, run, monkeypatch):
    ran = site.folder / "ran"
    hooks = site.repository / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("pre-commit", "post-commit", "post-index-change", "reference-transaction"):
        (hooks / name).write_text(f"#!/bin/sh\necho {name} >>'{ran}'\nexit 1\n")
        (hooks / name).chmod(0o755)
    for setting in (
        f"core.hooksPath={hooks}",
        "commit.gpgSign=true",
        "gpg.program=/bin/false",
        "user.useConfigOnly=true",
        "commit.template=/nonexistent",
        f"core.fsmonitor={hooks}/pre-commit",
    ):
        git(site.repository, "config", *setting.split("=", 1))
    monkeypatch.setenv("GIT_EDITOR", "false")
    item = dispatched(site, run)
    (files_in(item) / "new.txt").write_text("new\n")
    ran.unlink(missing_ok=True)
    site.done(item)

    assert decided(site, run).state == "succeeded"
    assert not ran.exists()


# -- every kind of change --------------------------------------------------------------------

AWKWARD = (
    "a b",
    'quo"te',
    "new\nline",
    "-n",
    "--all",
    ":(glob)*",
    ":!README.md",
    "*.txt",
    "tab\there",
    "back\\slash",
    b"caf\xe9.txt".decode("utf-8", "surrogateescape"),
    "caf\u00e9",
    "deep/er/-x",
    "#comment",
    " lead",
)


def test_names_are_taken_as_they_are(site: Site, run):
    item = dispatched(site, run)
    for name in AWKWARD:
        path = files_in(item) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name, errors="surrogateescape")

    attempt = accepted(site, run, item, len(AWKWARD))

    tree = tree_of(site.repository, str(attempt.head_commit))
    assert set(tree) == {*AWKWARD, "README.md"}
    for name in AWKWARD:
        content = git_bytes(
            str(site.repository), "cat-file", "blob", f"{attempt.head_commit}:{name}"
        )
        assert content == os.fsencode(name)


def test_every_way_to_change_a_tree_is_taken_in(site: Site, run):
    for name in ("edited", "gone", "moved", "swap", "folder/a", "link-to-file", "file-to-link"):
        path = site.repository / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"{name}\n" * 5)
    (site.repository / "link").symlink_to("edited")
    (site.repository / "into/one").parent.mkdir()
    (site.repository / "into/one").write_text("one\n")
    git(site.repository, "add", "--all")
    git(site.repository, "commit", "-q", "-m", "Before")
    item = dispatched(site, run)
    work = files_in(item)
    (work / "edited").write_text("edited now\n")
    (work / "gone").unlink()
    (work / "moved").rename(work / "elsewhere")
    (work / "swap").unlink()
    (work / "swap").mkdir()
    (work / "swap" / "inside").write_text("inside\n")
    (work / "folder" / "a").unlink()
    (work / "folder").rmdir()
    (work / "folder").write_text("a file now\n")
    (work / "link").unlink()
    (work / "link").symlink_to("gone")  # leads nowhere
    (work / "file-to-link").unlink()
    (work / "file-to-link").symlink_to("folder/nothing")  # leads nowhere, and not out
    (work / "link-to-file").chmod(0o755)
    (work / "into" / "one").unlink()
    (work / "into").rmdir()
    (work / "into").symlink_to("swap")
    (work / "program").write_text("#!/bin/sh\n")
    (work / "program").chmod(0o755)
    (work / "empty").touch()

    attempt = accepted(site, run, item, 15)

    assert tree_of(site.repository, str(attempt.head_commit)) == {
        "README.md": "100644",
        "edited": "100644",
        "elsewhere": "100644",
        "swap/inside": "100644",
        "folder": "100644",
        "link": "120000",
        "file-to-link": "120000",
        "link-to-file": "100755",
        "into": "120000",
        "program": "100755",
        "empty": "100644",
    }
    assert (work / "into").readlink() == Path("swap")


@pytest.mark.parametrize("staging", [("add", "--all"), ("add", "--intent-to-add", "new.txt")])
def test_what_the_worker_has_staged_comes_as_the_file_is_now(site: Site, run, staging):
    item = dispatched(site, run)
    (files_in(item) / "new.txt").write_text("staged\n")
    git(item["worktree"], *staging)
    (files_in(item) / "new.txt").write_text("as it is now\n")

    attempt = accepted(site, run, item, 1)

    assert git(site.repository, "show", f"{attempt.head_commit}:new.txt") == "as it is now"


def test_an_edit_in_the_same_moment_as_the_index_is_seen(site: Site, run):
    """Of the same size, so that only its content tells."""
    item = dispatched(site, run)
    readme = files_in(item) / "README.md"
    git(item["worktree"], "config", "core.trustctime", "false")
    os.utime(readme, (10**9, 10**9))
    git(item["worktree"], "update-index", "--refresh")
    readme.write_bytes(b"x" * readme.stat().st_size)
    index = git(item["worktree"], "rev-parse", "--path-format=absolute", "--git-path", "index")
    for path in (readme, Path(index)):
        os.utime(path, (10**9, 10**9))

    accepted(site, run, item, 1)


def test_what_is_ignored_stays_where_it_is(site: Site, run):
    item = dispatched(site, run)
    (files_in(item) / ".gitignore").write_text("*.o\n")
    (files_in(item) / "a.o").write_text("built\n")

    attempt = accepted(site, run, item, 1)

    assert set(tree_of(site.repository, str(attempt.head_commit))) == {".gitignore", "README.md"}
    assert (files_in(item) / "a.o").exists()


@pytest.mark.parametrize("mark", ["--assume-unchanged", "--skip-worktree"])
@pytest.mark.parametrize("gone", [False, True], ids=["edited", "deleted"])
def test_what_git_was_told_not_to_see_is_taken_in(site: Site, run, mark, gone):
    item = dispatched(site, run)
    git(item["worktree"], "update-index", mark, "README.md")
    readme = files_in(item) / "README.md"
    if gone:
        readme.unlink()
    else:
        readme.write_text("hidden\n")

    attempt = accepted(site, run, item, 1)

    assert ("README.md" in tree_of(site.repository, str(attempt.head_commit))) is not gone


@pytest.mark.parametrize("cone", ["--cone", "--no-cone"])
def test_a_sparse_checkout_keeps_what_it_leaves_out(site: Site, run, cone):
    commit(site.repository, "kept/a.txt", "a\n")
    commit(site.repository, "left/b.txt", "b\n")
    item = dispatched(site, run)
    git(item["worktree"], "sparse-checkout", "set", cone, "kept")
    assert not (files_in(item) / "left").exists()
    (files_in(item) / "kept" / "a.txt").write_text("changed\n")
    (files_in(item) / "other").mkdir()
    (files_in(item) / "other" / "new.txt").write_text("outside of the cone\n")

    attempt = accepted(site, run, item, 2)

    tree = tree_of(site.repository, str(attempt.head_commit))
    assert {"left/b.txt", "other/new.txt", "kept/a.txt"} <= set(tree)
    assert not (files_in(item) / "left").exists()
    assert git(item["worktree"], "ls-files", "-v", "left/b.txt")[0] == "S"


def test_line_ends_come_as_git_would_have_them(site: Site, run):
    git(site.repository, "config", "core.autocrlf", "true")
    item = dispatched(site, run)
    (files_in(item) / "dos.txt").write_bytes(b"one\r\ntwo\r\n")

    attempt = accepted(site, run, item, 1)

    blob = git_bytes(str(site.repository), "cat-file", "blob", f"{attempt.head_commit}:dos.txt")
    assert blob == b"one\ntwo\n"
    assert (files_in(item) / "dos.txt").read_bytes() == b"one\r\ntwo\r\n"


def test_the_filters_of_the_repository_clean(site: Site, run):
    git(site.repository, "config", "filter.loud.clean", "tr a-z A-Z")
    git(site.repository, "config", "filter.loud.smudge", "tr A-Z a-z")
    git(site.repository, "config", "filter.loud.required", "true")
    commit(site.repository, ".gitattributes", "*.loud filter=loud\n")
    item = dispatched(site, run)
    (files_in(item) / "a.loud").write_text("quiet\n")

    attempt = accepted(site, run, item, 1)

    assert git(site.repository, "show", f"{attempt.head_commit}:a.loud") == "QUIET"


def test_a_filter_that_fails_is_told_and_nothing_is_committed(site: Site, run):
    git(site.repository, "config", "filter.bad.clean", "false")
    git(site.repository, "config", "filter.bad.required", "true")
    item = dispatched(site, run)
    (files_in(item) / ".gitattributes").write_text("*.bad filter=bad\n")
    (files_in(item) / "a.bad").write_text("text\n")

    attempt = rejected(site, run, item, "git update-index failed")

    assert "clean filter 'bad' failed" in str(attempt.reason)


def test_many_files_are_one_commit(site: Site, run):
    item = dispatched(site, run)
    for number in range(500):
        (files_in(item) / f"{number}.txt").write_text(f"{number}\n")

    accepted(site, run, item, 500)


def test_a_split_index_is_followed(site: Site, run):
    item = dispatched(site, run)
    git(item["worktree"], "update-index", "--split-index")
    (files_in(item) / "new.txt").write_text("new\n")

    accepted(site, run, item, 1)


def test_a_worktree_without_an_index_has_its_files_taken_in(site: Site, run):
    item = dispatched(site, run)
    index = git(item["worktree"], "rev-parse", "--path-format=absolute", "--git-path", "index")
    Path(index).unlink()
    (files_in(item) / "new.txt").write_text("new\n")

    attempt = accepted(site, run, item, 1)

    assert set(tree_of(site.repository, str(attempt.head_commit))) == {"README.md", "new.txt"}


# -- what is of set-up -----------------------------------------------------------------------


def test_what_set_up_has_made_stays_out(site: Site):
    (site.repository / ".env").write_text("secret\n")
    setup = Setup("echo made >made.txt")
    run = site.open_run(config=Config(copy=(".env",), setup=setup, harvest=True))
    site.add(run, "a")
    item = site.dispatch(run, allow_dirty=True)["a"]
    assert item["details"] == {"harvest": True, "untracked_at_start": [".env", "made.txt"]}
    (files_in(item) / ".env").write_text("another secret\n")
    (files_in(item) / "new.txt").write_text("new\n")
    site.done(item)

    attempt = decided(site, run)

    assert attempt.state == "succeeded"
    assert set(tree_of(site.repository, str(attempt.head_commit))) == {"README.md", "new.txt"}


def test_also_when_it_has_made_more_than_are_listed(site: Site):
    run = site.open_run(config=Config(setup=Setup("seq 150 | xargs touch"), harvest=True))
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    (files_in(item) / "new.txt").write_text("new\n")

    rejected(site, run, item, "set-up has made ")


def test_also_when_the_worker_has_staged_it(site: Site):
    run = site.open_run(config=Config(setup=Setup("echo secret >.env"), harvest=True))
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    git(item["worktree"], "add", ".env")

    rejected(site, run, item, "set-up has made .env")


# -- what is left alone ----------------------------------------------------------------------


def test_another_branch_than_its_own_is_never_moved(site: Site, run):
    item = dispatched(site, run)
    git(item["worktree"], "switch", "-q", "-c", "mine")
    (files_in(item) / "new.txt").write_text("new\n")

    rejected(site, run, item, f"HEAD is on mine, and not on {item['branch']}")


def test_its_branch_is_never_moved_when_it_is_another_name_of_one(site: Site, run):
    item = dispatched(site, run)
    git(site.repository, "branch", "mine", item["base_commit"])
    git(site.repository, "symbolic-ref", f"refs/heads/{item['branch']}", "refs/heads/mine")
    (files_in(item) / "new.txt").write_text("new\n")

    rejected(site, run, item, "HEAD is on mine")


def test_a_branch_that_somebody_has_checked_out_too_is_left_alone(site: Site, run):
    item = dispatched(site, run)
    git(site.repository, "checkout", "-q", "--ignore-other-worktrees", item["branch"])
    (files_in(item) / "new.txt").write_text("new\n")

    rejected(site, run, item, f"{item['branch']} is checked out in 2 working trees")
    assert git(site.repository, "status", "--porcelain") == ""


def test_a_detached_head_is_left_alone(site: Site, run):
    item = dispatched(site, run)
    git(item["worktree"], "switch", "-q", "--detach")
    (files_in(item) / "new.txt").write_text("new\n")

    rejected(site, run, item, "HEAD is detached")


@pytest.mark.parametrize("how", ["merge", "cherry-pick", "revert"])
def test_what_is_in_the_middle_of_something_is_left_alone(site: Site, run, how):
    item = dispatched(site, run)
    other = commit(site.repository, "README.md", "theirs\n")
    commit(files_in(item), "README.md", "ours\n")
    commit(files_in(item), "README.md", "ours, again\n")
    target = "HEAD~1" if how == "revert" else other
    git(item["worktree"], how, target, status=1)
    (files_in(item) / "README.md").write_text("resolved\n")
    git(item["worktree"], "add", "README.md")

    rejected(site, run, item, f"a {how} is in progress")


def test_conflicts_are_left_alone(site: Site, run):
    item = dispatched(site, run)
    (files_in(item) / "README.md").write_text("stashed\n")
    git(item["worktree"], "stash", "--quiet")
    commit(files_in(item), "README.md", "ours\n")
    git(item["worktree"], "stash", "pop", "--quiet", status=1)

    rejected(site, run, item, "conflicts are not resolved in README.md")


@pytest.mark.parametrize("with_commit", [True, False])
@pytest.mark.parametrize("staged", [True, False])
def test_a_repository_inside_is_left_alone(site: Site, run, with_commit, staged):
    item = dispatched(site, run)
    inner = files_in(item) / "inner" / "most"
    inner.mkdir(parents=True)
    git(inner, "init", "-q")
    (inner / "own.txt").write_text("only here\n")
    if with_commit:
        commit(inner, "own.txt", "only here\n")
    if staged:
        words = ("add", "inner") if with_commit else ("update-index", "--add", "inner/most/own.txt")
        git(item["worktree"], *words)
    (files_in(item) / "new.txt").write_text("new\n")

    attempt = rejected(site, run, item, "inner/most")

    assert "a repository of its own" in str(attempt.reason)


@pytest.mark.parametrize("how", ["dirty", "other commit", "gone"])
def test_a_changed_submodule_is_left_alone(site: Site, run, how):
    library = make_repository(site.folder / "library")
    git(site.repository, *ALLOW, "submodule", "--quiet", "add", str(library), "lib")
    git(site.repository, "commit", "-q", "-m", "Add a submodule")
    item = dispatched(site, run)
    git(item["worktree"], *ALLOW, "submodule", "--quiet", "update", "--init")
    if how == "dirty":
        (files_in(item) / "lib" / "README.md").write_text("changed\n")
    elif how == "other commit":
        commit(files_in(item) / "lib", "own.txt", "only here\n")
    else:
        git(item["worktree"], "rm", "-q", "--cached", "lib")
        subprocess.run(["rm", "-r", files_in(item) / "lib"], check=True)
    (files_in(item) / "new.txt").write_text("new\n")

    rejected(site, run, item, "lib is a ")


def test_a_head_that_does_not_build_on_the_base_is_left_alone(site: Site, run):
    old = git(site.repository, "rev-parse", "HEAD")
    commit(site.repository, "base.txt", "base")
    item = dispatched(site, run)
    git(item["worktree"], "reset", "-q", "--hard", old)
    (files_in(item) / "new.txt").write_text("new\n")

    rejected(site, run, item, "HEAD does not build on the base commit")


def test_what_is_neither_file_nor_link_is_left_alone(site: Site, run):
    item = dispatched(site, run)
    (files_in(item) / "README.md").unlink()
    os.mkfifo(files_in(item) / "README.md")

    rejected(site, run, item, "README.md is neither a file nor a link")


@pytest.mark.parametrize("limit, value", [("MAX_BYTES", 1 << 20), ("MOST_FILES", 1)])
def test_too_much_is_left_alone(site: Site, run, monkeypatch, limit, value):
    monkeypatch.setattr(harvest, limit, value)
    item = dispatched(site, run)
    for name in ("one", "two"):
        (files_in(item) / name).write_bytes(b"x" * (1 << 20))

    rejected(site, run, item, "there are 2 files" if value == 1 else "it is 2 MiB")


def test_a_lock_of_somebody_elses_is_left_alone(site: Site, run, monkeypatch):
    monkeypatch.setattr(harvest, "pause", lambda: None)
    item = dispatched(site, run)
    (files_in(item) / "new.txt").write_text("new\n")
    index = git(item["worktree"], "rev-parse", "--path-format=absolute", "--git-path", "index")
    Path(f"{index}.lock").touch()

    rejected(site, run, item, f"{index}.lock is there")
    assert Path(f"{index}.lock").exists()


def test_a_git_that_has_the_index_for_a_moment_is_waited_for(site: Site, run, monkeypatch):
    item = dispatched(site, run)
    (files_in(item) / "new.txt").write_text("new\n")
    index = git(item["worktree"], "rev-parse", "--path-format=absolute", "--git-path", "index")
    lock, genuine, calls = Path(f"{index}.lock"), harvest.require_here, []

    def and_then_the_other(*arguments):
        genuine(*arguments)
        calls.append(1)
        if len(calls) == 2:
            lock.touch()

    monkeypatch.setattr(harvest, "require_here", and_then_the_other)
    monkeypatch.setattr(harvest, "pause", lock.unlink)

    accepted(site, run, item, 1)
    assert len(calls) > 2


# -- whoever writes meanwhile ----------------------------------------------------------------


def test_what_comes_meanwhile_is_committed_too_and_in_the_end_it_is_dirt(
    site: Site, run, monkeypatch
):
    item = dispatched(site, run)
    (files_in(item) / "0.txt").write_text("0\n")
    genuine, calls = harvest.commit_left, []

    def and_more(*arguments):
        genuine(*arguments)
        calls.append(1)
        (files_in(item) / f"{len(calls)}.txt").write_text("more\n")

    monkeypatch.setattr(harvest, "commit_left", and_more)
    site.done(item)

    attempt = decided(site, run)

    assert len(calls) == 3
    assert attempt.state == "rejected"
    assert attempt.reason == (
        "dirty: not committed: 3.txt; not harvested: something writes on there"
    )
    assert harvested(attempt) == {"commit": attempt.head_commit, "files": 3}
    tree = tree_of(site.repository, str(attempt.head_commit))
    assert set(tree) == {"README.md", "0.txt", "1.txt", "2.txt"}


def test_what_is_staged_meanwhile_is_looked_at_first(site: Site, monkeypatch):
    run = site.open_run(config=Config(setup=Setup("echo secret >.env"), harvest=True))
    site.add(run, "a")
    item = site.dispatch(run)["a"]
    (files_in(item) / "new.txt").write_text("new\n")
    genuine = harvest._tree_with

    def staged_just_now(*arguments):
        monkeypatch.undo()
        git(item["worktree"], "add", ".env")
        return genuine(*arguments)

    monkeypatch.setattr(harvest, "_tree_with", staged_just_now)
    site.done(item)

    attempt = decided(site, run)

    assert attempt.state == "rejected"
    assert "not harvested: set-up has made .env" in str(attempt.reason)
    assert git(site.repository, "rev-parse", item["branch"]) == item["base_commit"]


def test_a_file_in_the_place_of_a_folder_that_is_left_out_removes_nothing(site: Site, run):
    commit(site.repository, "kept/a.txt", "a\n")
    commit(site.repository, "left/b.txt", "b\n")
    item = dispatched(site, run)
    git(item["worktree"], "sparse-checkout", "set", "kept")
    (files_in(item) / "left").write_text("a file now\n")
    site.done(item)

    attempt = decided(site, run)

    assert attempt.state == "rejected"
    assert git(site.repository, "show", f"{item['branch']}:left/b.txt") == "b"


def test_a_branch_that_somebody_moves_meanwhile_stays_where_that_was_put(
    site: Site, run, monkeypatch
):
    item = dispatched(site, run)
    (files_in(item) / "left.txt").write_text("left\n")
    genuine = harvest.marks.marked

    def first_the_other(*arguments, **options):
        monkeypatch.undo()
        git(item["worktree"], "commit", "-q", "--allow-empty", "-m", "Mine")
        return genuine(*arguments, **options)

    monkeypatch.setattr(harvest.marks, "marked", first_the_other)
    site.done(item)

    attempt = decided(site, run)

    assert (attempt.state, attempt.commits_ahead) == ("succeeded", 2)
    subjects = git(
        site.repository, "log", "--format=%s", f"{item['base_commit']}..{item['branch']}"
    )
    assert subjects.split("\n") == ["Do a", "Mine"]


def test_a_slow_leader_takes_no_check_for_the_worker(site: Site, run, monkeypatch):
    """It has seen the attempt before the other one began the checks, which make files."""
    item = dispatched(site, run, checks=["echo x >dirt.txt"])
    (files_in(item) / "new.txt").write_text("new\n")
    site.done(item)
    slow = site.leader()
    genuine = verify.submitted

    def then_the_other(desk, of_run):
        found = genuine(desk, of_run)
        if desk is slow.desk:
            monkeypatch.undo()
            site.scheduler.reconcile(run)
        return found

    monkeypatch.setattr(verify, "submitted", then_the_other)
    slow.reconcile(run)

    attempt = site.attempts(run, "a")[0]
    assert attempt.state == "succeeded"
    assert git(site.repository, "rev-parse", item["branch"]) == attempt.head_commit
    assert (files_in(item) / "dirt.txt").exists()


def test_beside_a_leader_that_is_at_it_another_does_something_else(site: Site, run, monkeypatch):
    item = dispatched(site, run)
    (files_in(item) / "new.txt").write_text("new\n")
    site.done(item)
    monkeypatch.setattr(verify, "_PATIENCE_SECONDS", 0.01)
    other, genuine, seen = site.leader(), harvest.commit_left, []

    def meanwhile(*arguments):
        seen.append(other.reconcile(run).verified)
        soon = timing.due(other.desk, run).due_wall_ms
        assert soon == site.clock.now().wall_ms + timing.VERIFIER_LOOK_MS, "should we be killed"
        genuine(*arguments)

    monkeypatch.setattr(harvest, "commit_left", meanwhile)
    site.scheduler.reconcile(run)

    assert seen == [0]
    assert site.attempts(run, "a")[0].commits_ahead == 1


# -- this machine's troubles -----------------------------------------------------------------


def test_a_store_that_takes_no_object_leaves_the_work_submitted(
    site: Site, run, tmp_path, monkeypatch
):
    item = dispatched(site, run)
    (files_in(item) / "new.txt").write_text("new\n")
    site.done(item)
    with monkeypatch.context() as meanwhile:
        program = tmp_path / "bin" / "git"
        program.parent.mkdir()
        program.write_text(
            "#!/bin/sh\n"
            'case " $* " in *" --add "*|*" hash-object "*)\n'
            "echo 'error: insufficient permission for adding an object to repository database'\\\n"
            " '.git/objects' >&2; exit 128;; esac\n"
            f"PATH='{os.environ['PATH']}' exec git \"$@\"\n"
        )
        program.chmod(0o755)
        meanwhile.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
        with refused("git_failed"):
            site.scheduler.reconcile(run)

    assert site.attempts(run, "a")[0].state == "submitted"
    assert (files_in(item) / "new.txt").read_text() == "new\n"
    assert decided(site, run).state == "succeeded"


# -- adopting --------------------------------------------------------------------------------


def test_what_an_ended_worker_has_left_is_adopted(site: Site, run):
    item = dispatched(site, run, max_attempts=1)
    (files_in(item) / "new.txt").write_text("new\n")
    site.fail(item, "I give up")
    site.scheduler.reconcile(run)

    done = site.scheduler.adopt(run, "a")

    attempt = site.attempts(run, "a")[0]
    assert harvested(attempt) == {"commit": attempt.head_commit, "files": 1}
    assert done["task"]["accepted_head"] == attempt.head_commit
    written = git(site.repository, "log", "-1", "--format=%an|%B", str(attempt.head_commit))
    assert written.strip() == "w1|Do a\n\nI give up"


def test_what_the_checks_of_an_adoption_leave_is_not_adopted(site: Site, run):
    item = dispatched(site, run, max_attempts=1, checks=["echo x >dirt.txt; false"])
    (files_in(item) / "new.txt").write_text("new\n")
    site.fail(item)
    site.scheduler.reconcile(run)

    with refused("work_rejected"):
        site.scheduler.adopt(run, "a")
    with refused("work_rejected") as caught:
        site.scheduler.adopt(run, "a", checks=False)

    assert caught.value.data["dirty_paths"] == ["dirt.txt"]


def test_what_cannot_be_harvested_is_not_adopted_either(site: Site, run):
    item = dispatched(site, run, max_attempts=1)
    git(item["worktree"], "switch", "-q", "-c", "mine")
    (files_in(item) / "new.txt").write_text("new\n")
    site.fail(item)
    site.scheduler.reconcile(run)

    with refused("work_rejected") as caught:
        site.scheduler.adopt(run, "a")

    assert "not harvested: HEAD is on mine" in caught.value.message


def test_the_next_attempt_after_a_conflict_is_harvested_as_the_last_one(site: Site, run):
    items = {key: dispatched(site, run, key) for key in "ab"}
    for key, item in items.items():
        (files_in(item) / "README.md").write_text(f"{key}\n")
        site.done(item)
    site.scheduler.reconcile(run)

    done = site.scheduler.integrate(run)

    (item,) = done.dispatched
    assert item["details"] == {"harvest": True}
