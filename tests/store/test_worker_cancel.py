"""A worker that waits for an answer on a thread which is cancelled meanwhile."""

from inbox_orch.inbox import Bus
from inbox_orch.inbox.worker.job import RETRY_MS, Job
from inbox_orch.inbox.worker.phase import Phase
from inbox_orch.inbox.worker.plan import Plan
from inbox_orch.shared.errors import InboxOrchError


def test_an_acknowledgement_that_is_refused_for_the_moment_is_tried_again(office, monkeypatch):
    leader = office.bus("leader")
    thread = leader.send(to="w1", subject="task").thread.id
    with Bus.open(office.path, agent="w1", clock=office.clock) as bus:
        happened = []
        job = Job(bus, Plan(("true",)), bus.claim(), happened.append, lambda text: None)
        # As it stands when the command has asked and ended.
        job.phase, job._step = Phase.WAITING, None
        leader.cancel(thread)
        with monkeypatch.context() as full:
            full.setattr(bus, "renew", refuse)
            job.look()
        assert job.phase is Phase.WAITING

        assert job.due() <= office.clock.now().monotonic_ms + RETRY_MS
        office.clock.advance(RETRY_MS / 1000)
        job.tick()

    assert job.phase is Phase.OVER
    assert happened[-1].facts["outcome"] == "cancelled"
    assert leader.threads([thread])[thread].cancel_seen


def refuse(*arguments):
    raise InboxOrchError("disk_full", "no space left")


class Stubborn:
    """A command that does not end when it is told to."""

    def terminate(self) -> None:
        """It goes on."""


def broken(office, bus) -> Job:
    """A job that an error has broken, while its command runs."""
    plan = Plan(("true",), lease_seconds=9)
    job = Job(bus, plan, bus.claim(lease_seconds=9), lambda said: None, lambda text: None)
    job.phase, job._step, job.child = Phase.RUNNING, None, Stubborn()
    job.break_off(OverflowError("a number"))
    assert job.phase is Phase.STOPPING
    return job


def test_while_a_broken_jobs_command_is_being_ended_nobody_else_has_its_thread(office):
    office.bus("leader").send(to="w1", subject="task")
    with Bus.open(office.path, agent="w1", clock=office.clock) as bus:
        job = broken(office, bus)
        for _ in range(3):
            office.clock.advance(3.1)
            job.tick()
    (thread,) = office.bus("leader").list().items
    assert (thread.state, thread.deliveries) == ("claimed", 1)
    assert thread.lease.expires_at > office.clock.now().wall_ms


def test_that_a_broken_jobs_thread_is_cancelled_is_acknowledged_only_when_its_command_ended(office):
    leader = office.bus("leader")
    sent = leader.send(to="w1", subject="task").thread.id
    with Bus.open(office.path, agent="w1", clock=office.clock) as bus:
        job = broken(office, bus)
        leader.cancel(sent)
        for _ in range(2):
            office.clock.advance(3.1)
            job.tick()
    assert not leader.threads([sent])[sent].cancel_seen
