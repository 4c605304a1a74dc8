"""Checks: what they see, how they end, what becomes of the attempt and who is told."""

import functools
import json
import os
import shutil
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from inbox_orch.orch.attempts import borrow, fold, judge, keep
from inbox_orch.orch.attempts import verify as verifying
from inbox_orch.orch.gates import running
from inbox_orch.orch.journal import rows as journal_rows
from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.model import Limits
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.processes import processes
from inbox_orch.shared.processes.signals import Signalled
from support.buses import refused
from support.limits import limited_once_written
from support.runs import Site, commit, git, only_for
from support.timing import PATIENCE_SECONDS


@pytest.fixture
def run(site: Site):
    return site.open_run()


def submitted(site: Site, run, *checks: str, key: str = "a", **options):
    """Task `a` with these checks, done with one commit; the dispatched item."""
    site.add(run, key, checks=checks, **options)
    item = site.dispatch(run)[key]
    site.deliver(item, f"{key}.txt")
    return item


def decided(site: Site, run, key: str = "a"):
    """The newest attempt after reconciling."""
    site.scheduler.reconcile(run)
    return site.attempts(run, key)[-1]


def results(attempt) -> list[dict]:
    return attempt.as_json()["details"]["checks"]


def test_work_whose_checks_pass_is_accepted(site: Site, run):
    submitted(site, run, "test -f a.txt", "echo fine")

    attempt = decided(site, run)

    assert attempt.state == "succeeded"
    assert [c["passed"] for c in results(attempt)] == [True, True]
    assert site.task(run, "a").accepted_head == attempt.head_commit
    assert site.open_intents(run) == []
    assert site.scheduler.doctor(verify=True).problems == 0


def test_a_failed_check_is_rejected_with_its_status_and_the_end_of_its_output(site: Site, run):
    submitted(site, run, "echo one; echo two >&2; exit 3", "echo never >ran.txt")

    attempt = decided(site, run)

    assert attempt.state == "rejected"
    assert attempt.reason == ("checks: `echo one; echo two >&2; exit 3` ended with exit status 3")
    (only,) = results(attempt)
    assert (only["exit_status"], only["signal"], only["timed_out_seconds"]) == (3, None, None)
    assert only["output_tail"] == "one\ntwo\n"
    assert not Path(str(attempt.worktree_path), "ran.txt").exists(), "the first failure ends it"
    assert site.task(run, "a").work_failures == 1
    assert site.standing(run, "a").state == "backing_off"
    assert Path(str(attempt.worktree_path)).is_dir()
    assert attempt.branch is not None
    assert git(site.repository, "rev-parse", attempt.branch) == attempt.head_commit


def test_a_check_killed_by_a_signal_is_told_so(site: Site, run):
    submitted(site, run, "kill -9 $$")

    attempt = decided(site, run)

    assert attempt.reason == "checks: `kill -9 $$` was killed by signal 9 (SIGKILL)"


def test_a_check_over_its_limit_ends_with_all_its_processes(
    site: Site, run, tmp_path: Path, monkeypatch
):
    mark = tmp_path / "mark"
    limited_once_written(monkeypatch, mark)
    command = f"trap '' TERM; (trap '' TERM; sleep 600) & echo $! >{mark}; sleep 600"
    submitted(site, run, command, limits=Limits(check_seconds=0.5))

    attempt = decided(site, run)

    assert attempt.state == "rejected"
    assert "was stopped after 0.5 s, its time limit" in str(attempt.reason)
    assert processes.start_time(int(mark.read_text())) is None


def test_a_grandchild_that_keeps_the_output_open_holds_nothing_up(site: Site, run):
    submitted(site, run, "(exec sleep 600) & echo passed")

    attempt = decided(site, run)

    assert attempt.state == "succeeded"


def test_a_check_reads_nothing_from_its_standard_input(site: Site, run):
    submitted(site, run, 'test -z "$(cat)"')

    assert decided(site, run).state == "succeeded"


def test_a_flood_of_output_is_kept_by_its_head_and_tail(site: Site, run):
    submitted(site, run, "echo first; yes | head -c 3000000; echo last; exit 1")

    attempt = decided(site, run)

    (only,) = results(attempt)
    assert only["output_bytes"] == 3_000_011
    assert len(only["output_tail"].encode()) < 5000
    assert only["output_tail"].endswith("last\n")
    assert only["output_tail"].startswith(
        "[the last of 3000011 bytes; see the artifact check-1.txt]"
    )
    with site.worker.artifacts.open(only["artifact_sha256"]) as file:
        content = file.read()
    assert content.startswith(b"first\n")
    assert content.endswith(b"last\n")
    assert b"[orch: " in content
    assert len(content) < 600_000


def test_the_output_is_attached_to_the_thread_and_the_worker_is_told(site: Site, run):
    item = submitted(site, run, "echo broken; exit 1")

    decided(site, run)

    messages = site.worker.messages(item["thread"])
    assert messages[-1].kind == "reply"
    assert messages[-1].sender == run.leader
    assert "exit status 1" in messages[-1].body
    assert "broken" in messages[-1].body
    assert [a.name for a in messages[-1].artifacts] == ["check-1.txt"]


def test_a_check_knows_what_it_is_about_and_nothing_of_the_callers_git(
    site: Site, run, monkeypatch: pytest.MonkeyPatch
):
    submitted(site, run, "env | sort; git rev-parse HEAD; exit 1")
    with monkeypatch.context() as patched:
        patched.setenv("GIT_DIR", str(site.folder / "elsewhere"))
        patched.setenv("GIT_INDEX_FILE", str(site.folder / "index"))
        patched.setenv("GIT_AUTHOR_DATE", "1970-01-01T00:00:00Z")
        patched.setenv("INBOX_TOKEN", "somebody's")

        attempt = decided(site, run)

    with site.worker.artifacts.open(results(attempt)[0]["artifact_sha256"]) as file:
        text = file.read().decode()
    known = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert known.keys().isdisjoint({"GIT_DIR", "GIT_INDEX_FILE", "GIT_AUTHOR_DATE", "INBOX_TOKEN"})
    assert text.splitlines()[-1] == attempt.head_commit
    assert known["ORCH_RUN"] == run.name
    assert (known["ORCH_TASK"], known["ORCH_ATTEMPT"]) == ("a", "1")
    assert known["ORCH_ATTEMPT_ID"] == attempt.id
    assert known["ORCH_HEAD_COMMIT"] == attempt.head_commit
    assert known["ORCH_BASE_COMMIT"] == attempt.base_commit
    assert known["ORCH_BRANCH"] == attempt.branch
    assert known["ORCH_WORKTREE"] == known["PWD"] == attempt.worktree_path
    assert known["INBOX_DB"] == site.scheduler.database.layout.database


def test_a_check_gets_the_configs_environment_and_its_secrets_are_masked(
    site: Site, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TOKEN", "s3cret-of-mine")
    run = site.open_run(config=Config(environment={"COLOUR": "blue"}, secrets=("TOKEN",)))
    # In two writes, so that it is cut in two on its way.
    halves = 'printf "%s" "$COLOUR s3cret-"; sleep 0.2; echo of-mine; echo $TOKEN; exit 1'
    submitted(site, run, halves)

    attempt = decided(site, run)

    (only,) = results(attempt)
    assert only["output_tail"] == "blue ***\n***\n"
    with site.worker.artifacts.open(only["artifact_sha256"]) as file:
        assert file.read() == b"blue ***\n***\n"


def test_a_check_that_dirties_the_tree_changes_nothing_of_the_verdict(site: Site, run):
    submitted(site, run, "echo built >built.txt; echo more >>a.txt")

    assert decided(site, run).state == "succeeded"


def test_a_check_that_moves_head_changes_nothing_of_what_is_accepted(site: Site, run):
    item = submitted(
        site, run, "git -c user.name=x -c user.email=x@x commit -q --allow-empty -m sneaked"
    )
    head = git(item["worktree"], "rev-parse", "HEAD")

    attempt = decided(site, run)

    assert (attempt.state, attempt.head_commit) == ("succeeded", head)
    assert site.task(run, "a").accepted_head == head
    assert git(site.repository, "rev-parse", f"refs/orch/heads/{attempt.id}") == head
    assert git(item["worktree"], "rev-parse", "HEAD") != head


def test_no_check_is_run_on_work_that_is_rejected_anyway(site: Site, run, tmp_path: Path):
    site.add(run, "a", checks=[f"touch '{tmp_path}/ran'"])
    item = site.dispatch(run)["a"]
    commit(item["worktree"], "a.txt", "text")
    Path(item["worktree"], "b.txt").write_text("forgotten")
    site.done(item)

    attempt = decided(site, run)

    assert attempt.reason == "dirty: not committed: b.txt"
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("verb", ["dispatch", "status", "ready", "questions", "wait", "reconcile"])
def test_who_only_looks_or_dispatches_runs_no_check(site: Site, run, tmp_path: Path, verb):
    submitted(site, run, f"touch '{tmp_path}/ran'")
    site.add(run, "b")
    scheduler = site.scheduler
    if verb == "wait":
        with refused("timeout"):
            scheduler.wait(run, until="run", wait_seconds=0, checks=False)
    elif verb == "reconcile":
        assert scheduler.reconcile(run, checks=False).unchecked == 1
    else:
        getattr(scheduler, verb)(run)

    assert not (tmp_path / "ran").exists()
    assert site.attempts(run, "a")[-1].state in ("offered", "submitted")


def test_a_dirty_tree_seen_by_a_dispatch_is_not_made_clean_by_waiting(site: Site, run):
    """What counts is how the tree stood when it was first looked at after the worker's done."""
    item = submitted(site, run, "true")
    site.add(run, "b")
    site.dispatch(run)
    Path(item["worktree"], "later.txt").write_text("after the report")

    assert decided(site, run).state == "succeeded"


def test_no_check_starts_after_the_deadline(site: Site, run, tmp_path: Path):
    submitted(site, run, f"touch '{tmp_path}/ran'")

    with refused("timeout") as failure:
        site.scheduler.wait(run, until="run", wait_seconds=0)

    assert not (tmp_path / "ran").exists()
    assert failure.value.data["overrun_seconds"] is None
    assert site.attempts(run, "a")[-1].state == "submitted"


def test_what_cannot_be_started_is_told_without_the_secrets_in_it(site: Site, monkeypatch):
    monkeypatch.setenv("TOKEN", "s3cret-of-mine")
    run = site.open_run(config=Config(secrets=("TOKEN",)))
    submitted(site, run, "curl s3cret-of-mine")
    site.scheduler.reconcile(run, checks=False)
    monkeypatch.setenv("HUGE", "x" * 300_000)  # execve(2): E2BIG

    with refused("io_error") as failure:
        site.scheduler.reconcile(run)

    assert "`curl ***` could not be started" in failure.value.message
    assert "s3cret" not in repr(list(site.worker.export()))


def test_a_check_that_cannot_be_started_counts_nothing(site: Site, run, monkeypatch):
    submitted(site, run, "true")
    site.scheduler.reconcile(run, checks=False)
    monkeypatch.setenv("HUGE", "x" * 300_000)  # execve(2): E2BIG

    with refused("io_error") as failure:
        site.scheduler.reconcile(run)

    assert "could not be started" in failure.value.message
    attempt = site.attempts(run, "a")[-1]
    assert (attempt.state, site.task(run, "a").work_failures) == ("submitted", 0)
    assert site.open_intents(run) == []
    monkeypatch.delenv("HUGE")
    assert decided(site, run).state == "succeeded"


def test_a_worktree_that_goes_away_before_its_checks_is_lost_and_its_work_kept(site: Site, run):
    item = submitted(site, run, "true")
    head = git(item["worktree"], "rev-parse", "HEAD")
    site.scheduler.reconcile(run, checks=False)
    shutil.rmtree(item["worktree"])

    attempt = decided(site, run)

    assert attempt.state == "lost"
    assert git(site.repository, "rev-parse", f"refs/orch/late/{attempt.id}") == head


def test_the_next_attempts_text_says_which_check_failed_and_how(site: Site, run):
    submitted(site, run, "echo the reason is this; exit 4")
    decided(site, run)
    site.clock.advance(300)

    again = site.dispatch(run)["a"]

    text = site.worker.messages(again["thread"])[0].body
    assert "Attempt 1: rejected. checks: `echo the reason is this; exit 4` ended" in text
    assert "\nthe reason is this\n" in text
    assert " a.txt | 1 +" in text
    assert text.count("the reason is this\n") == 1, "not told twice"
    assert site.worker.messages(again["thread"])[0].artifacts == ()


def test_what_does_not_fit_into_the_next_text_is_attached_to_its_thread(site: Site, run):
    submitted(site, run, "seq 20000; exit 1")
    decided(site, run)
    site.clock.advance(300)

    again = site.dispatch(run)["a"]

    first = site.worker.messages(again["thread"])[0]
    earlier = first.body.split("Earlier attempts\n", 1)[1]
    assert len(earlier.encode()) <= 16 * 1024
    (artifact,) = first.artifacts
    assert artifact.name == "earlier-attempts.txt"
    assert artifact.name in earlier
    with site.worker.artifacts.open(artifact.sha256) as file:
        whole = file.read().decode()
    assert "\n1\n2\n3\n" in whole
    assert "\n20000\n" in whole


def test_checks_are_stored_with_the_attempt_as_they_came_to_be(site: Site, run):
    submitted(site, run, "true")

    attempt = decided(site, run)

    details = json.loads(str(attempt.details))
    assert details["change_summary"].startswith(" a.txt | 1 +")
    assert attempt.commits_ahead == 1


def test_a_git_that_cannot_be_started_rejects_nothing(site: Site, run, monkeypatch):
    submitted(site, run)
    monkeypatch.setenv("HUGE", "x" * 300_000)  # execve(2): E2BIG

    with refused("git_failed"):
        site.scheduler.reconcile(run)

    monkeypatch.delenv("HUGE")
    assert decided(site, run).state == "succeeded"


def test_a_task_without_a_worktree_has_no_checks(site: Site, run):
    with refused("usage") as failure:
        site.add(run, "notes", worktree=False, checks=["true"])

    assert "worktree" in failure.value.message


# -- two leaders -----------------------------------------------------------------------------


def marked_runs(tmp_path: Path) -> list[str]:
    """What the checks have left in their common file, a line each."""
    mark = tmp_path / "ran.txt"
    return mark.read_text().split() if mark.exists() else []


def one_more_run(tmp_path: Path) -> str:
    return f"echo ran >>'{tmp_path}/ran.txt'"


def test_a_leader_that_has_seen_it_submitted_runs_no_check_that_another_has_run(
    site: Site, run, tmp_path: Path, monkeypatch
):
    submitted(site, run, one_more_run(tmp_path))
    slow = site.leader()
    fold.fold(slow.desk, run)
    verifying.verify(slow.desk, run)
    begin = functools.partial(judge._begin_checks, slow.desk)

    def begin_late(*arguments):
        site.scheduler.reconcile(run)
        return begin(*arguments)

    only_for(monkeypatch, slow, judge, "_begin_checks", begin_late)

    assert judge.check_next(slow.desk, run) is None
    assert marked_runs(tmp_path) == ["ran"]
    assert site.attempts(run, "a")[-1].state == "succeeded"


def test_what_a_slow_leader_sees_after_the_checks_have_begun_decides_nothing(
    site: Site, run, monkeypatch
):
    """The check itself makes the tree dirty, and the wait ends before the next one."""
    submitted(site, run, "touch made.txt", "true")
    slow = site.leader()
    fold.fold(slow.desk, run)
    look, first = functools.partial(verifying._verdict, slow.desk), site.scheduler
    note = functools.partial(judge._note_results, first.desk)

    def note_and_let_time_pass(*arguments):
        site.clock.advance(10)
        return note(*arguments)

    def look_late(*arguments):
        verifying.verify(first.desk, run)
        judge.check_next(first.desk, run, starts_before_ms=site.clock.now().monotonic_ms + 5000)
        return look(*arguments)

    only_for(monkeypatch, first, judge, "_note_results", note_and_let_time_pass)
    only_for(monkeypatch, slow, verifying, "_verdict", look_late)

    assert verifying.verify(slow.desk, run) == 0
    assert site.attempts(run, "a")[-1].state == "submitted"
    assert decided(site, run).state == "succeeded"


def test_a_verification_that_another_leader_has_taken_over_is_left_to_it(
    site: Site, run, monkeypatch
):
    """Both have seen that the verifier is gone; whoever comes second must clear nothing away."""
    submitted(site, run, "true")
    dying, slow = site.leader(), site.leader()
    gone = dying.database.owner()._replace(process=4194303, started=1)
    monkeypatch.setattr(dying.database, "owner", lambda: gone)
    fold.fold(dying.desk, run)
    verifying.verify(dying.desk, run)
    judge._begin_checks(dying.desk, run, site.attempts(run, "a")[-1])
    cleared = []

    def come_second(*arguments):
        monkeypatch.undo()
        only_for(
            monkeypatch,
            slow,
            borrow,
            "clear_borrowed",
            lambda *arguments: cleared.append(arguments),
        )
        assert judge.put_back_abandoned(site.scheduler.desk, run) == 1

    monkeypatch.setattr(judge, "end_orphan", come_second)

    assert judge.put_back_abandoned(slow.desk, run) == 0
    assert cleared == []
    assert site.attempts(run, "a")[-1].state == "submitted"


@pytest.mark.parametrize("loss", ["taken over", "cancelled"])
def test_a_verifier_that_has_lost_its_attempt_decides_nothing(
    site: Site, run, monkeypatch, loss: str
):
    submitted(site, run, "true")
    conclude, verifier = functools.partial(judge._conclude, site.scheduler.desk), site.scheduler

    def lose_it(run, attempt, found):
        other = site.leader()
        if loss == "taken over":
            (intent,) = site.open_intents(run)
            elsewhere = other.database.owner()._replace(process=4194303, started=1)
            with other.database.transaction() as tx:
                assert journal_rows.take_over_intent(tx, intent.number, intent.owner, elsewhere)
        else:
            other.cancel(run, ["a"])
        return conclude(run, attempt, found)

    only_for(monkeypatch, verifier, judge, "_conclude", lose_it)

    verifier.reconcile(run)

    assert (
        site.attempts(run, "a")[-1].state
        == {
            "taken over": "verifying",
            "cancelled": "cancelled",
        }[loss]
    )
    assert site.task(run, "a").accepted_attempt is None


def test_the_check_of_a_verifier_that_is_gone_is_ended_and_nobody_elses(site: Site):
    """Also when its guardian is gone, too; a number that means another process by now is let be."""
    own = subprocess.Popen(["sleep", "600"], start_new_session=True)
    other = subprocess.Popen(["sleep", "600"], start_new_session=True)
    try:
        me, boot_id = site.scheduler.database.owner(), site.clock.now().boot_id
        for process, started in ((own, 0), (other, 2)):  # ticks; one is lost by rounding
            data = {"group": process.pid}
            data["group_started"] = (processes.start_time(process.pid) or 0) + started
            thread = threading.Thread(
                target=judge.end_orphan,
                args=(journal_rows.Intent(1, "run", "attempt", "verify", data, 0, me), boot_id),
            )
            thread.start()
            if process is own:
                assert process.wait(PATIENCE_SECONDS) == -signal.SIGTERM
            thread.join(PATIENCE_SECONDS)
        assert other.poll() is None
    finally:
        for process in (own, other):
            process.kill()
            process.wait()


def test_a_signal_that_comes_when_the_last_check_has_ended_is_not_lost(site: Site, run):
    """It was noted; nobody looks for it any more but whoever has listened."""
    with pytest.raises(running.Interrupted) as interrupted, running.Runner(print):
        os.kill(os.getpid(), signal.SIGTERM)

    assert interrupted.value.number == signal.SIGTERM


def test_nor_is_one_that_comes_while_a_check_is_called_off(site: Site, run):
    """The check of a cancelled attempt is given its time to end; the signal comes in that time."""

    def call_off():
        os.kill(os.getpid(), signal.SIGINT)
        raise running.Withdrawn("the attempt has been cancelled")

    with pytest.raises(running.Interrupted) as interrupted, running.Runner(print):
        call_off()

    assert interrupted.value.number == signal.SIGINT


def test_a_signal_ends_the_wait_also_where_the_attempt_cannot_be_put_back(
    site: Site, run, monkeypatch
):
    submitted(site, run, "true")

    def run_checks(*arguments, **options):
        raise running.Interrupted(signal.SIGTERM)
        yield

    def busy(*arguments):
        raise InboxOrchError("busy", "another program holds the write lock")

    only_for(monkeypatch, site.scheduler, judge, "run_checks", run_checks)
    only_for(monkeypatch, site.scheduler, keep, "put_back", busy)
    with pytest.raises(Signalled) as signalled:
        site.scheduler.reconcile(run)

    assert signalled.value.number == signal.SIGTERM


def test_an_error_is_told_and_not_the_signal_that_came_with_it(site: Site, run):
    def fail():
        os.kill(os.getpid(), signal.SIGTERM)
        raise InboxOrchError("io_error", "it does not work")

    with refused("io_error"), running.Runner(print):
        fail()
