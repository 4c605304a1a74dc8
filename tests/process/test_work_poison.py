"""`inbox work`: what goes wrong with one thread ends that thread's try, and nothing else."""

import os
import sys
from pathlib import Path

import pytest

from support.commands import Project
from support.workers import Worker, kinds, show

# In a process of its own, as the command is, with one fault in it.
FAULTY = """
import sys
from inbox_orch.inbox.worker import ends, job

def strike(place, name, error):
    whole = getattr(place, name)
    def faulty(self, *arguments, **named):
        if "poison" in self._thread.subject:
            raise error
        return whole(self, *arguments, **named)
    setattr(place, name, faulty)

{fault}
from inbox_orch.inbox.__main__ import main
sys.argv = sys.argv[1:]
sys.exit(main())
"""
POISON = '{"timeout_seconds": 1e308}'
COMMAND = ("sh", "-c", "cat")


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")


def work(project, *options, fault="", command=COMMAND, **more):
    """Everything that is there, two at a time; the worker's `finished` lines by thread."""
    launcher = (sys.executable, "-P", "-c", FAULTY.replace("{fault}", fault)) if fault else ()
    options = ("--slots", "2", "--idle-exit", "0.2", *options)
    with Worker(project, *options, command=command, launcher=launcher, **more) as worker:
        assert worker.end() == 0, worker.said
    return {x["thread"]: x for x in worker.lines if x["type"] == "finished"}, worker.said


def test_a_limit_that_no_clock_can_hold_fails_its_thread_alone(project):
    poison, healthy = project.send(payload=POISON), [project.send() for _ in range(3)]
    finished, _ = work(project)
    assert [finished[t]["outcome"] for t in (poison, *healthy)] == ["failed", *["done"] * 3]
    assert "payload.timeout_seconds" in show(project, poison).messages[-1].body
    assert finished[poison]["runs"] == 0


FAULTS = {
    "preparing": 'strike(job.Job, "_prepare", OverflowError("a number"))',
    "writing the task": 'strike(job.Job, "_write_task", OverflowError("a number"))',
    "running": 'strike(job.Job, "_started", OverflowError("a number"))',
    "settling": 'strike(job.Job, "_settle", OverflowError("a number"))',
    "finishing": 'strike(ends.Ends, "of", OverflowError("a number"))',
}


AFTERWARDS = """
whole = job.Job._over
def over(self, outcome):
    whole(self, outcome)
    raise OverflowError("a number")
job.Job._over = over
"""


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_fault_met_with_one_thread_fails_it_and_leaves_its_neighbour_alone(project, fault):
    poison, *healthy = project.send("poison"), project.send(), project.send()
    finished, said = work(project, "--retry-in", "60", fault=fault)
    assert [finished[t]["outcome"] for t in (poison, *healthy)] == ["handed_back", "done", "done"]
    shown = show(project, poison)
    assert (shown.thread.state, shown.thread.deliveries) == ("pending", 1)
    assert "OverflowError: a number" in shown.messages[-1].body
    assert "OverflowError: a number" in said
    assert "thread_released" not in kinds(project, poison)


def test_what_a_command_has_left_is_kept_when_the_worker_cannot_hand_it_in(project):
    poison = project.send("poison")
    script = 'echo output; echo result > "$INBOX_RESULT"'
    _, said = work(project, fault=FAULTS["finishing"], command=("sh", "-c", script))
    assert show(project, poison).thread.state == "pending"
    folder = Path(said.rpartition("its result and output are in ")[2].strip())
    assert (folder / "result").read_text() == "result\n"
    assert (folder / "stdout").read_text() == "output\n"


def test_a_fault_that_comes_when_all_is_over_changes_nothing(project):
    threads = [project.send("poison"), project.send()]
    finished, _ = work(project, fault=AFTERWARDS)
    assert [finished[t]["outcome"] for t in threads] == ["done", "done"]
    assert [show(project, t).thread.state for t in threads] == ["done", "done"]


def test_a_fault_met_while_the_command_runs_ends_the_command_first(project):
    poison, healthy = project.send("poison", "poison"), project.send()
    # Another process writes to the thread, so that the worker looks at it.
    script = 'grep -q poison || exit 0; "$INBOX" update --body seen >&2; exec sleep 600'
    finished, _ = work(
        project,
        *("--retry-in", "60"),
        fault='strike(job.Job, "_act_on", OverflowError("a number"))',
        command=("sh", "-c", script),
    )
    assert [finished[t]["outcome"] for t in (poison, healthy)] == ["handed_back", "done"]
    assert (finished[poison]["signal"], finished[poison]["runs"]) == (15, 1)
    assert "OverflowError: a number" in show(project, poison).messages[-1].body


@pytest.mark.parametrize("place", ["_started", "_act_on"])
def test_what_a_command_has_said_is_kept_when_it_is_ended_for_a_fault(project, place):
    """It is started once, however often its worker looks while it is being ended."""
    poison = project.send("poison", "poison")
    script = 'echo started >> starts; echo said; "$INBOX" update --body seen >&2; exec sleep 600'
    fault = f'strike(job.Job, "{place}", OverflowError("a number"))'
    _, said = work(project, fault=fault, command=("sh", "-c", script))
    assert show(project, poison).thread.state == "pending"
    folder = Path(said.rpartition("its result and output are in ")[2].strip())
    starts = project.folder / "starts"
    # At once when it has started, it may be ended before it can say anything.
    assert place == "_started" or (folder / "stdout").read_text() == "said\n"
    assert (folder / "stderr").exists()
    assert not starts.exists() or starts.read_text() in ("", "started\n")


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="needs /proc")
def test_a_result_that_cannot_be_read_is_noted_and_the_thread_is_done(project):
    """Nobody can read the first page of a process."""
    thread = project.send()
    script = 'ln -sf /proc/self/mem "$INBOX_RESULT"'
    finished, _ = work(project, command=("sh", "-c", script))
    assert (finished[thread]["outcome"], finished[thread]["runs"]) == ("done", 1)
    assert "$INBOX_RESULT could not be read" in show(project, thread).messages[-1].body


def test_a_fault_counts_its_tries_as_any_other_failure_does(project):
    poison, healthy = project.send("poison", max_deliveries=3), project.send()
    finished, _ = work(project, "--retry-in", "0", fault=FAULTS["preparing"])
    assert finished[healthy]["outcome"] == "done"
    assert finished[poison]["outcome"] == "exhausted"
    thread = show(project, poison).thread
    assert (thread.state, thread.reason, thread.deliveries) == ("failed", "exhausted", 3)


@pytest.mark.parametrize(
    "error", ['OSError(24, "Too many open files")', 'OverflowError("a number")']
)
def test_a_fault_comes_back_later_and_counts(project, error):
    poison = project.send("poison")
    fault = f'strike(job.Job, "_prepare", {error})'
    finished, _ = work(project, fault=fault)
    assert finished[poison]["outcome"] == "handed_back"
    shown = show(project, poison)
    assert (shown.thread.state, shown.thread.deliveries) == ("pending", 1)
    assert shown.thread.available_at - shown.messages[-1].created_at >= 2000


def test_a_thread_that_cannot_even_be_failed_is_left_to_its_lease(project):
    poison, healthy = project.send("poison"), project.send()
    fault = FAULTS["preparing"] + "\n" + 'strike(job.Job, "_go_on", OverflowError("again"))'
    finished, said = work(project, fault=fault)
    assert finished[healthy]["outcome"] == "done"
    assert finished[poison]["outcome"] == "abandoned"
    thread = show(project, poison).thread
    assert (thread.state, thread.deliveries) == ("claimed", 1)
    assert "again" in said


def test_a_payload_that_this_process_cannot_read_fails_its_thread_alone(project):
    poison, healthy = project.send(payload='{"n": ' + "1" * 1000 + "}"), project.send()
    more = {"PYTHONINTMAXSTRDIGITS": "640"}
    finished, _ = work(project, "--retry-in", "60", environment=more)
    assert [finished[t]["outcome"] for t in (poison, healthy)] == ["handed_back", "done"]


def test_what_concerns_every_thread_still_ends_the_worker(project):
    threads = [project.send("poison"), project.send()]
    fault = (
        "from inbox_orch.shared.errors import InboxOrchError\n"
        'strike(job.Job, "_prepare", InboxOrchError("no_database", "it is gone"))'
    )
    launcher = (sys.executable, "-P", "-c", FAULTY.replace("{fault}", fault))
    with Worker(project, "--slots", "2", command=COMMAND, launcher=launcher) as worker:
        assert worker.end() == 6
    states = [show(project, t).thread for t in threads]
    assert [(t.state, t.deliveries) for t in states] == [("pending", 0)] * 2
