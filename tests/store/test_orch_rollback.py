"""An accepted patch is undone where work comes together: what came after it stays, nothing else is
touched, and what undoes it is a patch like any other."""

from pathlib import Path
from typing import Any

import pytest

from inbox_orch.orch.integration.rules import branch_of
from inbox_orch.orch.leader import patches as deeds
from inbox_orch.orch.patches import ledger
from inbox_orch.orch.patches import rows as patches
from inbox_orch.orch.patches.ledger import Word
from inbox_orch.orch.patches.model import Patch
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.model import Run
from inbox_orch.shared.errors import InboxOrchError
from support.accepted import patch_of
from support.buses import refused
from support.runs import Site, git

DELETES = {"deny": Config(policy={"deletes": "deny"}), "ask": Config(policy={"deletes": "ask"})}


def integrated(site: Site, *keys: str, **options: Any) -> Run:
    """Tasks, each of which has written a file of its name, accepted and brought together."""
    run = site.open_run(**options)
    site.add(run, *keys)
    for key, item in site.dispatch(run).items():
        site.deliver(item, f"{key}.txt", f"{key}\n")
    site.scheduler.reconcile(run)
    for key in keys:
        patch_of(site, run, key)
    site.scheduler.integrate(run)
    return run


def files(site: Site, run: Run, commit: str | None = None) -> set[str]:
    listed = git(site.repository, "ls-tree", "-r", "--name-only", commit or branch_of(run))
    return set(listed.split())


def state(site: Site, patch: Patch) -> str:
    with site.scheduler.database.snapshot() as snapshot:
        return ledger.said_of(snapshot, patch)


def reverses(site: Site, patch: Patch) -> list[Patch]:
    with site.scheduler.database.snapshot() as snapshot:
        every = patches.of_attempt(snapshot, patch.attempt_id)
    return [each for each in every if each.rollback_of == patch.id]


def of_others(site: Site) -> tuple[object, ...]:
    folder = site.repository
    refs = git(folder, "for-each-ref", "refs/heads/main", "refs/stash", "refs/tags")
    kept = [(folder / ".git" / name).read_bytes() for name in ("index", "HEAD", "config")]
    return refs, git(folder, "status", "--porcelain"), kept


def test_what_it_changed_is_taken_out_and_the_rest_stays(site: Site):
    run = integrated(site, "a", "b")
    patch, standing = patch_of(site, run, "a"), of_others(site)
    before = git(site.repository, "rev-parse", branch_of(run))
    done = site.scheduler.patch_rollback(run, "a/1/1", reason="it is slow")
    assert files(site, run) == {"README.md", "b.txt"}
    assert (done.name, done.before) == ("a/1/1", before)
    assert git(site.repository, "rev-parse", f"{done.tip}^") == before
    assert "it is slow" in git(site.repository, "log", "-1", "--format=%B", done.tip)
    assert state(site, patch) == "rolled_back"
    (reverse,) = reverses(site, patch)
    assert (reverse.way, reverse.head, state(site, reverse)) == ("reverse", done.tip, "committed")
    assert of_others(site) == standing
    assert site.open_intents(run) == []
    assert site.scheduler.doctor(verify=True).problems == 0


def test_it_does_not_come_in_again_and_another_branch_comes_along(site: Site):
    run = integrated(site, "a", "b")
    git(site.repository, "branch", "release")
    site.scheduler.integrate(run, onto="release")
    assert files(site, run, "release") == {"README.md", "a.txt", "b.txt"}
    site.scheduler.patch_rollback(run, "a/1/1")
    site.scheduler.integrate(run, onto="release")
    assert files(site, run, "release") == {"README.md", "b.txt"}


def test_what_undid_it_can_be_undone(site: Site):
    run = integrated(site, "a")
    done = site.scheduler.patch_rollback(run, "a/1/1")
    site.scheduler.patch_rollback(run, done.reverse_name)
    assert files(site, run) == {"README.md", "a.txt"}
    assert state(site, done.reverse) == "rolled_back"
    with refused("invalid_state"):
        site.scheduler.patch_rollback(run, "a/1/1")


def test_what_was_done_anew_comes_in_after_it(site: Site):
    run = integrated(site, "a")
    site.scheduler.patch_rollback(run, "a/1/1")
    site.scheduler.retry(run, ["a"], force=True)
    site.deliver(site.dispatch(run)["a"], "a.txt", "better\n")
    site.scheduler.reconcile(run)
    site.scheduler.integrate(run)
    assert git(site.repository, "show", f"{branch_of(run)}:a.txt") == "better"


def test_it_is_refused_with_whose_work_is_in_the_way(site: Site):
    run = integrated(site, "a")
    site.add(run, "b", depends_on=["a"])
    site.deliver(site.dispatch(run)["b"], "a.txt", "of b\n")
    site.scheduler.reconcile(run)
    site.scheduler.integrate(run)
    before = git(site.repository, "rev-parse", branch_of(run))
    with refused("patch_does_not_apply") as error:
        site.scheduler.patch_rollback(run, "a/1/1")
    assert error.value.details == {"paths": ["a.txt"], "built_on": ["b/1"]}
    assert "b/1" in error.value.message
    assert git(site.repository, "rev-parse", branch_of(run)) == before
    assert reverses(site, patch_of(site, run, "a")) == []


def test_what_builds_on_it_and_is_not_in_yet_is_named(site: Site):
    run = integrated(site, "a")
    site.add(run, "b", depends_on=["a"])
    site.deliver(site.dispatch(run)["b"], "b.txt", "b\n")
    site.scheduler.reconcile(run)
    done = site.scheduler.patch_rollback(run, "a/1/1")
    assert done.builds_on == ("b/1",)
    site.scheduler.integrate(run)
    assert files(site, run) == {"README.md", "b.txt"}


def test_what_is_only_accepted_is_given_up_by_trying_again(site: Site):
    run = site.open_run()
    site.add(run, "a")
    site.deliver(site.dispatch(run)["a"], "a.txt")
    site.scheduler.reconcile(run)
    patch = patch_of(site, run, "a")
    with refused("invalid_state") as error:
        site.scheduler.patch_rollback(run, "a/1/1")
    assert "orch retry a --force" in str(error.value.hint)
    assert state(site, patch) == "committed"


def test_nothing_is_left_of_what_was_changed_back(site: Site):
    run = integrated(site, "a")
    site.add(run, "b", depends_on=["a"])
    item = site.dispatch(run)["b"]
    git(item["worktree"], "rm", "--quiet", "a.txt")
    site.deliver(item, "b.txt", "b\n")
    site.scheduler.reconcile(run)
    site.scheduler.integrate(run)
    with refused("invalid_state") as error:
        site.scheduler.patch_rollback(run, "a/1/1")
    assert "nothing of a/1/1 is left" in error.value.message


def test_the_policy_holds_for_what_undoes(site: Site):
    run = integrated(site, "a", config=DELETES["deny"])
    patch, before = patch_of(site, run, "a"), git(site.repository, "rev-parse", branch_of(run))
    with refused("policy_denied") as error:
        site.scheduler.patch_rollback(run, "a/1/1")
    assert [each["rule"] for each in error.value.details["objections"]] == ["deletes"]
    (reverse,) = reverses(site, patch)
    assert (state(site, patch), state(site, reverse)) == ("committed", "quarantined")
    assert git(site.repository, "rev-parse", branch_of(run)) == before


def test_what_is_asked_for_is_done_once_somebody_approves(site: Site):
    run = integrated(site, "a", config=DELETES["ask"])
    patch = patch_of(site, run, "a")
    with refused("approval_needed") as error:
        site.scheduler.patch_rollback(run, "a/1/1")
    (reverse,) = reverses(site, patch)
    assert (error.value.details["patch"], state(site, reverse)) == (reverse.id, "queued")
    with refused("approval_needed"):
        site.scheduler.patch_rollback(run, "a/1/1")
    with site.scheduler.database.transaction() as tx:
        ledger.say(tx, site.scheduler.desk, run, reverse, Word("approval", "approved", "ann"))
    assert site.scheduler.patch_rollback(run, "a/1/1").reverse == reverse
    assert files(site, run) == {"README.md"}


@pytest.mark.parametrize("says", ["deny", "ask"])
def test_what_waits_or_was_refused_is_kept_though_git_prunes(site: Site, says: str):
    run = integrated(site, "a", config=DELETES[says])
    patch = patch_of(site, run, "a")
    with pytest.raises(InboxOrchError):
        site.scheduler.patch_rollback(run, "a/1/1")
    (reverse,) = reverses(site, patch)
    git(site.repository, "gc", "--quiet", "--prune=now")
    assert files(site, run, reverse.head) == {"README.md"}


def test_an_approval_does_not_hold_for_another_commit(site: Site):
    run = integrated(site, "a", config=DELETES["ask"])
    patch = patch_of(site, run, "a")
    with refused("approval_needed"):
        site.scheduler.patch_rollback(run, "a/1/1")
    (asked,) = reverses(site, patch)
    with site.scheduler.database.transaction() as tx:
        ledger.say(tx, site.scheduler.desk, run, asked, Word("approval", "approved", "ann"))
    site.add(run, "b")
    site.deliver(site.dispatch(run)["b"], "b.txt")
    site.scheduler.reconcile(run)
    site.scheduler.integrate(run)
    with refused("approval_needed"):
        site.scheduler.patch_rollback(run, "a/1/1")
    assert [state(site, each) for each in reverses(site, patch)] == ["dropped", "queued"]


def test_work_that_is_adopted_again_is_not_accepted_with_what_would_undo_it(site: Site):
    run = integrated(site, "a", config=DELETES["ask"])
    with refused("approval_needed"):
        site.scheduler.patch_rollback(run, "a/1/1")
    (asked,) = reverses(site, patch_of(site, run, "a"))
    with site.scheduler.database.transaction() as tx:
        ledger.say(tx, site.scheduler.desk, run, asked, Word("approval", "approved", "ann"))
    site.scheduler.retry(run, ["a"], force=True)
    site.scheduler.adopt(run, "a", number=1)
    assert state(site, asked) == "validated"


def test_a_branch_that_is_checked_out_comes_along_or_is_left_alone(site: Site, tmp_path: Path):
    run = integrated(site, "a")
    looked_at = tmp_path / "looked-at"
    git(site.repository, "worktree", "add", "--quiet", str(looked_at), branch_of(run))
    (looked_at / "a.txt").write_text("mine\n")
    with refused("dirty_repository"):
        site.scheduler.patch_rollback(run, "a/1/1")
    assert (looked_at / "a.txt").read_text() == "mine\n"
    assert site.open_intents(run) == []
    git(looked_at, "checkout", "--quiet", "a.txt")
    site.scheduler.patch_rollback(run, "a/1/1")
    assert not (looked_at / "a.txt").exists()
    assert git(looked_at, "status", "--porcelain") == ""


@pytest.mark.parametrize("reason", ["", " ", "\x1b[31m", "x" * 1001])
def test_a_reason_is_text(site: Site, reason: str):
    run = site.open_run()
    with refused("usage"):
        site.scheduler.patch_rollback(run, "a/1/1", reason=reason)


def test_a_branch_that_moves_meanwhile_is_looked_at_again(site: Site, monkeypatch):
    from inbox_orch.orch.integration import branch

    run = integrated(site, "a", "b")
    genuine, tries = branch.moved, []

    def overtaken(repository, name, before, tip):
        if not tries:
            tries.append(tip)
            other = git(
                site.repository, "commit-tree", "-p", before, "-m", "x", f"{before}^{{tree}}"
            )
            git(site.repository, "update-ref", f"refs/heads/{name}", other)
        return genuine(repository, name, before, tip)

    monkeypatch.setattr(branch, "moved", overtaken)
    done = site.scheduler.patch_rollback(run, "a/1/1")
    assert git(site.repository, "log", "-1", "--format=%s", f"{done.tip}^") == "x"
    assert [state(site, each) for each in reverses(site, done.undone)] == ["dropped", "committed"]
    assert files(site, run) == {"README.md", "b.txt"}


# -- what was released ---------------------------------------------------------------------------


def let_in(site: Site, run: Run, key: str, content: str, *after: str) -> None:
    """A task changes README.md, which the policy forbids; somebody releases it."""
    site.add(run, key, max_attempts=1, depends_on=after)
    site.deliver(site.dispatch(run)[key], "README.md", content)
    site.scheduler.reconcile(run)
    release(site, run, f"{key}/1/1")
    site.scheduler.adopt(run, key)
    site.scheduler.integrate(run)


def release(site: Site, run: Run, name: str) -> None:
    desk = site.leader("boss").desk
    with desk.database.snapshot() as snapshot:
        patch = ledger.named(snapshot, run, name)
    deeds.release(desk, run, patch, "forbid_paths", "it has to")


FORBIDS = Config(policy={"forbid_paths": ["README.md"]})
LINES = "A project.\n" + "".join(f"{n}\n" for n in range(20))
CHANGED = LINES.replace("19\n", "nineteen\n")


def test_what_was_released_is_taken_back_without_another_release(site: Site):
    run = site.open_run(config=FORBIDS)
    before = git(site.repository, "rev-parse", "main:README.md")
    let_in(site, run, "a", "Another project.\n")
    done = site.scheduler.patch_rollback(run, "a/1/2")
    assert git(site.repository, "rev-parse", f"{branch_of(run)}:README.md") == before
    with site.scheduler.database.snapshot() as snapshot:
        said = patches.entries_of(snapshot, done.reverse.id)[0]
    assert (said.outcome, said.found["released"]) == (
        "allowed", [{"rule": "forbid_paths", "by": "boss"}],
    )  # fmt: skip
    with refused("policy_denied"):  # what was taken back does not come in again by itself
        site.scheduler.patch_rollback(run, done.reverse_name)


def test_what_is_no_exact_reverse_needs_a_release_of_its_own(site: Site):
    run = site.open_run(config=FORBIDS)
    let_in(site, run, "a", LINES)
    let_in(site, run, "b", CHANGED, "a")
    patch = patch_of(site, run, "b")
    let_in(site, run, "c", CHANGED.replace("2\n", "two\n", 1), "b")
    with refused("policy_denied") as error:
        site.scheduler.patch_rollback(run, "b/1/2")
    name = error.value.details["name"]
    assert f"`orch patch release {name} --rule forbid_paths --reason TEXT`" in str(
        error.value.details["objections"]
    )
    release(site, run, name)
    done = site.scheduler.patch_rollback(run, "b/1/2")
    assert "19\n" in git(site.repository, "show", f"{branch_of(run)}:README.md") + "\n"
    assert "two" in git(site.repository, "show", f"{branch_of(run)}:README.md")
    assert (state(site, patch), done.reverse_name) == ("rolled_back", "b/1/4")


def test_a_release_counts_after_whoever_undid_it_has_died(site: Site, monkeypatch):
    from inbox_orch.orch.integration import roll_back

    run = site.open_run(config=FORBIDS)
    let_in(site, run, "a", LINES)
    let_in(site, run, "b", CHANGED, "a")
    let_in(site, run, "c", CHANGED.replace("2\n", "two\n", 1), "b")
    with refused("policy_denied"):
        site.scheduler.patch_rollback(run, "b/1/2")
    release(site, run, "b/1/3")
    monkeypatch.setattr(roll_back, "_bring_in", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        site.scheduler.patch_rollback(run, "b/1/2")
    monkeypatch.undo()
    assert site.scheduler.patch_rollback(run, "b/1/2").reverse_name == "b/1/4"
