"""Work that is handed in as text: by a worker without files, or by somebody who was not asked."""

import json
import os
from pathlib import Path

import pytest

from inbox_orch.orch.attempts import bring_in, submit
from inbox_orch.orch.git import bringing
from inbox_orch.orch.patches import rows as patches
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.views import patch_text
from inbox_orch.shared.store import kept_files
from support.buses import refused
from support.runs import Site, commit, git

DIFF = """\
--- a/README.md
+++ b/README.md
@@ -1 +1 @@
-A project.
+A better project.
"""
EDITS = [{"path": "README.md", "old": "A project", "new": "A better project"}]


@pytest.fixture
def run(site: Site):
    return site.open_run()


def answer(site: Site, run, payload, key: str = "a", *, attach=(), **options) -> str:
    """A worker without files answers; the state of its attempt then."""
    site.add(run, key, hands_in="text", **options)
    item = site.dispatch(run)[key]
    token = site.claim(item)
    given = payload if isinstance(payload, str) else json.dumps(payload)
    site.worker.done(item["thread"], token, body="Better.", payload=given, attach=attach)
    site.scheduler.reconcile(run)
    return str(site.attempts(run, key)[-1].state)


def accepted_file(site: Site, run, name: str = "README.md", key: str = "a") -> str:
    return git(site.repository, "show", f"{site.task(run, key).accepted_head}:{name}")


def patches_of(site: Site, attempt) -> list:
    with site.scheduler.database.snapshot() as snapshot:
        return patches.of_attempt(snapshot, attempt.id)


@pytest.mark.parametrize("payload", [{"patch": DIFF}, {"edits": EDITS}])
def test_what_a_worker_answers_is_brought_in_and_accepted_in_its_name(site, run, payload):
    assert answer(site, run, payload, checks=["grep -q better README.md"]) == "succeeded"

    attempt = site.attempts(run, "a")[-1]
    assert accepted_file(site, run) == "A better project."
    shown = git(site.repository, "show", "-s", "--format=%an %P%n%B", str(attempt.head_commit))
    assert shown.split("\n")[0] == f"w1 {attempt.base_commit}"
    assert "Better." in shown
    assert git(Path(attempt.worktree_path), "status", "--porcelain") == ""


def test_the_brief_says_how_text_is_handed_in(site: Site, run):
    site.add(run, "a", hands_in="text")
    brief = site.dispatch(run)["a"]["brief"]

    assert '{"patch": DIFF}' in brief and "--payload-file" in brief and "Commit there" not in brief


def test_whoever_writes_it_down_and_however_the_accepted_tree_is_the_same(site: Site, run):
    """Edits in an answer, files that are left, a commit."""
    answer(site, run, {"edits": EDITS})
    site.add(run, "left", harvest=True)
    site.add(run, "committed")
    items = site.dispatch(run)
    (Path(items["left"]["worktree"]) / "README.md").write_text("A better project.\n")
    site.done(items["left"])
    commit(items["committed"]["worktree"], "README.md", "A better project.\n")
    site.done(items["committed"])
    site.scheduler.reconcile(run)

    heads = [site.task(run, key).accepted_head for key in ("a", "left", "committed")]
    assert len({git(site.repository, "rev-parse", f"{head}^{{tree}}") for head in heads}) == 1


def test_an_artifact_may_have_it(site: Site, run, tmp_path):
    (tmp_path / "mine.diff").write_text(DIFF)
    payload = {"patch": {"artifact": "mine.diff"}}

    assert answer(site, run, payload, attach=[str(tmp_path / "mine.diff")]) == "succeeded"
    assert accepted_file(site, run) == "A better project."


@pytest.mark.parametrize(
    "payload, said",
    [
        ({"patch": f"Here it is:\n{DIFF}"}, "patch_format: line 1"),
        ({"patch": DIFF.replace("A project", "No project")}, "patch_does_not_apply"),
        ({"edits": [{"path": "README.md", "old": "A projekt", "new": "x"}]}, "edit_not_found"),
        ({"patch": {"artifact": "none.diff"}}, "patch_format: it names an artifact"),
        ({"patch": DIFF, "edits": EDITS}, "patch_format"),
        ({"patch": 7}, "patch_format"),
        ({"cost": 1}, "patch_format: the result has neither"),
    ],
)
def test_what_fits_nothing_is_rejected_with_its_reason_and_changes_nothing(
    site: Site, run, payload, said
):
    answer(site, run, payload, max_attempts=1)

    attempt = site.attempts(run, "a")[-1]
    assert attempt.state == "rejected" and str(attempt.reason).startswith(said)
    assert git(attempt.worktree_path, "status", "--porcelain") == ""
    assert git(attempt.worktree_path, "rev-parse", "HEAD") == attempt.base_commit


def test_the_next_worker_is_told_why(site: Site, run):
    answer(site, run, {"patch": DIFF.replace("A project", "No project")}, max_attempts=2)
    site.clock.advance(3600)
    item = site.dispatch(run)["a"]

    assert "patch_does_not_apply" in site.scheduler.bus.messages(item["thread"])[0].body


def test_a_file_that_lies_ignored_in_the_worktree_is_not_written_over(site: Site, tmp_path):
    (site.repository / ".env").write_text("TOKEN=mine\n")
    commit(site.repository, ".gitignore", ".env\n")
    run = site.open_run(config=Config(copy=(".env",)))
    patch = "--- /dev/null\n+++ b/.env\n@@ -0,0 +1 @@\n+TOKEN=theirs\n"
    answer(site, run, {"patch": patch}, max_attempts=1)

    attempt = site.attempts(run, "a")[-1]
    assert ".env is there already in its worktree" in str(attempt.reason)
    assert (Path(attempt.worktree_path) / ".env").read_text() == "TOKEN=mine\n"


def test_what_the_policy_denies_is_never_in_the_worktree_and_stays(site: Site):
    run = site.open_run(config=Config(policy={"forbid_paths": ["README.md"]}))
    answer(site, run, {"patch": DIFF}, max_attempts=1)

    attempt = site.attempts(run, "a")[-1]
    (patch,) = patches_of(site, attempt)
    assert attempt.state == "rejected" and str(attempt.reason).startswith("policy: ")
    assert git(attempt.worktree_path, "rev-parse", "HEAD") == attempt.base_commit
    assert patch.way == "diff"
    assert Path(site.scheduler.bus.artifacts.path(patch.text)).read_bytes() == DIFF.encode()


class Died(BaseException):
    """What a process ends with, here."""


STEPS = [
    (bring_in, "kept"),
    (bring_in, "commit_made"),
    (bringing, "bring"),
    (bringing.integrating, "fast_forward"),
    (bringing.integrating, "_merged_there"),
]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("where", STEPS, ids=[name for _, name in STEPS])
def test_whoever_comes_next_brings_it_in_once(site: Site, run, where, after, monkeypatch):
    module, name = where
    genuine = getattr(module, name)

    def died(*arguments, **named):
        if after:
            genuine(*arguments, **named)
        raise Died

    with monkeypatch.context() as dying:
        dying.setattr(module, name, died)
        with pytest.raises(Died):
            answer(site, run, {"patch": DIFF})
    site.scheduler.reconcile(run)

    attempt = site.attempts(run, "a")[-1]
    assert attempt.state == "succeeded"
    assert accepted_file(site, run) == "A better project."
    ahead = f"{attempt.base_commit}..{attempt.head_commit}"
    assert git(site.repository, "rev-list", "--count", ahead) == "1"
    assert len(patches_of(site, attempt)) == 1


# -- handed in by somebody ------------------------------------------------------------------


def hand_in(site: Site, run, content: str = DIFF, caller: str = "ann", **options):
    leader = site.leader(caller)
    return submit.submit(leader.desk, run, "a", content.encode(), **options)


def test_what_is_submitted_is_an_attempt_in_the_name_of_who_did_it(site: Site, run):
    site.add(run, "a")
    done = hand_in(site, run)

    assert (done.attempt.state, done.task.state) == ("succeeded", "succeeded")
    assert accepted_file(site, run) == "A better project."
    assert (
        git(site.repository, "show", "-s", "--format=%an", str(done.attempt.head_commit)) == "ann"
    )
    (patch,) = patches_of(site, done.attempt)
    assert (done.patch, patch.author, patch.way) == ("a/1/1", "ann", "diff")


def test_its_checks_are_run_by_the_next_leader(site: Site, run):
    site.add(run, "a", checks=["grep -q better README.md"])
    assert hand_in(site, run).attempt.state == "submitted"
    site.scheduler.reconcile(run)

    assert site.states(run) == {"a": "succeeded"}


def test_what_lies_uncommitted_in_the_main_working_tree_may_be_handed_in(site: Site, run):
    (site.repository / "README.md").write_text("A better project.\n")
    site.add(run, "a")
    done = hand_in(site, run, git(site.repository, "diff") + "\n")

    assert done.attempt.state == "succeeded"
    assert (site.repository / "README.md").read_text() == "A better project.\n"


def test_edits_may_be_submitted(site: Site, run):
    site.add(run, "a")

    assert hand_in(site, run, json.dumps({"edits": EDITS})).attempt.state == "succeeded"


def test_the_same_key_hands_it_in_once(site: Site, run):
    site.add(run, "a")
    first = hand_in(site, run, key="k")
    again = hand_in(site, run, key="k")

    assert (first.replayed, again.replayed) == (False, True)
    assert again.attempt.id == first.attempt.id
    with refused("key_conflict"):
        hand_in(site, run, DIFF.replace("better", "good"), key="k")


@pytest.mark.parametrize(
    "content, code",
    [
        (f"Look:\n{DIFF}", "patch_format"),
        ("{no json", "patch_format"),
        (DIFF.replace("A project", "No project"), "patch_does_not_apply"),
        (json.dumps({"edits": [{"path": "README.md", "old": "x", "new": "y"}]}), "edit_not_found"),
    ],
)
def test_what_fits_nothing_makes_no_attempt(site: Site, run, content, code):
    site.add(run, "a")
    with refused(code):
        hand_in(site, run, content)
    assert site.attempts(run, "a") == [] and site.states(run) == {"a": "ready"}


def test_nothing_is_submitted_beside_a_live_attempt(site: Site, run):
    site.add(run, "a")
    site.dispatch(run)
    with refused("live_attempt"):
        hand_in(site, run)


def test_what_is_denied_is_kept_and_named(site: Site):
    run = site.open_run(config=Config(policy={"forbid_paths": ["README.md"]}))
    site.add(run, "a")
    done = hand_in(site, run)

    assert (done.attempt.state, done.state) == ("rejected", "quarantined")
    assert "README.md" in str(done.attempt.reason)


def test_what_replaces_a_refused_patch_says_so(site: Site):
    run = site.open_run(config=Config(policy={"max_lines": 2}))
    site.add(run, "a")
    long = DIFF.replace("@@ -1 +1 @@", "@@ -1 +1,2 @@") + "+And longer.\n"
    refused_one = hand_in(site, run, long)
    assert refused_one.state == "quarantined"
    site.clock.advance(3600)
    done = hand_in(site, run, replaces=refused_one.patch)

    (before,), (patch,) = patches_of(site, refused_one.attempt), patches_of(site, done.attempt)
    assert done.attempt.state == "succeeded" and patch.replaces == before.id


def test_a_patch_of_another_task_is_not_replaced(site: Site):
    run = site.open_run(config=Config(policy={"forbid_paths": ["README.md"]}))
    site.add(run, "a", "b")
    done = hand_in(site, run)
    with refused("invalid_state"):
        submit.submit(site.scheduler.desk, run, "b", DIFF.encode(), replaces=done.patch)


def test_a_text_that_has_come_and_is_not_taken_in_yet_survives_pruning(site: Site, run):
    site.add(run, "a", hands_in="text")
    item = site.dispatch(run)["a"]
    payload = json.dumps({"edits": EDITS})
    site.worker.done(item["thread"], site.claim(item), body="Better.", payload=payload)
    assert site.scheduler.status(run).rows[0].attempt.state == "submitted"

    site.clock.advance(90 * 24 * 3600)
    assert site.scheduler.bus.prune(30).unread == (item["thread"],)
    site.scheduler.reconcile(run)
    assert accepted_file(site, run) == "A better project."
    assert (site.scheduler.bus.prune(30).threads, site.task(run, "a").state) == (1, "succeeded")


def test_a_text_survives_pruning_and_is_exported_byte_for_byte(site: Site, run):
    content = DIFF.rstrip("\n")  # the missing end is part of what was handed in
    site.add(run, "a")
    done = hand_in(site, run, content)
    site.scheduler.close_run(run)
    artifacts = site.scheduler.bus.artifacts
    for _, path in artifacts.contents():
        os.utime(path, (0, 0))
    site.clock.advance(400 * 24 * 3600)
    site.scheduler.bus.prune(0, unread=True)

    (patch,) = patches_of(site, done.attempt)
    assert Path(artifacts.path(str(patch.text))).read_bytes() == content.encode()
    assert patch_text.text_of(site.scheduler.desk, run, patch) == (content.encode(), True)


def test_what_came_as_commits_is_exported_as_a_diff_that_can_be_submitted(site: Site, run):
    site.add(run, "a", "b")
    item = site.dispatch(run, "b")["b"]
    (Path(item["worktree"]) / "bin").write_bytes(bytes(range(256)))
    site.deliver(item, "new.txt")
    site.scheduler.reconcile(run)
    (patch,) = patches_of(site, site.attempts(run, "b")[-1])
    text, raw = patch_text.text_of(site.scheduler.desk, run, patch)
    done = submit.submit(site.scheduler.desk, run, "a", text)

    assert not raw and done.attempt.state == "succeeded"
    assert patches_of(site, done.attempt)[0].tree == patch.tree


def test_what_a_visit_puts_out_stays_until_its_run_is_closed(site: Site, run):
    stored = site.scheduler.bus.artifacts.add_bytes("lint.txt", b"E501\n")
    with site.scheduler.database.transaction() as tx:
        kept_files.keep(tx, stored, run.id, "output", tx.now.wall_ms)

    def pruned_away() -> bool:
        os.utime(site.scheduler.bus.artifacts.path(stored.sha256), (0, 0))
        site.scheduler.bus.prune(30)
        return site.scheduler.bus.artifacts.length(stored.sha256) is None

    day = 24 * 3600
    site.clock.advance(40 * day)
    assert not pruned_away()
    site.scheduler.close_run(run)
    site.clock.advance(29 * day)
    assert not pruned_away()
    site.clock.advance(2 * day)
    assert site.scheduler.bus.prune(30, dry_run=True).files == 1
    assert pruned_away()
