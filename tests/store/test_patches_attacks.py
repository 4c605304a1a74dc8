"""Ways in that a worker has who may write to git's own folder, and ways around those who judge:
nothing lands that was not allowed, and nothing that was refused is lost."""

import os
import shutil
import struct
from pathlib import Path

import pytest

from inbox_orch.orch.attempts import rework
from inbox_orch.orch.attempts.rework import Edit
from inbox_orch.orch.integration.rules import branch_of
from inbox_orch.orch.leader import patches as deeds
from inbox_orch.orch.patches import ledger
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.stages.decide import Answered
from inbox_orch.orch.views import patch_text
from inbox_orch.shared.errors import InboxOrchError
from support.buses import refused
from support.patches import Plain, disagreements
from support.runs import Site, commit, git
from support.stages import Course, add, agent

NO_BAD = {"forbid_paths": ["bad.txt"]}
ASKING = {"ask_paths": ["ci.yml"]}
_DAYS = 24 * 3600


@pytest.fixture
def plain(site: Site):
    yield Plain(site)
    assert disagreements(site) == []


def files(plain: Plain, revision: str | None = None) -> list[str]:
    names = ("ls-tree", "-r", "--name-only", revision or branch_of(plain.run))
    return git(plain.site.repository, *names).split()


def stored(plain: Plain, name: str) -> Path:
    return plain.site.repository / ".git/objects" / name[:2] / name[2:]


def write_over(plain: Plain, name: str, other: str) -> None:
    """From now on one object shows what another has."""
    stored(plain, name).unlink()
    shutil.copy(stored(plain, other), stored(plain, name))


# -- objects ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "policy, what", [(None, "file"), (NO_BAD, "folder")], ids=["file", "folder"]
)
def test_what_shows_something_else_than_its_name_says_is_refused(plain: Plain, policy, what: str):
    item = plain.open(policy, max_attempts=1) and plain.site.dispatch(plain.run)["a"]
    commit(item["worktree"], "in/good.txt", "good\n")
    path = ":in/good.txt" if what == "file" else ":in"
    good = git(item["worktree"], "rev-parse", f"HEAD{path}")
    git(item["worktree"], "reset", "--quiet", "--hard", "HEAD^")
    commit(item["worktree"], "in/good.txt" if what == "file" else "in/other.txt", "evil\n")
    evil = git(item["worktree"], "rev-parse", f"HEAD{path}")
    write_over(plain, evil, good)
    git(item["worktree"], "reset", "--quiet", "--hard")
    plain.site.done(item)
    plain.lead()

    assert plain.attempt.state == "rejected"
    assert f"not what their names say, in git's objects: {evil}" in str(plain.attempt.reason)


def test_what_is_written_over_once_it_is_accepted_is_not_brought_in(plain: Plain):
    plain.open(NO_BAD).handed_in(a_txt="good\n")
    plain.lead()
    evil = git(plain.site.repository, "hash-object", "-w", str(plain.site.repository / "README.md"))
    write_over(plain, git(plain.item["worktree"], "rev-parse", "HEAD:a.txt"), evil)

    with refused("git_failed") as error:
        plain.site.scheduler.integrate(plain.run)
    assert "not what their names say" in error.value.message
    assert git(plain.site.repository, "branch", "--list", branch_of(plain.run)) == ""


def test_whoever_approves_is_shown_nothing_else_than_what_comes_in(plain: Plain):
    plain.open(ASKING).handed_in(ci_yml="evil\n")
    plain.lead()
    (asked,) = plain.patches()
    shown = plain.site.repository / "README.md"
    harmless = git(plain.site.repository, "hash-object", "-w", str(shown))
    write_over(plain, git(plain.item["worktree"], "rev-parse", "HEAD:ci.yml"), harmless)

    with refused("git_failed"):
        patch_text.text_of(plain.site.scheduler.desk, plain.run, asked.patch)


def test_objects_that_went_away_with_where_they_were_borrowed_are_missed(plain: Plain, tmp_path):
    plain.open(NO_BAD)
    item = plain.site.dispatch(plain.run)["a"]
    git(tmp_path, "init", "--quiet", "--bare", "mine")
    lent = plain.site.repository / ".git/objects/info/alternates"
    lent.write_text(f"{tmp_path}/mine/objects\n")
    (tmp_path / "lent.txt").write_text("lent\n")
    name = git(tmp_path / "mine", "hash-object", "-w", str(tmp_path / "lent.txt"))
    git(item["worktree"], "update-index", "--add", "--cacheinfo", f"100644,{name},a.txt")
    git(item["worktree"], "commit", "--quiet", "--message", "Write a.txt")
    git(item["worktree"], "reset", "--quiet", "--hard")
    plain.site.done(item)
    plain.lead()
    assert plain.attempt.state == "succeeded"
    lent.unlink()

    with refused("git_failed"):
        plain.site.scheduler.integrate(plain.run)
    assert git(plain.site.repository, "branch", "--list", branch_of(plain.run)) == ""


def test_a_graft_makes_nobody_elses_work_go(plain: Plain):
    """By it the newest piece would build on all that was integrated, and have taken it out."""
    plain.open(NO_BAD)
    plain.site.add(plain.run, "b")
    items = plain.site.dispatch(plain.run)
    plain.site.deliver(items["b"], "b.txt")
    plain.lead()
    plain.site.scheduler.integrate(plain.run)
    tip = git(plain.site.repository, "rev-parse", branch_of(plain.run))
    plain.site.deliver(items["a"], "a.txt")
    plain.lead()
    grafts = plain.site.repository / ".git/info/grafts"
    grafts.write_text(f"{plain.attempt.head_commit} {tip}\n")
    plain.site.scheduler.integrate(plain.run)
    grafts.unlink()

    assert files(plain) == ["README.md", "a.txt", "b.txt"]


def test_a_graph_of_commits_that_says_otherwise_is_not_believed(plain: Plain):
    """What came and went again in between would come in with the history."""
    plain.open({**NO_BAD, "history": "keep"}, max_attempts=1)
    item = plain.site.dispatch(plain.run)["a"]
    worktree = item["worktree"]
    base = git(worktree, "rev-parse", "HEAD")
    commit(worktree, "bad.txt", "x\n")
    git(worktree, "rm", "--quiet", "bad.txt")
    second = commit(worktree, "b.txt", "x\n")
    head = commit(worktree, "a.txt", "x\n")
    git(worktree, "commit-graph", "write", "--reachable")
    graph = plain.site.repository / ".git/objects/info/commit-graph"
    content, names = bytearray(graph.read_bytes()), git(worktree, "rev-list", "--all").split()
    tree = bytes.fromhex(git(worktree, "rev-parse", f"{second}^{{tree}}"))
    # Tree, and where the parent is among all (gitformat-commit-graph(5), CDAT).
    struct.pack_into("!I", content, content.index(tree) + len(tree), sorted(names).index(base))
    graph.chmod(0o644)
    graph.write_bytes(content)
    assert git(worktree, "rev-list", "--count", f"{base}..{head}") == "2"
    plain.site.done(item)
    plain.lead()

    assert plain.attempt.state == "rejected"
    assert "bad.txt may not be changed" in str(plain.attempt.reason)


@pytest.mark.parametrize("where", ["header", "behind"])
def test_a_key_in_a_commit_that_git_does_not_show_is_found(plain: Plain, where: str):
    plain.open({"secrets": "deny", "history": "keep"}, max_attempts=1)
    item, key = plain.site.dispatch(plain.run)["a"], f"AKIA{'Z' * 16}"
    commit(item["worktree"], "a.txt", "x\n")
    raw = git(item["worktree"], "cat-file", "commit", "HEAD")
    head, _, message = raw.partition("\n\n")
    shown = f"{head}\nnote {key}\n\n{message}\n" if where == "header" else f"{raw}\n\0{key}\n"
    (plain.site.folder / "raw").write_text(shown)
    words = ("hash-object", "-t", "commit", "--literally", "-w", str(plain.site.folder / "raw"))
    git(item["worktree"], "update-ref", "HEAD", git(item["worktree"], *words))
    plain.site.done(item)
    plain.lead()

    assert plain.attempt.state == "rejected"
    assert "secrets" in str(plain.attempt.reason) and key not in str(plain.attempt.reason)


# -- the worktree ----------------------------------------------------------------------------


def two(plain: Plain) -> tuple[Path, Path]:
    """The worktrees of two attempts."""
    plain.open(NO_BAD, max_attempts=1)
    plain.site.add(plain.run, "b", max_attempts=1)
    plain.items = plain.site.dispatch(plain.run)
    first, second = (Path(plain.items[key]["worktree"]) for key in "ab")
    return first, second


@pytest.mark.parametrize("how", ["link", "file"])
def test_a_worktree_in_the_place_of_another_is_not_gone_back_to(plain: Plain, how: str):
    mine, theirs = two(plain)
    (mine / "mine.txt").write_text("mine\n")
    plain.site.fail(plain.items["a"], fatal=True)
    plain.lead()
    scheduler, run = plain.site.scheduler, plain.run
    kept = scheduler.checkpoint_make(*scheduler.attempt_named("a", run.name)).checkpoint
    (theirs / "theirs.txt").write_text("theirs\n")
    if how == "link":
        mine.rename(mine.with_name("moved"))
        mine.symlink_to(theirs)
    else:
        shutil.copy(theirs / ".git", mine / ".git")

    with refused("git_failed"):
        scheduler.checkpoint_restore(*scheduler.checkpoint_named(kept.name, run.name))
    assert (theirs / "theirs.txt").read_text() == "theirs\n"
    assert git(theirs, "symbolic-ref", "HEAD") == f"refs/heads/{plain.items['b']['branch']}"


def test_a_stage_in_the_worktree_of_another_attempt_is_somebodys_to_decide(site: Site):
    run = site.open_run(config=Config(policy=NO_BAD))
    stages = (agent("work", max_visits=2, on_failure="work"), agent("more"))
    for key in "ab":
        add(site, run, key, *stages)
    site.dispatch(run)
    mine, theirs = (Course(site, run, key) for key in "ab")
    (theirs.worktree / "theirs.txt").write_text("theirs\n")
    mine.worktree.rename(mine.worktree.with_name("moved"))
    mine.worktree.symlink_to(theirs.worktree)
    mine.work(a_txt="a\n")

    assert mine.attempt.state == "blocked"
    (question,) = site.scheduler.questions(run)
    assert "another attempt" in str(question.message.body)
    assert (theirs.worktree / "theirs.txt").read_text() == "theirs\n"
    site.leader("boss").answer(run, "a", body="", decided=Answered("abandon"))
    mine.lead()
    assert mine.attempt.state == "failed"
    assert (theirs.worktree / "theirs.txt").read_text() == "theirs\n"


@pytest.mark.parametrize("name", ["commondir", "gitdir", "HEAD"])
def test_what_git_knows_of_a_worktree_leads_nowhere_else(plain: Plain, tmp_path: Path, name: str):
    plain.open(NO_BAD, max_attempts=1)
    item, main = plain.site.dispatch(plain.run)["a"], plain.site.repository
    shutil.copytree(main, tmp_path / "mine")
    bad = commit(item["worktree"], "bad.txt", "x\n")
    good = commit(tmp_path / "mine", "a.txt", "x\n")
    at = Path((Path(item["worktree"]) / ".git").read_text().removeprefix("gitdir: ").strip())
    told = {"commondir": f"{tmp_path}/mine/.git\n", "gitdir": f"{main}/.git\n", "HEAD": f"{good}\n"}
    (at / name).write_text(told[name])
    plain.site.done(item)
    before = git(main, "rev-parse", "main")
    plain.lead()

    assert plain.attempt.state in ("rejected", "lost")
    assert git(main, "rev-parse", "main") == before
    kept = git(main, "for-each-ref", "--contains", bad, "--format=%(refname)", "refs/orch")
    assert kept or name == "HEAD"


def test_a_branch_that_is_another_name_of_main_takes_no_text_there(plain: Plain):
    site = plain.site
    plain.run = site.open_run(config=Config(policy=NO_BAD))
    site.add(plain.run, "a", hands_in="text", max_attempts=1)
    item = site.dispatch(plain.run)["a"]
    main = git(site.repository, "rev-parse", "main")
    git(site.repository, "symbolic-ref", f"refs/heads/{item['branch']}", "refs/heads/main")
    payload = '{"edits": [{"path": "bad.txt", "content": "x"}]}'
    good = payload.replace("bad.txt", "good.txt")
    site.worker.done(item["thread"], site.claim(item), body="done", payload=good)
    plain.lead()

    assert git(site.repository, "rev-parse", "main") == main
    assert plain.attempt.state == "rejected"


# -- names -----------------------------------------------------------------------------------


def test_names_of_refs_confuse_nobody(plain: Plain):
    plain.open(NO_BAD, max_attempts=1)
    plain.site.add(plain.run, "b", max_attempts=1)
    items = plain.site.dispatch(plain.run)
    bad = commit(items["b"]["worktree"], "bad.txt", "x\n")
    good = commit(items["a"]["worktree"], "a.txt", "x\n")
    branch, base = items["a"]["branch"], git(plain.site.repository, "rev-parse", "main")
    names = ("heads/HEAD", f"heads/{good}", f"tags/{good}", f"heads/{base}", "tags/main")
    for name in (*names, f"tags/{branch}", f"tags/{branch_of(plain.run)}", "tags/HEAD"):
        git(plain.site.repository, "update-ref", f"refs/{name}", bad)
    for key in "ab":
        plain.site.done(items[key])
    plain.lead()
    plain.site.scheduler.integrate(plain.run, onto="main")

    assert plain.site.states(plain.run) == {"a": "succeeded", "b": "failed"}
    assert files(plain, "refs/heads/main") == ["README.md", "a.txt"]


def test_what_is_to_be_done_by_hand_names_the_branch_and_no_tag_of_its_name(plain: Plain):
    plain.open(NO_BAD, max_attempts=1).handed_in(a_txt="x\n")
    plain.lead()
    (plain.site.repository / "README.md").write_text("not committed\n")
    git(plain.site.repository, "tag", branch_of(plain.run))
    done = plain.site.scheduler.integrate(plain.run, onto="main")

    assert done.onto["state"] == "checked_out"
    assert done.onto["command"].endswith(f"--ff-only refs/heads/{branch_of(plain.run)}")


def test_numbers_that_are_none_name_nothing(plain: Plain):
    plain.open(NO_BAD).handed_in(a_txt="x\n")
    plain.lead()
    scheduler, run = plain.site.scheduler, plain.run
    numbers = ("9" * 9, "9" * 40, "-1", "1e3", "٣")
    for name in (name for n in numbers for name in (f"a/1/{n}", f"a/{n}/1", n)):
        with refused("not_found"), scheduler.database.snapshot() as snapshot:
            ledger.named(snapshot, run, name)
        with pytest.raises(InboxOrchError, match=r"names no checkpoint|there is no "):
            scheduler.checkpoint_named(name, run.name)


# -- time, and what is said in between -------------------------------------------------------


def test_a_clock_that_is_put_back_changes_nothing(plain: Plain):
    clock, site = plain.site.clock, plain.site
    plain.open({**ASKING, **NO_BAD, "min_reviewers": 2}, max_attempts=1)
    plain.handed_in(ci_yml="on: push\n", bad_txt="x\n")
    clock.jump_wall(-10 * _DAYS)
    plain.lead()
    (refused_one,) = plain.patches()
    assert refused_one.state == "quarantined"

    clock.jump_wall(-10 * _DAYS)
    deeds.release(site.leader("boss").desk, plain.run, refused_one.patch, "forbid_paths", "once")
    clock.jump_wall(-10 * _DAYS)
    site.scheduler.retry(plain.run, ["a"])
    plain.handed_in(ci_yml="on: push\n", bad_txt="x\n")
    plain.lead()
    assert plain.attempt.state == "blocked"
    for name in ("ada", "bob"):
        clock.jump_wall(-10 * _DAYS)
        plain.decide("approve", by=name)

    assert plain.attempt.state == "succeeded"
    site.scheduler.integrate(plain.run)
    assert files(plain) == ["README.md", "bad.txt", "ci.yml"]


def test_the_policy_of_a_task_is_not_taken_away_in_the_middle(plain: Plain):
    plain.run = plain.site.open_run(config=Config(policy={}))
    plain.site.add(plain.run, "a", policy=ASKING)
    plain.handed_in(ci_yml="on: push\n")
    for state in ("active", "blocked"):
        assert plain.state == state
        with refused("invalid_state"):
            rework.edit_task(plain.site.scheduler.desk, plain.run, "a", Edit(policy={}))
        plain.lead()


def test_work_that_conflicts_brings_in_nothing_that_is_forbidden(plain: Plain):
    plain.open(NO_BAD, max_attempts=1)
    plain.site.add(plain.run, "b", max_attempts=1)
    items = plain.site.dispatch(plain.run)
    for key in "ab":
        plain.site.deliver(items[key], "same.txt", f"{key}\n")
    plain.lead()
    done = plain.site.scheduler.integrate(plain.run)
    (conflict,) = done.conflicts
    key = conflict.piece.task.key
    again = {item["key"]: item for item in done.dispatched}[key]
    git(again["worktree"], "merge", "--quiet", "-X", "ours", items[key]["branch"])
    plain.site.deliver(again, "bad.txt")
    plain.lead()

    assert plain.site.attempts(plain.run, key)[-1].state == "rejected"
    plain.site.scheduler.integrate(plain.run)
    assert "bad.txt" not in files(plain)


@pytest.mark.parametrize("way", ["adopt", "reassign"])
def test_who_takes_over_takes_over_nothing_that_is_forbidden(plain: Plain, way: str):
    plain.open(NO_BAD, max_attempts=1)
    item = plain.site.dispatch(plain.run)["a"]
    commit(item["worktree"], "bad.txt", "x\n")
    scheduler = plain.site.scheduler
    if way == "adopt":
        plain.site.fail(item, fatal=True)
        plain.lead()
        with refused("work_rejected") as error:
            scheduler.adopt(plain.run, "a")
        assert "bad.txt may not be changed" in error.value.message
        return
    scheduler.reassign(plain.run, ["a"], "w2")
    again = plain.site.dispatch(plain.run)["a"]
    git(again["worktree"], "merge", "--quiet", item["branch"])
    plain.site.deliver(again, "a.txt")
    plain.lead()
    assert plain.attempt.state == "rejected"


# -- settings --------------------------------------------------------------------------------


def test_settings_and_attributes_that_a_worker_writes_hide_nothing(plain: Plain, tmp_path: Path):
    ran = tmp_path / "ran"
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {ran}\n")
    program.chmod(0o755)
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-merge", "post-index-change"):
        shutil.copy(program, hooks / name)
    plain.open({"max_lines": 3}, max_attempts=1)
    item = plain.site.dispatch(plain.run)["a"]
    commit(item["worktree"], "a.txt", "x\n" * 10)
    common = plain.site.repository / ".git"
    for name, value in (
        *(("core.fsmonitor", program), ("core.hooksPath", hooks), ("core.sshCommand", program)),
        *(("diff.external", program), ("core.pager", program), ("gpg.program", program)),
        *(("log.showSignature", "true"), ("core.bigFileThreshold", "1"), ("diff.noprefix", "1")),
    ):
        git(common, "config", "--file", "config", name, str(value))
    (common / "info").mkdir(exist_ok=True)
    (common / "info/attributes").write_text("* -diff binary\n")
    plain.site.done(item)
    plain.lead()

    assert plain.attempt.state == "rejected"
    assert "max_lines" in str(plain.attempt.reason)
    assert not ran.exists()


def test_marks_in_the_index_hide_nothing_of_a_harvest(plain: Plain):
    commit(plain.site.repository, "other.txt", "one\n")
    policy = {"forbid_paths": ["README.md", "other.txt"]}
    plain.open(policy, max_attempts=1, harvest=True)
    item = plain.site.dispatch(plain.run)["a"]
    marks = {"README.md": "--assume-unchanged", "other.txt": "--skip-worktree"}
    for name, mark in marks.items():
        git(item["worktree"], "update-index", mark, name)
        Path(item["worktree"], name).write_text("other\n")
    plain.site.done(item)
    plain.lead()

    assert plain.attempt.state == "rejected"
    assert "README.md and 1 more may not be changed" in str(plain.attempt.reason)


def test_variables_of_whoever_calls_lead_nowhere_else(plain: Plain, monkeypatch, tmp_path: Path):
    plain.open(NO_BAD, max_attempts=1).handed_in(bad_txt="x\n")
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_WORK_TREE"):
        monkeypatch.setenv(name, str(tmp_path / "elsewhere"))
    monkeypatch.setenv("GIT_ALTERNATE_OBJECT_DIRECTORIES", str(tmp_path))
    monkeypatch.setenv("GIT_GRAFT_FILE", str(tmp_path / "grafts"))
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.hooksPath")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", str(tmp_path))
    plain.lead()
    assert plain.attempt.state == "rejected"
    assert not (tmp_path / "elsewhere").exists()
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        if "AUTHOR" not in name and "COMMITTER" not in name:
            monkeypatch.delenv(name)
