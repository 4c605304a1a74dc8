"""Keys: the same request gives the same result, however it is typed and whatever stored it."""

import pytest

from support.buses import Office


@pytest.fixture
def office(tmp_path):
    office = Office(tmp_path)
    yield office
    office.close()


@pytest.fixture
def leader(office):
    return office.bus("leader")


@pytest.fixture
def worker(office):
    return office.bus("w1")


@pytest.fixture
def held(leader, worker):
    leader.send(to="w1", subject="task")
    claim = worker.claim(lease_seconds=60)
    return claim.thread.id, claim.lease.token


def test_a_key_given_to_an_open_question_is_kept_for_it(leader, worker, held):
    first = worker.ask(*held, body="Which?")
    again = worker.ask(*held, body="Which?", key="k2")
    leader.reply(held[0], body="this")
    replayed = worker.ask(*held, body="Which?", key="k2")

    assert (again.message.id, again.already) == (first.message.id, True)
    assert (replayed.message.id, replayed.replayed) == (first.message.id, True)
    assert leader.show(held[0]).thread.state == "claimed"


@pytest.mark.parametrize("verb", ["update", "ask"])
def test_an_id_in_small_letters_is_the_same_request(worker, held, verb):
    thread, token = held
    first = getattr(worker, verb)(thread, token, body="text", key="k1")
    again = getattr(worker, verb)(thread.lower(), token, body="text", key="k1")

    assert again == first._replace(replayed=True)
