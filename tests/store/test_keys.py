"""Keys: the same request gives the same result, however it is typed and whatever stored it."""

import json

import pytest

from support.engines import looking


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


def test_a_result_that_an_older_release_stored_lacks_a_field_and_is_given_back(leader):
    first = leader.send(to="w1", subject="task", body="do it", key="k1")
    (stored,) = looking(leader.database).only("SELECT response FROM request")
    older = json.loads(stored)
    del older["answered"], older["thread"]["uncounted"], older["message"]["artifacts"]
    older["thread"]["of_a_newer_release"] = 1
    with leader.database.transaction() as tx:
        tx.run("UPDATE request SET response = ?", (json.dumps(older),))

    again = leader.send(to="w1", subject="task", body="do it", key="k1")

    assert again.message == first.message
    assert again.thread == first.thread._replace(uncounted=None)


def test_everything_in_a_stored_result_comes_back_as_it_was(leader, worker, held, tmp_path):
    (tmp_path / "a.txt").write_text("content")
    note = {"body": "half", "progress": 50, "attach": [str(tmp_path / "a.txt")], "key": "k1"}
    asked = {"body": "Which?", "options": ["a", "b"], "key": "k1"}

    for verb, options in (("update", note), ("ask", asked)):
        first = getattr(worker, verb)(*held, **options)
        assert getattr(worker, verb)(*held, **options) == first._replace(replayed=True)
