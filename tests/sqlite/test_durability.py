"""What others act on is on the disk before it is acknowledged; only renewals, cursors and
progress may wait for the next commit that is."""

import pytest

from support.buses import refused


@pytest.fixture
def held(leader, worker):
    leader.send(to="w1", subject="task")
    claim = worker.claim(lease_seconds=60)
    return claim.thread.id, claim.lease.token


@pytest.fixture
def commits(worker):
    """(synchronous, what was inserted) of every commit of the worker's."""
    done, written = [], []

    def trace(statement):
        if statement.startswith("INSERT INTO event"):
            written.extend(k for k in KINDS if f"'{k}'" in statement)
        elif statement == "COMMIT":
            done.append((worker.database._synchronous, tuple(written)))
            written.clear()
        elif statement == "ROLLBACK":
            written.clear()

    worker.database.connection.set_trace_callback(trace)
    yield done
    worker.database.connection.set_trace_callback(None)


KINDS = ("lease_renewed", "thread_updated", "cancel_seen", "question_expired")


def test_a_renewal_and_a_progress_note_do_not_wait_for_the_disk(worker, held, commits):
    worker.renew(*held)
    worker.update(*held, progress=10)

    assert commits == [("NORMAL", ("lease_renewed",)), ("NORMAL", ("thread_updated",))]


@pytest.mark.parametrize("verb", ["renew", "update"])
def test_that_a_cancel_was_seen_is_on_the_disk(leader, worker, held, commits, verb):
    leader.cancel(held[0])

    with refused("cancelled"):
        getattr(worker, verb)(*held, **({"progress": 1} if verb == "update" else {}))

    assert ("FULL", ("cancel_seen",)) in commits
    assert [mode for mode, kinds in commits if "cancel_seen" in kinds] == ["FULL"]


@pytest.mark.parametrize("verb", ["renew", "update"])
def test_that_a_question_has_expired_is_on_the_disk(office, worker, held, commits, verb):
    worker.ask(*held, body="Which?", deadline_seconds=5)
    office.clock.advance(6)
    commits.clear()

    getattr(worker, verb)(*held, **({"progress": 1} if verb == "update" else {}))

    (expired,) = [commit for commit in commits if "question_expired" in commit[1]]
    assert expired[0] == "FULL"


def test_a_durable_call_cannot_join_a_transaction_that_is_not(worker):
    with worker.database.transaction(durable=False), pytest.raises(AssertionError):
        worker.send(to="w2", subject="task")
