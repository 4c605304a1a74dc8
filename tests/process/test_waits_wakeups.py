"""What ends a wait between real processes: replies, cancels, expiry, deadlines, and faults."""

import os
import shutil
import signal
import time

import pytest

from inbox_orch.shared.store.sqlite import creating
from sqlite import outside
from support.processes import Child, Clerk, crew, finish, start_json, until
from support.timing import promptly, undisturbed

NANO = 1_000_000_000

# Holds the engine's own write lock, which knows nothing of the gate, until it is told to let go.
_FOREIGN_WRITER = """
import time
from sqlite import outside
from support.processes import say
with outside.write_lock(sys.argv[1]):
    say("holds")
    sys.stdin.readline()
say(time.monotonic_ns())
"""


@pytest.fixture
def worker(path):
    with crew(Clerk(path, "w1")) as (worker,):
        yield worker


def _claim(leader, worker, lease_seconds=300):
    leader.send(to="w1", subject="task")
    claimed = worker.call("claim", lease_seconds=lease_seconds)
    return claimed.thread, claimed.token


def _seconds_since(began_ns, answer):
    return (answer.ended_ns - began_ns) / NANO


@pytest.mark.parametrize("doorbell", ["on", "off"])
def test_a_cancel_wakes_the_holder_from_wait_reply_within_a_second(path, leader, doorbell):

    def trial():
        thread, token = _claim(leader, worker)
        worker.start("wait_reply", thread, token, wait_seconds=60)
        worker.until_asleep()
        leader.cancel(thread)
        cancelled_ns = time.monotonic_ns()
        answer = worker.answer()
        assert (answer.refused, answer.exit_code) == ("cancelled", 10)
        assert leader.show(thread).thread.cancel_seen
        return _seconds_since(cancelled_ns, answer)

    with crew(Clerk(path, "w1", environment={"INBOX_DOORBELL": doorbell})) as (worker,):
        promptly(trial, within=1)


def test_a_delayed_thread_is_claimed_when_its_time_comes(leader, worker):
    def trial():
        before_ns = time.monotonic_ns()
        sent = leader.send(to="w1", subject="later", delay_seconds=1)
        sent_ns = time.monotonic_ns()
        answer = worker.call("claim", wait_seconds=60)
        assert answer.thread == sent.thread.id
        assert _seconds_since(before_ns, answer) > 0.99
        return _seconds_since(sent_ns, answer)

    promptly(trial, within=2)


def test_an_expired_lease_wakes_a_waiting_claim(path, leader, worker):
    def trial():
        thread, _ = _claim(leader, worker, lease_seconds=1)
        claimed_ns = time.monotonic_ns()
        taken = second.call("claim", mailboxes=["w1"], wait_seconds=60)
        assert taken.thread == thread
        return _seconds_since(claimed_ns, taken)

    with crew(Clerk(path, "w2")) as (second,):
        promptly(trial, within=2)


def test_an_expired_lease_wakes_a_watch_that_waits_for_it(path, leader, worker):
    thread, _ = _claim(leader, worker, lease_seconds=1)
    with crew(Clerk(path, "watcher")) as (watcher,):
        watcher.start("watch", thread_id=thread, kinds=["lease_expired"], wait_seconds=3)
        (event,) = watcher.answer().value
    assert event["data"]["lease_holder"] == "w1"


def test_the_deadline_of_a_question_wakes_wait_reply(leader, worker):
    def trial():
        thread, token = _claim(leader, worker)
        asked = worker.call("ask", thread, token, body="Which?", deadline_seconds=1)
        answer = worker.call("wait_reply", thread, token, wait_seconds=60)
        assert [m["kind"] for m in answer.value["messages"]] == ["system"]
        return _seconds_since(asked.ended_ns, answer)

    promptly(trial, within=2)


def test_wait_reply_keeps_a_short_lease_alive_for_longer_than_its_length(path, leader, worker):
    def trial():
        thread, token = _claim(leader, worker, lease_seconds=1)
        worker.start("wait_reply", thread, token, wait_seconds=60)
        claimed = rival.call("claim", thread, mailboxes=["w1"], wait_seconds=2.5)
        if claimed.refused is None:  # the machine was so busy that it was too late to renew
            assert worker.answer().refused == "lease_lost"
            return False
        assert claimed.refused == "timeout"
        leader.reply(thread, body="still there?")
        assert worker.answer().value["messages"][0]["body"] == "still there?"
        return True

    with crew(Clerk(path, "w2")) as (rival,):
        undisturbed(trial)


@pytest.mark.parametrize("number", [signal.SIGWINCH, signal.SIGCHLD, signal.SIGCONT])
def test_a_wait_goes_on_through_signals_that_do_not_end_a_process(leader, worker, number):
    thread, token = _claim(leader, worker)
    worker.start("wait_reply", thread, token, wait_seconds=60)
    worker.until_asleep()
    for _ in range(20):
        os.kill(worker.pid, number)
    leader.reply(thread, body="go on")
    assert worker.answer().value["messages"][0]["body"] == "go on"


def test_a_wait_goes_on_through_a_handled_signal(path, leader):
    code = """
import signal
from inbox_orch.inbox import Bus
from support.processes import say
signal.signal(signal.SIGUSR1, lambda number, frame: say("handled"))
with Bus.open(sys.argv[1], agent="w1") as bus:
    say("ready")
    say(bus.claim(wait_seconds=60).thread.subject)
"""
    with crew(Child(code, path)) as (child,):
        assert child.hear() == "ready"
        child.until_asleep()
        os.kill(child.pid, signal.SIGUSR1)
        assert child.hear() == "handled"
        leader.send(to="w1", subject="after the signal")
        assert child.hear() == "after the signal"


def test_an_interrupt_ends_a_waiting_command_at_once_with_130(path, inbox_bin):
    bells = path.parent / "bells" / "w1"

    def trial():
        running = start_json(inbox_bin, "claim", "--wait", "600", "--db", str(path), agent="w1")
        until(bells.is_dir)
        began = time.monotonic()
        running.send_signal(signal.SIGINT)
        ran = finish(running)
        seconds = time.monotonic() - began
        assert (ran.exit_code, ran.json["error"]["code"]) == (130, "interrupted")
        shutil.rmtree(bells, ignore_errors=True)  # one that was being hung up just then stays
        return seconds

    promptly(trial, within=2)


@pytest.mark.parametrize("what", ["delayed", "expired"])
def test_what_falls_due_behind_a_foreign_write_lock_comes_soon_after_it(path, leader, worker, what):
    def trial():
        if what == "delayed":
            leader.send(to="w1", subject="later", delay_seconds=1)
        else:
            _claim(leader, worker, lease_seconds=1)
        with crew(Child(_FOREIGN_WRITER, path)) as (foreign,):
            assert foreign.hear() == "holds"
            waiter.start("claim", mailboxes=["w1"], wait_seconds=60)
            # By then it is due, and still locked.
            assert waiter.silent_for(1.5)
            foreign.tell("let it go")
            released_ns = foreign.hear()
        answer = waiter.answer()
        assert answer.exit_code == 0
        return _seconds_since(released_ns, answer)

    with crew(Clerk(path, "w2")) as (waiter,):
        promptly(trial, within=1)


def test_a_wait_outlives_a_write_lock_that_is_held_longer_than_writers_wait(path, leader):
    leader.send(to="w1", subject="due behind the lock", delay_seconds=0.1)
    code = """
from inbox_orch.inbox import Bus
from support.processes import say
with Bus.open(sys.argv[1], agent="w1", busy_seconds=0.2) as bus:
    say("ready")
    sys.stdin.readline()
    say(bus.claim(wait_seconds=30).thread.subject)
"""
    with crew(Child(code, path)) as (waiter,):
        assert waiter.hear() == "ready"
        with crew(Child(_FOREIGN_WRITER, path)) as (foreign,):
            assert foreign.hear() == "holds"
            waiter.tell("go")
            assert waiter.silent_for(1.5)
            foreign.tell("let it go")
            foreign.hear()
        assert waiter.hear() == "due behind the lock"


def test_a_database_that_is_removed_ends_a_wait_with_no_database(path, leader, worker, tmp_path):
    worker.start("claim", wait_seconds=60)
    worker.until_asleep()
    path.parent.rename(tmp_path / "gone")
    answer = worker.answer()
    assert (answer.refused, answer.exit_code) == ("no_database", 6)
    assert not path.parent.exists()


def test_a_database_that_is_replaced_ends_a_wait_with_wrong_database(path, worker, tmp_path):
    another = tmp_path / "another" / "bus.db"
    creating.create(str(another))
    worker.start("claim", wait_seconds=60)
    worker.until_asleep()
    # In one step: it may look at any moment, and in between there would be none.
    another.replace(path)
    answer = worker.answer()
    assert (answer.refused, answer.exit_code) == ("wrong_database", 6)


def test_a_wait_of_zero_seconds_looks_once(leader, worker):
    leader.send(to="w1", subject="is there already")
    assert worker.call("claim", wait_seconds=0).exit_code == 0
    assert worker.call("claim", wait_seconds=0).refused == "nothing_available"


def test_waits_hold_no_snapshot_so_the_log_stays_short(path, leader):
    def trial():
        largest = 0
        # Few and long: it is the length of the log that counts.
        for number in range(800):
            leader.send(to="pool", subject=f"thread {number}", body="x" * 16_000)
            largest = max(largest, os.stat(leader.database.layout.wal).st_size)
        assert largest > 4 * 1024 * 1024
        # One that has to wait for a processor in the middle of a look keeps it long, too.
        return largest < 16 * 1024 * 1024

    watchers = [Clerk(path, f"w{n}") for n in range(12)]
    with crew(*watchers):
        for watcher in watchers:
            watcher.start("watch", kinds=["thread_done"], wait_seconds=600)
        for watcher in watchers:
            watcher.until_asleep()
        undisturbed(trial)


def test_a_sleeping_wait_has_no_lock_on_the_log(path, leader, worker):
    worker.start("watch", wait_seconds=60)
    worker.until_asleep()
    # RESTART succeeds only when no reader uses the log at all.
    leader.send(to="pool", subject="task")
    until(lambda: outside.value(path, "PRAGMA wal_checkpoint(RESTART)") == 0)
