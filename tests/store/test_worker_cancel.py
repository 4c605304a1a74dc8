"""A worker that waits for an answer on a thread which is cancelled meanwhile."""

from inbox_orch.inbox.services.working import Working
from inbox_orch.inbox.worker.job import RETRY_MS, Job, Phase
from inbox_orch.inbox.worker.plan import Plan
from inbox_orch.shared.errors import InboxOrchError


def test_an_acknowledgement_that_is_refused_for_the_moment_is_tried_again(office, monkeypatch):
    leader = office.bus("leader")
    thread = leader.send(to="w1", subject="task").thread.id
    with Working.open(office.path, agent="w1", clock=office.clock) as bus:
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
