"""What the holder of a lease is told, and what is recorded of it, word for word."""

import pytest

from inbox_orch.shared.clock import rfc3339
from support.buses import Office, refused
from support.engines import looking

TASK_ID_OF_NOBODY = "01ARZ3NDEKTSV4RRFFQ69G5FAV"


@pytest.fixture
def office(tmp_path):
    office = Office(tmp_path)
    yield office
    office.close()


@pytest.fixture(autouse=True)
def polling(monkeypatch):
    """Waits look again soon; they would else sleep for seconds, by the real clock."""
    monkeypatch.setenv("INBOX_DOORBELL", "off")


@pytest.fixture
def leader(office):
    return office.bus("leader")


@pytest.fixture
def worker(office):
    return office.bus("w1")


def claimed(leader, worker, **options):
    """A thread that `worker` holds: (id, token)."""
    leader.send(to="workers", subject="task", body="do it", **options)
    claim = worker.claim(mailboxes=["workers"], lease_seconds=60)
    return claim.thread.id, claim.lease.token


def last_event(bus):
    """(kind, actor, data) of the newest event."""
    *_, event = bus.watch(after="0", wait_seconds=0)
    return event.kind, event.actor, event.data


def told(failure):
    error = failure.value
    return error.message, error.hint, error.details


# -- claiming --------------------------------------------------------------------------------


def test_a_claim_shows_the_thread_the_lease_and_its_messages(office, leader, worker):
    sent = leader.send(to="workers", subject="task", body="x" * 5000)
    leader.reply(sent.thread.id, body="y" * 5000)
    claim = worker.claim(mailboxes=["workers"], lease_seconds=60)
    now = office.clock.now().wall_ms

    assert (claim.redelivered, claim.messages_truncated, claim.artifacts) == (False, False, ())
    assert claim.thread.holder == "w1" and claim.thread.lease.token is None
    assert claim.lease == claim.thread.lease._replace(token=claim.lease.token)
    shape = claim.as_json()
    assert shape.keys() == {
        "thread",
        "lease",
        "messages",
        "messages_truncated",
        "artifacts",
        "redelivered",
    }
    assert shape["thread"] == claim.thread.as_json()
    assert shape["lease"]["token"] == claim.lease.token
    assert [m["body_truncated"] for m in shape["messages"]] == [False, True]
    assert (shape["messages_truncated"], shape["redelivered"], shape["artifacts"]) == (
        False,
        False,
        [],
    )
    assert last_event(leader) == (
        "thread_claimed",
        "w1",
        {
            "from": "pending",
            "to": "claimed",
            "epoch": 1,
            "deliveries": 1,
            "holder": "w1",
            "lease_seconds": 60,
            "expires_at": now + 60_000,
            "counted": True,
        },
    )


def test_a_claim_shows_the_artifacts_of_the_thread(tmp_path, leader, worker):
    file = tmp_path / "notes.txt"
    file.write_text("notes")
    leader.send(to="workers", subject="task", attach=[str(file)])
    claim = worker.claim(mailboxes=["workers"])

    assert [artifact.name for artifact in claim.artifacts] == ["notes.txt"]
    assert claim.as_json()["artifacts"] == [claim.artifacts[0].as_json()]


def test_a_claim_after_many_messages_shows_the_first_and_the_newest(leader, worker):
    thread = leader.send(to="workers", subject="task", body="first").thread.id
    for number in range(101):
        leader.reply(thread, body=str(number))
    claim = worker.claim(mailboxes=["workers"])

    assert claim.messages_truncated
    assert len(claim.messages) == 101
    assert [m.body for m in claim.messages] == ["first", *map(str, range(1, 101))]


def test_a_claim_remembers_how_far_its_holder_has_read(leader, worker):
    thread = leader.send(to="workers", subject="task").thread.id
    reply = leader.reply(thread, body="one more thing").message
    worker.claim(mailboxes=["workers"])
    rows = looking(worker.database).all("SELECT read_position FROM lease")

    assert [row[0] for row in rows] == [reply.id]


def test_a_second_claim_of_a_thread_is_a_redelivery(office, leader, worker):
    thread, token = claimed(leader, worker)
    worker.release(thread, token)

    assert worker.claim(mailboxes=["workers"]).redelivered


def test_a_claim_of_a_thread_in_another_mailbox_names_it(leader, worker):
    thread = leader.send(to="workers", subject="task").thread.id

    with refused("wrong_mailbox") as failure:
        worker.claim(thread)
    assert told(failure) == (
        f"thread {thread} is in the mailbox workers",
        "add --mailbox workers to claim from it",
        {"thread": thread, "mailbox": "workers"},
    )


def test_a_claim_of_a_thread_that_is_held_names_the_holder_and_the_time(office, leader, worker):
    thread, _ = claimed(leader, worker)
    until = rfc3339(office.clock.wall_ms + 60_000)

    with refused("already_claimed") as failure:
        office.bus("w2").claim(thread, mailboxes=["workers"])
    assert told(failure) == (
        f"thread {thread} is held by w1 until {until}",
        "claim without an id to take the next one, or wait with --wait",
        {"thread": thread, "holder": "w1", "expires_at": until},
    )


def test_a_claim_of_a_thread_that_is_delayed_says_until_when(office, leader, worker):
    thread = leader.send(to="w1", subject="later", delay_seconds=5).thread.id
    at = rfc3339(office.clock.wall_ms + 5_000)

    with refused("nothing_available") as failure:
        worker.claim(thread)
    assert told(failure) == (
        f"thread {thread} becomes available at {at}",
        "--wait S waits for one",
        {"thread": thread, "available_at": at},
    )


def test_a_claim_of_what_is_final_or_unknown_is_refused(leader, worker):
    thread, token = claimed(leader, worker)
    worker.done(thread, token, body="result")

    with refused("invalid_state") as failure:
        worker.claim(thread, mailboxes=["workers"])
    assert failure.value.details == {"thread": thread, "state": "done"}
    with refused("not_found"):
        worker.claim(TASK_ID_OF_NOBODY)


def test_a_claim_that_finds_nothing_names_the_mailboxes(leader, worker):
    with refused("nothing_available") as failure:
        worker.claim(mailboxes=["workers", "builders"])
    assert told(failure) == (
        "nothing to claim in w1, workers, builders",
        "--wait S waits for one",
        {},
    )


def test_a_claim_from_a_mailbox_that_is_nearly_named_asks_for_the_other(leader, worker):
    leader.send(to="workers", subject="task")

    with refused("nothing_available") as failure:
        worker.claim(mailboxes=["workres"])
    assert failure.value.hint == "did you mean --mailbox workers?"
    with refused("nothing_available") as failure:
        worker.claim(mailboxes=["something-else"])
    assert failure.value.hint == "--wait S waits for one"


@pytest.mark.parametrize("seconds", [0.5, 86_401])
def test_a_claim_checks_its_numbers_before_it_takes_anything(leader, worker, seconds):
    thread = leader.send(to="w1", subject="task").thread.id

    with refused("usage"):
        worker.claim(lease_seconds=seconds)
    with refused("usage"):
        worker.claim(wait_seconds=-1)
    assert leader.show(thread).thread.state == "pending"


def test_a_lease_lasts_as_long_as_was_asked_for_or_300_seconds(leader, worker):
    leader.send(to="w1", subject="one")
    leader.send(to="w1", subject="two")

    assert worker.claim(lease_seconds=1.5).lease.lease_ms == 1500
    assert worker.claim().lease.lease_ms == 300_000


def test_who_claims_is_remembered_as_a_reader(office, leader, worker):
    with refused("nothing_available"):
        worker.claim(mailboxes=["workers"])

    assert leader.send(to="workers", subject="task").recipient_known
    assert not leader.send(to="builders", subject="task").recipient_known


def test_a_wait_that_ends_says_why_a_named_thread_was_not_to_be_had(office, leader, worker):
    thread, _ = claimed(leader, worker)
    second = office.bus("w2")
    until = rfc3339(office.clock.wall_ms + 60_000)

    with refused("timeout") as failure:
        wait_out(office, lambda: second.claim(thread, mailboxes=["workers"], wait_seconds=2))
    assert told(failure) == (
        f"nothing could be claimed within 2 s (thread {thread} is held by w1 until {until})",
        "call again to go on waiting",
        {"thread": thread, "holder": "w1", "expires_at": until},
    )
    with refused("timeout") as failure:
        wait_out(office, lambda: second.claim(wait_seconds=1.5))
    assert told(failure) == (
        "nothing could be claimed within 1.5 s",
        "call again to go on waiting",
        {},
    )


def wait_out(office, call, seconds=0.25):
    """Make a call during which so much time passes with each look at the clock."""
    clock, now = office.clock, office.clock.now

    def ticking():
        clock.advance(seconds)
        return now()

    clock.now = ticking
    try:
        return call()
    finally:
        del clock.now


def test_a_wait_takes_a_thread_as_soon_as_it_is_there(office, leader, worker):
    leader.send(to="w1", subject="later", delay_seconds=3)

    claim = wait_out(office, lambda: worker.claim(wait_seconds=60))

    assert claim.thread.subject == "later"


def test_a_wait_for_a_named_thread_ends_when_its_holder_has_died(office, leader, worker):
    thread, _ = claimed(leader, worker)
    second = office.bus("w2")

    def wait():
        return second.claim(thread, mailboxes=["workers"], wait_seconds=3600)

    claim = wait_out(office, wait, seconds=20)

    assert (claim.thread.id, claim.redelivered) == (thread, True)


def test_a_refusal_that_no_time_changes_ends_a_wait_at_once(leader, worker):
    thread, token = claimed(leader, worker)
    worker.done(thread, token, body="result")

    with refused("invalid_state"):
        worker.claim(thread, mailboxes=["workers"], wait_seconds=3600)


# -- what the token is judged by -------------------------------------------------------------


def test_a_token_that_is_not_the_current_one_is_told_who_holds_the_thread(office, leader, worker):
    thread, token = claimed(leader, worker)
    office.clock.advance(61)
    office.bus("w2").claim(mailboxes=["workers"], lease_seconds=60)
    until = rfc3339(office.clock.wall_ms + 60_000)

    with refused("lease_lost") as failure:
        worker.renew(thread, token)
    assert told(failure) == (
        f"the token is not the current one of thread {thread}, which is now held by w2",
        "stop working on it; nothing was changed. `claim` gets a new lease if it is pending",
        {
            "thread": thread,
            "state": "claimed",
            "reason": None,
            "holder": "w2",
            "epoch": 2,
            "token_epoch": 1,
            "expires_at": until,
        },
    )


def test_a_token_that_was_never_given_out_is_told_the_state(leader, worker):
    thread = leader.send(to="workers", subject="task").thread.id

    with refused("lease_lost") as failure:
        worker.done(thread, "no-token", body="x")
    message, _, details = told(failure)
    assert message == f"the token is not the current one of thread {thread}, which is now pending"
    assert details == {
        "thread": thread,
        "state": "pending",
        "reason": None,
        "holder": None,
        "epoch": 0,
        "token_epoch": None,
        "expires_at": None,
    }


def test_a_token_that_is_not_the_current_one_is_told_why_its_thread_has_failed(
    office, leader, worker
):
    thread, token = claimed(leader, worker, max_deliveries=1)
    office.clock.advance(61)
    leader.fetch()

    with refused("lease_lost") as failure:
        worker.done(thread, token, body="too late")
    message, _, details = told(failure)
    assert message == (
        f"the token is not the current one of thread {thread}, which is now failed (exhausted)"
    )
    assert (details["state"], details["reason"]) == ("failed", "exhausted")


def test_a_token_serves_its_own_thread_only(leader, worker):
    _, token = claimed(leader, worker)
    other, _ = claimed(leader, worker)

    with refused("lease_lost"):
        worker.done(other, token, body="x")


def test_a_lease_that_has_ended_says_how(leader, worker):
    thread, token = claimed(leader, worker)
    worker.fail(thread, token, body="broken")

    with refused("invalid_state") as failure:
        worker.renew(thread, token)
    assert told(failure) == (
        f"this lease of thread {thread} has ended: it was failed",
        "claim the thread again to go on, if it is pending",
        {"thread": thread, "state": "failed", "ended_by": "failed"},
    )


def test_the_holder_of_a_cancelled_thread_is_told_the_reason(leader, worker):
    thread, token = claimed(leader, worker)
    leader.cancel(thread)

    with refused("cancelled") as failure:
        worker.update(thread, token, body="x")
    assert told(failure) == (
        f"thread {thread} was cancelled",
        "stop working on it; what you have not handed in is not wanted any more",
        {"thread": thread, "reason": "cancelled"},
    )
    kind, actor, data = last_event(leader)
    assert (kind, actor, data["from"], data["to"]) == (
        "cancel_seen",
        "w1",
        "cancelled",
        "cancelled",
    )
    assert leader.show(thread).thread.cancel_seen


def test_a_file_is_not_copied_for_a_token_that_is_lost(tmp_path, leader, worker):
    thread, _ = claimed(leader, worker)

    for call in (worker.update, worker.done):
        with refused("lease_lost"):
            call(thread, "no-token", body="x", attach=[str(tmp_path / "missing.txt")])


# -- renewing and telling --------------------------------------------------------------------


def test_a_renewal_without_a_length_keeps_that_of_the_lease(office, leader, worker):
    thread, token = claimed(leader, worker)
    office.clock.advance(30)
    renewed = worker.renew(thread, token)
    at = office.clock.wall_ms + 60_000

    assert (renewed.lease.lease_ms, renewed.lease.expires_at, renewed.late) == (60_000, at, False)
    assert renewed.thread == leader.show(thread).thread
    assert last_event(leader) == (
        "lease_renewed",
        "w1",
        {
            "from": "claimed",
            "to": "claimed",
            "epoch": 1,
            "deliveries": 1,
            "holder": "w1",
            "expires_at": at,
            "late": False,
        },
    )
    assert worker.renew(thread, token, lease_seconds=2.5).lease.lease_ms == 2500
    with refused("usage"):
        worker.renew(thread, token, lease_seconds=0.5)


def test_a_renewal_of_a_lease_that_is_over_is_late(office, leader, worker):
    thread, token = claimed(leader, worker)
    office.clock.advance(61)

    assert worker.renew(thread, token).late is True
    assert worker.renew(thread, token).late is False


def test_an_update_tells_how_it_goes_and_renews_the_lease(office, leader, worker):
    thread, token = claimed(leader, worker)
    office.clock.advance(30)
    updated = worker.update(thread, token, body="half", progress=50)

    assert updated.lease.expires_at == office.clock.wall_ms + 60_000
    assert (updated.message.kind, updated.message.sender, updated.message.progress) == (
        "progress",
        "w1",
        50,
    )
    assert (updated.thread.progress, updated.late, updated.replayed) == (50, False, None)
    kind, actor, data = last_event(leader)
    assert (kind, actor, data["progress"], data["late"]) == ("thread_updated", "w1", 50, False)
    assert data["message"] == updated.message.id
    again = worker.update(thread, token, body="more")
    assert (again.thread.progress, again.message.progress) == (50, None)
    office.clock.advance(61)
    assert worker.update(thread, token, progress=60).late is True
    assert last_event(leader)[2]["late"] is True


def test_an_update_of_nothing_is_refused(tmp_path, leader, worker):
    thread, token = claimed(leader, worker)

    with refused("usage") as failure:
        worker.update(thread, token)
    assert told(failure) == (
        "an update needs a body, a progress or an attachment",
        "to extend the lease alone, use `renew`",
        {},
    )
    file = tmp_path / "log.txt"
    file.write_text("log")
    assert worker.update(thread, token, attach=[str(file)]).message.artifacts
    for progress in (-1, 101, 1.5):
        with refused("usage") as failure:
            worker.update(thread, token, progress=progress)
        assert failure.value.message == (
            f"progress must be a whole number from 0 to 100, not {progress}"
        )
    assert worker.update(thread, token, progress=0).thread.progress == 0
    assert worker.update(thread, token, progress=100).thread.progress == 100


def test_an_update_with_a_key_happens_once(leader, worker):
    thread, token = claimed(leader, worker)
    first = worker.update(thread, token, body="one", progress=1, key="k")

    assert first.replayed is False
    again = worker.update(thread, token, body="one", progress=1, key="k")
    assert again.replayed is True and again.message == first.message
    for changes in ({"body": "two", "progress": 1}, {"body": "one", "progress": 2}):
        with refused("key_conflict"):
            worker.update(thread, token, **changes, key="k")


# -- asking ----------------------------------------------------------------------------------


def test_a_question_has_its_options_and_its_deadline(office, leader, worker):
    thread, token = claimed(leader, worker)
    asked = worker.ask(thread, token, body="Which?", options=["a", "b"], deadline_seconds=2.5)
    deadline = office.clock.wall_ms + 2500

    assert (asked.message.kind, asked.message.options, asked.message.deadline) == (
        "question",
        ("a", "b"),
        deadline,
    )
    assert (asked.thread.state, asked.thread.question) == ("blocked", asked.message.id)
    assert (asked.thread.question_deadline, asked.late, asked.already) == (deadline, False, False)
    kind, actor, data = last_event(leader)
    assert (kind, actor, data["deadline"], data["late"]) == (
        "question_asked",
        "w1",
        deadline,
        False,
    )


def test_a_question_without_a_deadline_has_none(leader, worker):
    thread, token = claimed(leader, worker)
    asked = worker.ask(thread, token, body="Which?")

    assert (asked.message.deadline, asked.thread.question_deadline) == (None, None)
    assert last_event(leader)[2]["deadline"] is None


def test_a_question_is_the_same_with_the_same_options_only(office, leader, worker):
    thread, token = claimed(leader, worker)
    first = worker.ask(thread, token, body="Which?", options=["a", "b"])
    again = worker.ask(thread, token, body="Which?", options=["a", "b"])

    assert again.already is True and again.message == first.message and again.late is False
    for body, options in (("Which?", ["a"]), ("What?", ["a", "b"])):
        with refused("invalid_state"):
            worker.ask(thread, token, body=body, options=options)
    office.clock.advance(61)
    assert worker.ask(thread, token, body="Which?", options=["a", "b"]).late is True


def test_what_cannot_be_asked_is_refused(leader, worker):
    thread, token = claimed(leader, worker)

    for wrong in ({"body": ""}, {"body": "x", "options": ["a", "a"]}):
        with refused("usage"):
            worker.ask(thread, token, **wrong)
    with refused("usage") as failure:
        worker.ask(thread, token, body="x", deadline_seconds=0)
    assert (
        failure.value.message
        == "deadline must be a number of seconds from 0.001 to 31622400, not 0"
    )
    assert leader.show(thread).thread.state == "claimed"


def test_a_question_with_a_key_is_asked_once(office, leader, worker):
    thread, token = claimed(leader, worker)
    first = worker.ask(thread, token, body="Which?", options=["a"], deadline_seconds=9, key="k")
    leader.reply(thread, body="a")

    again = worker.ask(thread, token, body="Which?", options=["a"], deadline_seconds=9, key="k")
    assert (again.replayed, again.message) == (True, first.message)
    for changes in ({"options": ["b"]}, {"deadline_seconds": 8}, {"body": "What?"}):
        with refused("key_conflict"):
            worker.ask(
                thread,
                token,
                **{"body": "Which?", "options": ["a"], "deadline_seconds": 9, **changes},
                key="k",
            )
    open_one = worker.ask(thread, token, body="Who?", key="k2")
    assert worker.ask(thread, token, body="Who?", key="k3").already is True
    assert worker.ask(thread, token, body="Who?", key="k3").replayed is True
    assert open_one.replayed is False


# -- ending a lease --------------------------------------------------------------------------

ENDED = {"holder": None, "lease_holder": "w1", "late": False}


def test_a_result_ends_the_lease_and_finishes_the_thread(office, leader, worker):
    thread, token = claimed(leader, worker)
    office.clock.advance(1)
    done = worker.done(thread, token, body="result", payload='{"n": 1}')

    assert (done.message.kind, done.message.payload) == ("result", '{"n": 1}')
    assert (done.late, done.already) == (False, False)
    shown = leader.show(thread).thread
    assert (shown.state, shown.holder, shown.lease) == ("done", None, None)
    assert (shown.finished_at, shown.late) == (office.clock.wall_ms, False)
    kind, actor, data = last_event(leader)
    assert (kind, actor) == ("thread_done", "w1")
    assert (
        data.items()
        >= {
            **ENDED,
            "from": "claimed",
            "reason": None,
            "available_at": None,
            "fatal": False,
            "message": done.message.id,
        }.items()
    )


def test_the_same_result_again_changes_nothing_and_says_so(office, leader, worker):
    thread, token = claimed(leader, worker)
    office.clock.advance(61)
    done = worker.done(thread, token, body="result")
    again = worker.done(thread, token, body="result")

    assert (again.already, again.late, again.message) == (True, True, done.message)
    assert again.thread == leader.show(thread).thread
    for changes in ({"body": "other"}, {"body": "result", "payload": "{}"}):
        with refused("invalid_state"):
            worker.done(thread, token, **changes)


def test_a_failure_is_final_unless_a_retry_is_asked_for(leader, worker):
    thread, token = claimed(leader, worker)
    failed = worker.fail(thread, token, body="broken", fatal=True)

    assert (failed.message.kind, failed.thread.state, failed.thread.reason) == (
        "failure",
        "failed",
        "failed",
    )
    assert failed.thread.fatal is True
    kind, _, data = last_event(leader)
    assert (kind, data["reason"], data["fatal"]) == ("thread_failed", "failed", True)
    again = worker.fail(thread, token, body="broken", fatal=True)
    assert (again.already, again.late, again.message) == (True, False, failed.message)
    assert again.thread == leader.show(thread).thread
    with refused("invalid_state"):
        worker.fail(thread, token, body="broken")
    with refused("invalid_state"):
        worker.fail(thread, token, body="broken", retry_in_seconds=1)


def test_a_failure_that_is_not_fatal_says_so(leader, worker):
    thread, token = claimed(leader, worker)

    assert worker.fail(thread, token, body="broken").thread.fatal is False
    assert last_event(leader)[2]["fatal"] is False


def test_a_failure_with_a_retry_goes_back_to_the_queue(office, leader, worker):
    thread, token = claimed(leader, worker)
    failed = worker.fail(thread, token, body="broken", retry_in_seconds=2.5)
    at = office.clock.wall_ms + 2500

    assert (failed.thread.state, failed.thread.reason, failed.thread.available_at) == (
        "pending",
        "failed",
        at,
    )
    kind, _, data = last_event(leader)
    assert (kind, data["available_at"], data["reason"]) == ("thread_deferred", at, "failed")
    again = worker.fail(thread, token, body="broken", retry_in_seconds=2.5)
    assert (again.already, again.thread, again.message) == (True, failed.thread, failed.message)
    with refused("nothing_available"):
        worker.claim(mailboxes=["workers"])
    office.clock.advance(2.5)
    assert worker.claim(mailboxes=["workers"]).thread.deliveries == 2


def test_a_failure_with_a_retry_of_no_delay_is_available_at_once(leader, worker):
    thread, token = claimed(leader, worker)
    worker.fail(thread, token, body="broken", retry_in_seconds=0)

    assert worker.claim(mailboxes=["workers"]).thread.id == thread


def test_a_retry_without_a_delivery_left_is_exhausted(leader, worker):
    thread, token = claimed(leader, worker, max_deliveries=1)
    failed = worker.fail(thread, token, body="broken", retry_in_seconds=1)

    assert (failed.thread.state, failed.thread.reason) == ("failed", "exhausted")
    assert last_event(leader)[2]["reason"] == "exhausted"
    again = worker.fail(thread, token, body="broken", retry_in_seconds=1)
    assert (again.already, again.thread, again.message) == (True, failed.thread, failed.message)


def test_what_cannot_be_failed_is_refused(leader, worker):
    thread, token = claimed(leader, worker)

    with refused("usage") as failure:
        worker.fail(thread, token, body="x", fatal=True, retry_in_seconds=1)
    assert told(failure) == ("--fatal and --retry-in exclude each other", None, {})
    with refused("usage") as failure:
        worker.fail(thread, token, body="x", retry_in_seconds=-1)
    assert (
        failure.value.message == "retry-in must be a number of seconds from 0 to 31622400, not -1"
    )
    with refused("usage"):
        worker.fail(thread, token, body="")
    assert leader.show(thread).thread.state == "claimed"


def test_a_release_hands_back_untouched(office, leader, worker):
    thread, token = claimed(leader, worker)
    released = worker.release(thread, token, delay_seconds=1.5, body="not mine")
    at = office.clock.wall_ms + 1500

    assert (released.message.kind, released.message.body) == ("release", "not mine")
    assert (released.thread.state, released.thread.reason) == ("pending", "released")
    assert (released.thread.deliveries, released.thread.available_at) == (0, at)
    kind, _, data = last_event(leader)
    assert (kind, data["reason"], data["deliveries"]) == ("thread_released", "released", 0)
    again = worker.release(thread, token, delay_seconds=1.5, body="not mine")
    assert (again.already, again.late, again.message) == (True, False, released.message)
    assert again.thread == leader.show(thread).thread
    for changes in ({"delay_seconds": 1.5}, {"body": "not mine"}):
        with refused("invalid_state"):
            worker.release(thread, token, **changes)


def test_a_release_with_a_wrong_delay_is_refused(leader, worker):
    thread, token = claimed(leader, worker)

    with refused("usage") as failure:
        worker.release(thread, token, delay_seconds=-1)
    message = "delay must be a number of seconds from 0 to 31622400, not -1"
    assert failure.value.message == message


def test_a_release_of_what_was_not_counted_gives_nothing_back(office, leader, worker):
    thread, token = claimed(leader, worker)
    worker.ask(thread, token, body="Which?")
    office.clock.advance(61)
    leader.reply(thread, body="this")
    again = worker.claim(mailboxes=["workers"], lease_seconds=60)
    released = worker.release(thread, again.lease.token)

    assert (released.thread.deliveries, released.thread.uncounted) == (1, True)
    assert worker.claim(mailboxes=["workers"]).thread.deliveries == 1


def test_output_is_attached_also_after_the_lease_has_ended(tmp_path, leader, worker):
    thread, token = claimed(leader, worker)
    file = tmp_path / "output.txt"
    file.write_text("output")
    stored = worker.artifacts.add_file(str(file))
    (attached,) = worker.attach_output(thread, token, [stored])

    assert (attached.name, attached.message_id) == ("output.txt", None)
    assert last_event(leader) == (
        "artifacts_attached",
        "w1",
        {
            "from": "claimed",
            "to": "claimed",
            "epoch": 1,
            "deliveries": 1,
            "holder": "w1",
            "artifacts": [{"name": "output.txt", "sha256": stored.sha256, "bytes": 6}],
        },
    )
    worker.done(thread, token, body="result")
    assert worker.attach_output(thread, token, [stored])
    assert [artifact.name for artifact in leader.show(thread).artifacts] == ["output.txt"] * 2
    with refused("lease_lost"):
        worker.attach_output(thread, "no-token", [stored])


# -- what runs out by itself -----------------------------------------------------------------


def test_an_expired_lease_is_recorded_with_whose_it_was(office, leader, worker):
    thread, _ = claimed(leader, worker)
    expired_at = office.clock.wall_ms + 60_000
    office.clock.advance(61)
    leader.fetch()

    assert last_event(leader) == (
        "lease_expired",
        "_system",
        {
            "from": "claimed",
            "to": "pending",
            "epoch": 1,
            "deliveries": 1,
            "holder": None,
            "lease_holder": "w1",
            "expired_at": expired_at,
            "reason": "lease_expired",
        },
    )
    shown = leader.show(thread).thread
    assert (shown.reason, shown.available_at) == ("lease_expired", office.clock.wall_ms)


def test_the_last_lease_that_expires_is_told_to_the_sender(office, leader, worker):
    thread, _ = claimed(leader, worker, max_deliveries=1)
    office.clock.advance(61)
    ((message, _),) = leader.fetch().items

    assert (message.kind, message.sender) == ("system", "_system")
    assert message.body == "No delivery is left: the last lease expired without a result."
    kind, actor, data = last_event(leader)
    assert (kind, actor, data["to"], data["reason"]) == (
        "lease_expired",
        "_system",
        "failed",
        "exhausted",
    )
    assert data["message"] == message.id
    assert leader.show(thread).thread.finished_at == office.clock.wall_ms


def test_a_blocked_thread_whose_lease_expires_stays_blocked_without_a_holder(
    office, leader, worker
):
    thread, token = claimed(leader, worker)
    worker.ask(thread, token, body="Which?")
    office.clock.advance(61)
    leader.fetch()
    shown = leader.show(thread).thread

    assert (shown.state, shown.holder, shown.uncounted) == ("blocked", None, True)
    assert last_event(leader)[2]["reason"] is None


def test_an_unanswered_question_is_told_to_its_holder(office, leader, worker):
    thread, token = claimed(leader, worker)
    asked = worker.ask(thread, token, body="Which?", deadline_seconds=5)
    office.clock.advance(5)
    (message,) = worker.wait_reply(thread, token, wait_seconds=0).messages

    assert (message.kind, message.sender, message.answers) == (
        "system",
        "_system",
        asked.message.id,
    )
    assert message.body == "unanswered: the question's deadline has passed."
    shown = leader.show(thread).thread
    assert (shown.question, shown.question_deadline, shown.holder) == (None, None, "w1")
    kind, actor, data = last_event(leader)
    assert (kind, actor, data["question"], data["message"]) == (
        "question_expired",
        "_system",
        asked.message.id,
        message.id,
    )


def test_an_unanswered_question_of_nobody_s_goes_back_to_the_queue(office, leader, worker):
    thread, token = claimed(leader, worker)
    worker.ask(thread, token, body="Which?", deadline_seconds=90)
    office.clock.advance(61)
    leader.fetch()
    office.clock.advance(30)
    leader.fetch()
    shown = leader.show(thread).thread

    assert (shown.state, shown.reason, shown.available_at) == (
        "pending",
        "answered",
        office.clock.wall_ms,
    )


def test_no_more_than_32_leases_are_noticed_at_once(office, leader, worker):
    for number in range(34):
        leader.send(to="workers", subject=str(number))
        worker.claim(mailboxes=["workers"], lease_seconds=60)
    office.clock.advance(61)
    held = "SELECT count(*) FROM thread WHERE state = 'claimed'"

    counts = []
    for _ in range(3):
        leader.fetch()
        counts.append(looking(leader.database).only(held)[0])
    assert counts == [2, 0, 0]


# -- when a wait looks again -----------------------------------------------------------------


def due(bus, mailboxes, **options):
    with bus.database.snapshot() as snapshot:
        return bus.due(snapshot, mailboxes, bus.database.clock.now(), **options)


def test_a_wait_looks_again_when_the_next_thing_falls_due(office, leader, worker):
    start = office.clock.now()
    assert due(leader, ["workers"]) == (None, None, None)
    thread, token = claimed(leader, worker)
    leader.send(to="workers", subject="later", delay_seconds=30)
    expiry = start.monotonic_ms + 60_000

    assert due(leader, ["workers"]) == (None, start.wall_ms + 30_000, expiry)
    assert due(leader, ["others"]) == (None, None, None)
    worker.ask(thread, token, body="Which?", deadline_seconds=20)
    assert due(leader, ["workers"]) == (None, start.wall_ms + 20_000, expiry)
    assert due(leader, ["others"]) == (None, start.wall_ms + 20_000, None)


def test_what_is_over_is_worth_a_look_of_those_who_write(office, leader, worker):
    start = office.clock.now()
    thread, token = claimed(leader, worker)
    leader.send(to="workers", subject="later", delay_seconds=30)
    worker.ask(thread, token, body="Which?", deadline_seconds=60)
    office.clock.advance(60)
    question, expiry = start.wall_ms + 60_000, start.monotonic_ms + 60_000

    assert due(leader, ["workers"]) == (None, question, expiry)
    assert due(leader, ["workers"], reaps=False) == (None, None, None)


def test_nothing_is_written_where_nothing_is_due(engine, office, leader, worker):
    claimed(leader, worker)
    office.clock.advance(59)
    before = engine.changes(leader.database)
    leader.reap(["workers"])
    assert engine.changes(leader.database) == before
    office.clock.advance(1)
    leader.reap(["others"])
    assert engine.changes(leader.database) == before
    leader.reap(["workers"])
    assert engine.changes(leader.database) > before


# -- fetching --------------------------------------------------------------------------------


def test_what_is_fetched_comes_with_its_threads(leader, worker):
    sent = leader.send(to="w1", subject="task", body="do it")
    leader.send(to="w1", subject="another")
    fetched = worker.fetch(limit=1)

    assert (fetched.agent, fetched.truncated) == ("w1", True)
    assert (fetched.moves, fetched.next_cursor) == ({"w1": 1}, "1")
    assert fetched.as_json() == {
        "items": [{"message": sent.message.as_json(), "thread": sent.thread.as_json()}],
        "truncated": True,
        "next_cursor": "1",
    }


@pytest.mark.parametrize("limit", [0, 10_001, 1.5])
def test_a_fetch_has_a_limit(worker, limit):
    with refused("usage") as failure:
        worker.fetch(limit=limit)
    assert failure.value.message == f"limit must be a whole number from 1 to 10000, not {limit}"


def test_a_fetch_shows_20_messages_unless_more_are_asked_for(leader, worker):
    for number in range(21):
        leader.send(to="w1", subject=str(number))

    assert len(worker.fetch().items) == 20
    assert worker.fetch().truncated
    assert not worker.fetch(limit=21).truncated


def test_a_fetch_that_waits_in_vain_gives_the_cursor_beside_the_error(office, worker):
    with refused("timeout") as failure:
        wait_out(office, lambda: worker.fetch(mailboxes=["a"], wait_seconds=1.5))
    assert told(failure) == (
        "no message came within 1.5 s",
        "call again to go on waiting; nothing is missed in between",
        {},
    )
    assert failure.value.data == {"items": [], "truncated": False, "next_cursor": "0"}
    with refused("usage"):
        worker.fetch(wait_seconds=-1)


def test_a_peek_leaves_no_trace(leader, worker):
    leader.send(to="w1", subject="task")
    worker.fetch(peek=True)

    assert not leader.send(to="w1", subject="task").recipient_known
    worker.fetch()
    assert leader.send(to="w1", subject="task").recipient_known
