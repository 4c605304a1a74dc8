"""`inbox work`: processes, signals, limits, and several workers at once."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from support.commands import Project, command_path, locked_by_another, run
from support.contracts import validated
from support.lengths import LONG
from support.processes import linger, until
from support.timing import PATIENCE_SECONDS, TRIALS, promptly, undisturbed
from support.workers import Worker, await_event, content, is_alive, kinds, show, work_once

SLEEPER = ("sh", "-c", "exec sleep 1000")
STUBBORN = ("sh", "-c", "trap '' TERM; touch deaf; exec sleep 1000")


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")


def children_of(process):
    """The process ids of its children."""
    path = f"/proc/{process.pid}/task/{process.pid}/children"
    with open(path, encoding="ascii") as file:
        return [int(pid) for pid in file.read().split()]


# -- what a command leaves behind ----------------------------------------------------------


def test_a_grandchild_that_keeps_the_pipes_open_holds_nobody_up_and_is_ended(project):
    def trial():
        thread = project.send()
        code, finished = work_once(project, "sleep 1000 & echo $!")
        assert (code, finished["outcome"]) == (0, "done")
        assert not is_alive(int(content(project, thread, "stdout")))
        return finished["seconds"]

    promptly(trial, within=5)


def test_endless_output_of_a_grandchild_holds_nobody_up(project):
    project.send()
    code, finished = work_once(project, "(trap '' TERM; exec yes) & echo begun", "--lease", "5")
    assert (code, finished["outcome"]) == (0, "done")


def test_much_output_is_bounded_in_memory_and_in_the_artifact(project):
    thread = project.send()
    script = "echo first; head -c 200000000 /dev/zero | tr '\\0' x; echo last"
    with Worker(project, command=("sh", "-c", script)) as worker:
        worker.hear("finished")
        # Its own peak: `ru_maxrss` would begin with that of the process which started it.
        status = Path(f"/proc/{worker.process.pid}/status").read_text()
        peak_kib = int(re.search(r"VmHWM:\s+(\d+) kB", status)[1])
    kept = content(project, thread, "stdout")
    assert kept.startswith(b"first\nxxx")
    assert kept.endswith(b"xxxlast\n")
    assert b"bytes of stdout are left out here" in kept
    assert len(kept) < 600_000
    assert len(show(project, thread).messages[-1].body) < 70_000
    assert peak_kib < 100 * 1024


def test_a_large_result_is_attached_whole(project):
    thread = project.send()
    _, finished = work_once(project, 'head -c 60000000 /dev/urandom | tee copy > "$INBOX_RESULT"')
    assert finished["outcome"] == "done"
    assert content(project, thread, "result") == (project.folder / "copy").read_bytes()


def test_nothing_is_left_in_the_temporary_folder(project):
    thread = project.send()
    work_once(
        project,
        'echo x > "$INBOX_RESULT"; dirname "$INBOX_RESULT"; stat -c %a "$(dirname $INBOX_RESULT)"',
    )
    folder, mode = content(project, thread, "stdout").decode().split()
    assert folder.startswith(str(project.folder / "scratch"))
    assert mode == "700"
    assert list((project.folder / "scratch").iterdir()) == []
    assert list((project.folder / ".inbox" / "bells").iterdir()) == []


# -- limits, cancel, lost leases -----------------------------------------------------------


def work_with_short_grace(project, grace_seconds, **plan):
    """The worker in a Python process of its own, where the grace can be chosen."""
    code = (
        "import sys\n"
        "from inbox_orch.inbox import Bus\n"
        "from inbox_orch.inbox.worker.loop import Worker\n"
        "from inbox_orch.inbox.worker.plan import Plan\n"
        f"plan = Plan(tuple(sys.argv[2:]), ('workers',), once=True, grace_seconds={grace_seconds},"
        f" **{plan!r})\n"
        "with Bus.open(sys.argv[1], agent='w1') as bus:\n"
        "    Worker(bus, plan, tell=lambda h: print(h.type, flush=True), notice=print).run()\n"
    )
    return subprocess.Popen(
        [sys.executable, "-P", "-c", code, str(project.path), *STUBBORN],
        cwd=project.folder,
        stdout=subprocess.DEVNULL,
    )


def test_a_command_that_ignores_term_is_killed_after_the_grace(project):
    def trial():
        (project.folder / "deaf").unlink(missing_ok=True)
        thread = project.send()
        with work_with_short_grace(project, 0.3, timeout_seconds=2.5) as worker:
            assert worker.wait(PATIENCE_SECONDS) == 0
        shown = show(project, thread)
        assert shown.thread.state == "failed"
        assert "stopped after 2.5 s" in shown.messages[-1].body
        return (project.folder / "deaf").exists()  # if not, it was ended before it was deaf

    undisturbed(trial)


@pytest.mark.parametrize("doorbell", ["on", "off"])
def test_a_cancel_reaches_the_command_within_a_second(project, doorbell):
    options = {"environment": {"INBOX_DOORBELL": doorbell}}

    def trial():
        thread = project.send()
        with Worker(project, "--once", command=SLEEPER, **options) as worker:
            pid = worker.hear("started")["pid"]
            with project.bus("leader") as bus:
                bus.cancel(thread)
            began = time.monotonic()
            until(lambda: not is_alive(pid))
            seconds = time.monotonic() - began
            assert worker.hear("finished")["outcome"] == "cancelled"
            assert worker.end() == 0
        shown = show(project, thread)
        assert [m.kind for m in shown.messages] == ["task", "cancel"]
        assert shown.artifacts == ()
        assert kinds(project, thread)[-1] == "cancel_seen"
        return seconds

    promptly(trial, within=1)


def test_a_cancel_is_acknowledged_only_once_the_command_has_ended(project):
    thread = project.send()
    with work_with_short_grace(project, 1) as worker, project.bus("leader") as bus:
        until((project.folder / "deaf").exists)
        before = bus.database.clock.now().wall_ms
        bus.cancel(thread)
        seen = await_event(bus, "cancel_seen", thread)
        assert seen.at - before >= 990
        assert worker.wait(PATIENCE_SECONDS) == 0


def test_a_lease_is_renewed_as_long_as_the_command_runs(project):
    def trial():
        thread = project.send()
        _, finished = work_once(project, "sleep 3", "--lease", "1")
        happened = kinds(project, thread)
        assert finished["outcome"] == "done"
        assert "lease_expired" not in happened
        return happened.count("lease_renewed") >= 3

    undisturbed(trial)


def test_a_lease_is_renewed_in_time_while_every_processor_is_busy(project):
    seconds, lease = (240, 3) if LONG else (4, 2)

    def trial():
        thread = project.send()
        line = [sys.executable, "-c", "while True: pass"]
        busy = [subprocess.Popen(line) for _ in range(2 * (os.cpu_count() or 1))]
        try:
            _, finished = work_once(project, f"sleep {seconds}", "--lease", str(lease))
        finally:
            for process in busy:
                process.kill()
                process.wait()
        happened = kinds(project, thread)
        if "lease_expired" in happened:
            return False
        assert finished["outcome"] == "done"
        # At a third of the lease, or a little later.
        return 2 * seconds / lease <= happened.count("lease_renewed") <= 3 * seconds / lease

    undisturbed(trial, trials=1 if LONG else TRIALS)


def test_a_command_that_the_signal_to_the_worker_has_met_too_is_handed_back(project):
    """Before a command has its own group, what is sent to that of the worker reaches it as well:
    both are seen at once then, and it has not failed by itself."""
    thread = project.send()
    with Worker(project, command=SLEEPER) as worker:
        command = worker.hear("started")["pid"]
        worker.process.send_signal(signal.SIGSTOP)
        worker.process.send_signal(signal.SIGTERM)
        os.kill(command, signal.SIGTERM)
        until(lambda: not is_alive(command))
        worker.process.send_signal(signal.SIGCONT)
        assert worker.hear("finished")["outcome"] == "released"
    assert show(project, thread).thread.state == "pending"


def test_a_worker_that_slept_past_its_lease_writes_nothing(project):
    thread = project.send()
    with Worker(project, "--once", "--lease", "1", command=SLEEPER) as worker:
        pid = worker.hear("started")["pid"]
        worker.process.send_signal(signal.SIGSTOP)
        with project.bus("w2") as bus:
            taken = bus.claim(mailboxes=["workers"], wait_seconds=30)
            worker.process.send_signal(signal.SIGCONT)
            assert worker.hear("finished")["outcome"] == "lease_lost"
            assert worker.end() == 0
            assert not is_alive(pid)
            bus.done(taken.thread.id, taken.lease.token, body="the second one's")
    shown = show(project, thread)
    assert [m.body for m in shown.messages] == ["do it", "the second one's"]
    assert shown.artifacts == ()


def test_a_command_that_ended_while_its_worker_slept_past_the_lease_writes_nothing(project):
    thread = project.send()
    script = 'echo mine > "$INBOX_RESULT"; until [ -e go ]; do sleep 0.01; done; touch ended'
    with Worker(project, "--once", "--lease", "1", command=("sh", "-c", script)) as worker:
        worker.hear("started")
        worker.process.send_signal(signal.SIGSTOP)
        with project.bus("w2") as bus:
            taken = bus.claim(mailboxes=["workers"], wait_seconds=30)
            (project.folder / "go").touch()
            until((project.folder / "ended").exists)
            worker.process.send_signal(signal.SIGCONT)
            assert worker.hear("finished")["outcome"] == "lease_lost"
            assert worker.end() == 0
            assert bus.renew(taken.thread.id, taken.lease.token).lease is not None
    assert show(project, thread).artifacts == ()


# -- the worker itself ends ----------------------------------------------------------------


@pytest.mark.parametrize("number, code", [("INT", 130), ("TERM", 143), ("HUP", 143)])
def test_a_signal_releases_what_is_held_and_leaves_no_process(project, number, code):
    thread = project.send()
    script = 'echo partial > "$INBOX_RESULT"; touch ready; exec sleep 1000'
    with Worker(project, command=("sh", "-c", script)) as worker:
        pid = worker.hear("started")["pid"]
        until((project.folder / "ready").exists)
        worker.process.send_signal(signal.Signals[f"SIG{number}"])
        assert worker.end() == code
        assert worker.lines[-1] == {
            "type": "summary",
            "claimed": 1,
            "runs": 1,
            "finished": 1,
            "outcomes": {"released": 1},
        }
    assert not is_alive(pid)
    shown = show(project, thread)
    assert (shown.thread.state, shown.thread.deliveries) == ("pending", 0)
    assert content(project, thread, "result") == b"partial\n"


def test_a_second_signal_kills_at_once(project):
    thread = project.send()

    def trial():
        (project.folder / "deaf").unlink(missing_ok=True)
        with Worker(project, command=STUBBORN) as worker:
            pid = worker.hear("started")["pid"]
            until((project.folder / "deaf").exists)
            worker.process.send_signal(signal.SIGINT)
            linger(0.2)
            assert is_alive(pid)
            began = time.monotonic()
            worker.process.send_signal(signal.SIGINT)
            assert worker.end() == 130
            seconds = time.monotonic() - began
        assert not is_alive(pid)
        assert show(project, thread).thread.state == "pending"
        return seconds

    promptly(trial, within=8)


def test_a_signal_ends_the_wait_for_an_answer_and_releases(project):
    thread = project.send()
    with Worker(project, command=("sh", "-c", '"$INBOX" ask --body Which? >&2')) as worker:
        worker.hear("waiting")
        worker.process.send_signal(signal.SIGTERM)
        assert worker.end() == 143
    shown = show(project, thread).thread
    assert (shown.state, shown.question, shown.deliveries) == ("pending", None, 0)


def test_a_killed_worker_loses_nothing_and_the_next_one_takes_over(project):
    thread = project.send()
    with Worker(project, "--lease", "1", command=SLEEPER) as first:
        pid = first.hear("started")["pid"]
        first.process.kill()
        until(lambda: not is_alive(pid))
    scratch = project.folder / "scratch"
    until(lambda: not any(scratch.iterdir()))
    code, finished = work_once(project, "echo second", agent="w2")
    assert (code, finished["outcome"]) == (0, "done")
    shown = show(project, thread).thread
    assert (shown.state, shown.epoch, shown.deliveries) == ("done", 2, 2)
    assert kinds(project, thread).count("lease_expired") == 1


def test_the_guardian_of_a_worker_ends_with_it(project):
    project.send()
    with Worker(project, command=SLEEPER) as worker:
        pid = worker.hear("started")["pid"]
        guardians = [child for child in children_of(worker.process) if child != pid]
        assert len(guardians) == 1
        worker.process.send_signal(signal.SIGTERM)
        assert worker.end() == 143
    until(lambda: not is_alive(guardians[0]))


def test_a_reader_that_stands_still_costs_no_lease(project):
    thread = project.send()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    try:
        while os.write(writer, b"x" * 4096):
            pass
    except BlockingIOError:
        os.set_blocking(writer, True)
    line = ("work", "--agent", "w1", "--mailbox", "workers", "--lease", "5")
    with subprocess.Popen(
        [command_path(), *line, "--", "sleep", "6"], cwd=project.folder, stdout=writer
    ) as worker:
        with project.bus("leader") as bus:
            await_event(bus, "thread_done", thread)
        assert "lease_expired" not in kinds(project, thread)
        os.close(reader)
        os.close(writer)
        assert worker.wait(PATIENCE_SECONDS) == 141


def test_a_reader_that_goes_away_ends_the_worker_which_releases(project):
    thread = project.send()
    with Worker(project, command=("sh", "-c", "until [ -e go ]; do sleep 0.01; done")) as worker:
        worker.hear("started")
        worker.process.stdout.close()
        (project.folder / "go").touch()
        second = project.send()
        assert worker.process.wait(PATIENCE_SECONDS) == 141
    assert show(project, thread).thread.state == "done"
    assert show(project, second).thread.state == "pending"


def test_a_database_that_is_busy_at_the_end_costs_no_result(project):
    thread = project.send()
    script = "touch begun; until [ -e go ]; do sleep 0.01; done; echo kept"
    with Worker(project, "--once", command=("sh", "-c", script)) as worker:
        until((project.folder / "begun").exists)
        with locked_by_another(project.path):
            (project.folder / "go").touch()
            until(lambda: "trying again" in worker.said)
        assert worker.hear("finished")["outcome"] == "done"
    assert show(project, thread).messages[-1].body == "kept\n"


def test_a_database_that_is_removed_ends_the_worker_and_its_command(project):
    project.send()
    with Worker(project, command=SLEEPER) as worker:
        pid = worker.hear("started")["pid"]
        for path in (project.folder / ".inbox").glob("bus.db*"):
            path.unlink()
        assert worker.end() == 6
    assert not is_alive(pid)


# -- several at once -----------------------------------------------------------------------


def test_slots_run_side_by_side(project):
    for _ in range(3):
        project.send()
    script = 'touch "at-$INBOX_THREAD"; until [ "$(ls at-* | wc -l)" = 3 ]; do sleep 0.02; done'
    options = ("--slots", "3", "--idle-exit", "0.1")
    with Worker(project, *options, command=("sh", "-c", script)) as worker:
        assert worker.end() == 0
        assert worker.lines[-1]["outcomes"] == {"done": 3}


def test_one_slot_runs_one_at_a_time(project):
    for _ in range(3):
        project.send()
    script = "mkdir alone && sleep 0.05 && rmdir alone"
    with Worker(project, "--idle-exit", "0.1", command=("sh", "-c", script)) as worker:
        assert worker.end() == 0
        assert worker.lines[-1]["outcomes"] == {"done": 3}


def test_two_workers_of_one_name_do_each_thread_once(project):
    for _ in range(20):
        project.send()
    script = 'echo "$INBOX_THREAD" >> log'
    options = ("--slots", "2", "--idle-exit", "0.5")
    with (
        Worker(project, *options, command=("sh", "-c", script)) as first,
        Worker(project, *options, command=("sh", "-c", script)) as second,
    ):
        assert (first.end(), second.end()) == (0, 0)
        assert first.lines[-1]["claimed"] + second.lines[-1]["claimed"] == 20
    done = (project.folder / "log").read_text().split()
    assert len(done) == len(set(done)) == 20


def test_a_new_thread_wakes_an_idle_worker(project):
    with Worker(project, "--once", command=("true",)) as worker:
        bells = project.folder / ".inbox" / "bells" / "workers"
        until(lambda: bells.is_dir() and any(bells.iterdir()))
        thread = project.send()
        assert worker.hear("finished")["thread"] == thread


def test_a_delayed_thread_is_run_when_it_is_due(project):
    thread = project.send(delay_seconds=1)
    with Worker(project, "--once", command=("true",)) as worker:
        assert worker.hear("finished")["thread"] == thread


# -- the call ------------------------------------------------------------------------------


def test_the_command_gets_the_default_signals_also_in_the_background_of_a_shell(project):
    thread = project.send()
    script = "grep SigIgn /proc/self/status"
    work_once(project, script, launcher=("sh", "-c", "trap '' INT; exec \"$@\"", "sh"))
    ignored = int(content(project, thread, "stdout").split()[1], 16)
    assert not ignored & 1 << (signal.SIGINT - 1)
    assert not ignored & 1 << (signal.SIGPIPE - 1)


def test_a_worker_in_the_background_of_a_shell_goes_on_ignoring_sigint(project):
    launcher = ("sh", "-c", "trap '' INT; exec \"$@\"", "sh")
    project.send()
    script = "touch begun; until [ -e go ]; do sleep 0.01; done"
    with Worker(project, "--once", command=("sh", "-c", script), launcher=launcher) as worker:
        until((project.folder / "begun").exists)
        worker.process.send_signal(signal.SIGINT)
        (project.folder / "go").touch()
        assert worker.hear("finished")["outcome"] == "done"
        assert worker.end() == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ("--agent", "w1", "--", "no-such-command"),
        ("--agent", "w1", "--", "./README"),
        ("--agent", "w1"),
        ("--", "true"),
        ("--agent", "w1", "--slots", "0", "--", "true"),
        ("--agent", "w1", "--slots", "65", "--", "true"),
        ("--agent", "w1", "--lease", "0.5", "--", "true"),
        ("--agent", "w1", "--timeout", "0", "--", "true"),
        ("--agent", "w1", "--timeout", "nan", "--", "true"),
        ("--agent", "w1", "--once", "--slots", "2", "--", "true"),
    ],
)
def test_a_wrong_call_claims_nothing(project, arguments):
    (project.folder / "README").touch()
    thread = project.send()
    assert project.json("work", "--mailbox", "workers", *arguments).error["code"] == "usage"
    assert show(project, thread).thread.epoch == 0


def test_once_with_nothing_to_do_is_exit_8_and_a_worker_is_exit_0(project):
    line = ("work", "--agent", "w1", "--idle-exit", "0")
    once = project.json(*line, "--once", "--", "true")
    assert (once.code, once.error["code"]) == (8, "nothing_available")
    assert once.value["data"]["claimed"] == 0
    validated("work", once.stdout)
    assert project.run(*line, "--", "true").code == 0


def test_a_pipe_gets_one_line_a_happening_with_nothing_of_the_command_in_it(project):
    thread = project.send(subject="two words")
    said = run(
        *("work", "--agent", "w1", "--mailbox", "workers", "--once", "--", "echo", "noise"),
        folder=project.folder,
    ).text
    lines = [line.split("\t") for line in said.splitlines()]
    assert [line[0] for line in lines] == ["claimed", "started", "finished", "summary"]
    assert lines[0][1:3] == [thread, "two words"]
    assert lines[2][1:3] == [thread, "done"]
    assert "noise" not in said
