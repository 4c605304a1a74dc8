"""Every way in which a seat can end, and that no reply is lost on the way."""

import json

import pytest

from support.chambers import BACKUP, QUEUE, WAL, Chamber


@pytest.fixture
def chamber(tmp_path):
    chamber = Chamber(tmp_path)
    yield chamber
    chamber.close()


@pytest.fixture
def run(chamber):
    return chamber.start()


def test_three_whole_replies_make_a_complete_council(chamber, run):
    for reviewer in ("ada", "bob", "eve"):
        chamber.answer(run, reviewer, WAL)

    counted = chamber.tally(run)

    assert counted.tally.status == "complete"
    assert [(g.id, g.bucket) for g in counted.tally.groups] == [("ada/wal", "consensus")]
    assert counted.view.revision == 1
    chamber.verified()


def test_a_seat_is_pending_then_delivered_then_leased(chamber, run):
    assert chamber.states(run) == {"ada": "pending", "bob": "pending", "eve": "pending"}

    bob = chamber.bus("bob")
    bob.fetch(peek=True)
    assert chamber.states(run)["bob"] == "pending"
    bob.mark_read(bob.fetch())
    assert chamber.states(run)["bob"] == "delivered"
    chamber.claim("bob")
    assert chamber.states(run)["bob"] == "leased"
    assert "bob" in str(chamber.seats(run)["bob"].as_json()["missing_reason"])


def test_a_reply_is_found_wherever_it_was_handed_in(chamber, run):
    text = json.dumps(chamber.reply(run))
    chamber.hand_in("ada", payload=text, body="see the payload")
    chamber.hand_in("bob", body=f"Here it is:\n\n```json\n{text}\n```\nDone.")
    chamber.hand_in("eve", files=chamber.stored("eve", result=text, stdout="Working…\n"))

    seats = chamber.seats(run)

    assert {name: seat.stands.state for name, seat in seats.items()} == dict.fromkeys(
        seats, "valid"
    )
    assert [seat.stands.reply.source for seat in seats.values()] == ["payload", "body", "result"]


@pytest.mark.parametrize("noise", ["a line\n" * 40_000, "☂" * 99_999, "☂" * 99_998 + "aa"])
def test_a_long_standard_output_is_read_from_the_artifact_not_from_the_cut_body(
    chamber, run, noise
):
    text = json.dumps(chamber.reply(run))
    chamber.hand_in(
        "ada",
        body="[the last of 360000 bytes; see the artifact stdout]\n" + text[-100:],
        files=chamber.stored("ada", stdout=noise + text),
    )

    seat = chamber.seats(run)["ada"]

    assert (seat.stands.state, seat.stands.reply.source) == ("valid", "stdout")


def test_exit_0_without_output_is_an_empty_seat_and_is_not_counted(chamber, run):
    chamber.hand_in("ada", files=chamber.stored("ada", stdout="", stderr=""))
    chamber.answer(run, "bob")
    chamber.answer(run, "eve")

    counted = chamber.tally(run)

    assert chamber.states(run)["ada"] == "empty"
    assert counted.tally.status == "degraded"
    assert counted.tally.groups[0].bucket == "majority"


def test_a_reply_that_does_not_parse_is_sent_back_once_with_line_and_column(chamber, run):
    broken = '{"council_id": "x", "title": "a "quoted" word"}'
    chamber.hand_in("ada", body=broken)

    assert chamber.states(run)["ada"] == "pending"
    request = chamber.asked("ada")
    assert broken in request
    assert "line 1" in request and "column" in request
    assert "## S2 Proposal" in request
    chamber.answer(run, "ada")
    assert chamber.states(run)["ada"] == "valid"
    with chamber.scheduler.database.snapshot() as connection:
        rows = connection.execute("SELECT state, raw FROM council_reply ORDER BY created_at")
        kept = {row[0]: bytes(row[1]).decode() for row in rows}
    assert kept["invalid"] == broken
    chamber.verified()


def test_there_is_no_second_repair(chamber, run):
    chamber.hand_in("ada", body="{")
    chamber.states(run)
    chamber.hand_in("ada", body="{")

    assert chamber.states(run)["ada"] == "invalid"
    assert len(chamber.bus("ada").list(mailboxes=("ada",)).items) == 2


@pytest.mark.parametrize(
    "changes, said",
    [
        ({"council_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}, "council_id"),
        ({"brief_sha256": "00" * 32}, "brief_sha256"),
        ({"recommendations": [WAL] * 2}, "twice"),
        ({"recommendations": [{**WAL, "id": f"w{n}"} for n in range(26)]}, "25"),
        ({"recommendations": [{**WAL, "proposal": "x" * 132_000}]}, "131072"),
    ],
    ids=["wrong council", "wrong brief", "an id twice", "26 recommendations", "too large"],
)
def test_a_reply_that_does_not_fit_is_sent_back_with_the_reason(chamber, run, changes, said):
    chamber.answer(run, "ada", **changes)

    assert chamber.states(run)["ada"] == "pending"
    assert said in chamber.asked("ada")


def test_two_different_replies_in_one_text_are_none(chamber, run):
    one, other = chamber.reply(run, WAL), chamber.reply(run, BACKUP)
    chamber.hand_in(
        "ada", body=f"```json\n{json.dumps(one)}\n```\n```json\n{json.dumps(other)}\n```"
    )

    assert chamber.states(run)["ada"] == "pending"
    request = chamber.asked("ada")
    assert "2 different replies" in request
    assert "Enable WAL mode" in request and "Back the file up" in request


def test_a_reply_that_quotes_another_councils_counts_as_itself(chamber, run):
    quoted = chamber.reply(run, BACKUP, council_id="01ARZ3NDEKTSV4RRFFQ69G5FAV")
    own = chamber.reply(run, QUEUE)
    chamber.hand_in("ada", body=f"Before, I said {json.dumps(quoted)}. Now: {json.dumps(own)}")

    chamber.answer(run, "bob", QUEUE)
    chamber.answer(run, "eve", QUEUE)
    assert [g.title for g in chamber.tally(run).tally.groups] == ["Queue writers at a lock file"]


@pytest.mark.parametrize("body", ["declined: I know nothing of SQLite", "Declined"])
def test_a_reviewer_may_decline(chamber, run, body):
    chamber.fail("ada", body)

    seat = chamber.seats(run)["ada"]
    assert seat.stands.state == "declined"
    assert body in seat.as_json()["missing_reason"]


def test_an_abstention_is_an_answer_and_does_not_count(chamber, run):
    chamber.answer(
        run,
        "ada",
        recommendations=[],
        no_recommendations_because="not my field",
        verdict="abstain",
    )
    chamber.answer(run, "bob")
    chamber.answer(run, "eve")

    assert chamber.states(run)["ada"] == "abstained"
    counted = chamber.tally(run)
    assert counted.tally.status == "degraded"
    assert chamber.seats(run)["ada"].as_json()["missing_reason"] == "not my field"


def test_the_true_error_of_a_failed_reviewer_is_told(chamber, run):
    chamber.fail(
        "ada",
        "The command ended with exit status 7.\n\nconnecting\nHTTP 402: payment required\n",
        stdout="",
        stderr="connecting\nHTTP 402: payment required\n",
    )

    seat = chamber.seats(run)["ada"]

    assert seat.stands.state == "failed"
    reason = seat.as_json()["missing_reason"]
    assert "exit status 7" in reason and "402: payment required" in reason


def test_a_whole_reply_of_a_stopped_command_counts_and_is_marked(chamber, run):
    text = json.dumps(chamber.reply(run))
    chamber.fail("ada", "The command was stopped after 2 s, its time limit.", result=text)
    chamber.fail("bob", "The command was stopped after 2 s, its time limit.", stdout=text)
    chamber.answer(run, "eve")

    assert chamber.states(run) == {
        "ada": "valid_after_kill",
        "bob": "valid_after_kill",
        "eve": "valid",
    }
    counted = chamber.tally(run)
    assert counted.tally.status == "complete"
    assert counted.tally.groups[0].bucket == "consensus"
    chamber.verified()


@pytest.mark.parametrize("left", ["Error: quota exceeded, try again later", '{"council_id": "', ""])
def test_what_a_failed_command_said_is_not_taken_for_a_reply(chamber, run, left):
    chamber.fail("ada", "The command ended with exit status 1.", stdout=left)

    assert chamber.states(run)["ada"] == "failed"
    assert len(chamber.bus("ada").list(mailboxes=("ada",)).items) == 1


def test_a_failed_review_is_not_tried_again_by_itself(chamber, run):
    chamber.fail("ada", "no")
    chamber.states(run)
    chamber.clock.advance(600)
    chamber.scheduler.reconcile(run)

    assert chamber.scheduler.dispatch(run).items == ()
    assert len(chamber.bus("ada").list(mailboxes=("ada",)).items) == 1


def test_a_cancelled_thread_is_a_failed_seat(chamber, run):
    thread, _ = chamber.claim("ada")
    chamber.leader_bus.cancel(thread)

    seat = chamber.seats(run)["ada"]
    assert (seat.stands.state, seat.as_json()["missing_reason"]) == (
        "failed",
        "its thread was cancelled",
    )
    chamber.clock.advance(120)
    assert chamber.states(run)["ada"] == "failed"
    chamber.verified()


def test_a_worker_that_dies_three_times_is_a_failed_seat(chamber, run):
    for _ in range(3):
        chamber.claim("ada", lease_seconds=10)
        chamber.clock.advance(20)
        chamber.scheduler.reconcile(run)

    seat = chamber.seats(run)["ada"]
    assert seat.stands.state == "failed"
    assert "no delivery left" in seat.as_json()["missing_reason"]


def test_one_agent_that_answers_for_several_seats_is_told(chamber, run):
    for reviewer in ("ada", "bob", "eve"):
        claimed = chamber.bus("bob").claim(mailboxes=(reviewer,))
        reply = json.dumps(chamber.reply(run, WAL))
        chamber.bus("bob").done(claimed.thread.id, claimed.lease.token, payload=reply)

    counted = chamber.tally(run).tally

    assert [seat.agent for seat in counted.council.seats] == ["bob"] * 3
    assert "one agent (bob)" in counted.banners[0]
