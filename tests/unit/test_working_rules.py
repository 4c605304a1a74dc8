"""The rules of `inbox work` without any process: verdicts, kept output, terms, commands."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from inbox_orch.inbox.domain import limits
from inbox_orch.inbox.domain.model import Message, Thread
from inbox_orch.inbox.domain.working import STAND_INS, Hold, Standing, Verdict, verdict
from inbox_orch.inbox.services import working
from inbox_orch.inbox.worker.plan import find_command
from inbox_orch.inbox.worker.result import read_result
from inbox_orch.inbox.worker.task import BadTask, Terms, since_then, terms_of
from inbox_orch.shared.adapters.usage import Session
from inbox_orch.shared.processes.endings import Ending
from inbox_orch.shared.processes.kept import HEAD_BYTES, TAIL_BYTES, Kept
from support.buses import refused

THREAD = Thread(*(None,) * len(Thread._fields))
LIVE = Standing(THREAD, Hold.LIVE)
ASKED = LIVE._replace(question_open=True)
ANSWERED = LIVE._replace(answer_unread=True)
ENDINGS = [Ending(0), Ending(1), Ending(75), Ending(None, 9), Ending(None, 15, timed_out=5.0)]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("stopping", [False, True])
@pytest.mark.parametrize(
    "standing, expected",
    [
        (LIVE._replace(hold=Hold.LOST), Verdict.WRITE_NOTHING),
        (LIVE._replace(hold=Hold.CANCELLED), Verdict.WRITE_NOTHING),
        (LIVE._replace(hold=Hold.ENDED, ended_by="done"), Verdict.LEAVE),
    ],
)
def test_a_lease_that_is_gone_decides_before_anything_else(ending, stopping, standing, expected):
    assert verdict(ending, standing, stopping=stopping) is expected


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("standing", [ASKED, ANSWERED])
def test_a_question_decides_before_the_exit_status(ending, standing):
    assert verdict(ending, standing, stopping=False) is Verdict.WAIT


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("standing", [LIVE, ASKED, ANSWERED])
def test_a_worker_that_ends_releases_what_it_cut_short(ending, standing):
    assert verdict(ending, standing, stopping=True) is Verdict.RELEASE


@pytest.mark.parametrize(
    "ending, expected",
    [
        (Ending(0), Verdict.DONE),
        (Ending(75), Verdict.BACK_OFF),
        (Ending(1), Verdict.FAIL),
        (Ending(None, 9), Verdict.FAIL),
        (Ending(0, timed_out=5.0), Verdict.FAIL),
        (Ending(75, timed_out=5.0), Verdict.FAIL),
    ],
)
def test_otherwise_the_ending_decides(ending, expected):
    assert verdict(ending, LIVE, stopping=False) is expected


# -- what is kept of the output ------------------------------------------------------------


@given(st.lists(st.integers(0, 300_000), max_size=12))
@example([HEAD_BYTES, TAIL_BYTES])
@example([HEAD_BYTES + TAIL_BYTES, 1])
@example([1] * 5 + [4 * TAIL_BYTES])
def test_output_is_kept_whole_or_as_its_head_and_tail(sizes):
    stream = b"".join(bytes([65 + n % 26]) * size for n, size in enumerate(sizes))
    kept, start = Kept("stdout", "inbox work"), 0
    for size in sizes:
        kept.add(stream[start : start + size])
        start += size
    content = kept.content()
    assert kept.total == len(stream)
    if len(stream) <= HEAD_BYTES + TAIL_BYTES:
        assert content == stream
        return
    gap = len(stream) - HEAD_BYTES - TAIL_BYTES
    assert content.startswith(stream[:HEAD_BYTES] + b"\n[")
    assert content.endswith(b"]\n" + stream[-TAIL_BYTES:])
    assert f" {gap} bytes of stdout ".encode() in content
    assert len(content) < HEAD_BYTES + TAIL_BYTES + 200


@given(st.text(alphabet="a€😀", max_size=40), st.integers(1, 60))
def test_a_tail_never_begins_inside_a_character(text, most):
    kept = Kept("stdout", "inbox work")
    kept.add(text.encode())
    tail = kept.tail_text(most).rpartition("]\n")[2]
    assert "\ufffd" not in tail
    assert text.endswith(tail)
    assert len(tail.encode()) > min(most, len(text.encode())) - 4


def test_a_tail_can_be_a_body_whatever_was_written():
    kept = Kept("stdout", "inbox work")
    kept.add(b"a\0b\xff")
    assert kept.tail_text(100) == "a\ufffdb\ufffd"


# -- the task ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "asked, found",
    [
        ({"id": "s-1"}, Session("s-1")),
        ({"id": "0199a213-81c0", "agent": "codex"}, Session("0199a213-81c0", "codex")),
        ("s-1", None),
        ({"session": "s-1"}, None),
        ({"id": 1}, None),
        ({"id": ""}, None),
        ({"id": "--dangerously-skip-permissions"}, None),
        ({"id": "a b"}, None),
        ({"id": "é"}, None),
        ({"id": "a\n"}, None),
        ({"id": "a" * 201}, None),
        ({"id": "s-1", "agent": 1}, None),
    ],
)
def test_only_what_is_a_session_is_gone_on_with(asked, found):
    assert terms_of(json.dumps({"session": asked}), None).session == found


def test_the_shorter_time_limit_holds(tmp_path):
    payload = json.dumps({"timeout_seconds": 5, "worktree": str(tmp_path)})
    assert terms_of(payload, None) == Terms(str(tmp_path), 5)
    assert terms_of(payload, 3.0).timeout_seconds == 3.0
    assert terms_of(payload, 30.0).timeout_seconds == 5
    assert terms_of(None, None).timeout_seconds is None


@pytest.mark.parametrize("worktree", ["", "a\0b", 7, [], "/dev/null", "gone"])
def test_a_worktree_that_is_no_folder_is_refused(worktree):
    with pytest.raises(BadTask):
        terms_of(json.dumps({"worktree": worktree}), None)


@pytest.mark.parametrize("limit", [0, -1, "5", True, [], 1e308, 10**400, 366 * 86400 + 1])
def test_a_time_limit_that_is_none_is_refused(limit):
    with pytest.raises(BadTask):
        terms_of(json.dumps({"timeout_seconds": limit}), None)


def test_a_time_limit_may_be_as_long_as_the_option_takes():
    longest = 366 * 24 * 3600
    assert terms_of(json.dumps({"timeout_seconds": longest}), None).timeout_seconds == longest


def test_a_later_message_says_who_when_and_everything_that_came_with_it():
    fields = dict.fromkeys(Message._fields)
    message = Message(**fields)._replace(
        kind="question", sender="w1", created_at=0, body="Which?", options=("a", "b"), artifacts=()
    )
    assert since_then(message) == (
        "\n### question from w1, 1970-01-01T00:00:00.000Z\n\nOptions: a | b\n\nWhich?\n"
    )


# -- the command ---------------------------------------------------------------------------


def test_a_command_is_found_as_an_absolute_path(tmp_path, monkeypatch):
    (tmp_path / "tool").write_text("")
    (tmp_path / "tool").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    assert find_command(["./tool", "-x"]) == (str(tmp_path / "tool"), "-x")
    monkeypatch.setenv("PATH", ".")
    assert find_command(["tool"]) == (str(tmp_path / "tool"),)


@pytest.mark.parametrize("arguments", [[], ["no-such-tool"], ["./tool"], ["/"], ["sh", "a\0b"]])
def test_a_command_that_cannot_be_run_is_a_wrong_call(tmp_path, monkeypatch, arguments):
    (tmp_path / "tool").write_text("not executable")
    monkeypatch.chdir(tmp_path)
    with refused("usage"):
        find_command(arguments)


# -- how a lease stands --------------------------------------------------------------------


@pytest.fixture
def held(office):
    """A thread that w1 holds for 60 s: (services of a worker, id, token)."""
    from inbox_orch.inbox import Bus

    office.bus("leader").send(to="w1", subject="task", body="do it")
    with Bus.open(office.path, agent="w1", clock=office.clock) as bus:
        claimed = working.claim_if_any(bus.desk, (), lease_seconds=60)
        yield bus, claimed.thread.id, claimed.lease.token


def test_a_live_lease_is_due_for_renewal_after_a_third(office, held):
    bus, thread, token = held
    seen = working.standing(bus.desk, thread, token)
    assert (seen.hold, seen.question_open, seen.answer_unread) == (Hold.LIVE, False, False)
    assert seen.renew_at - office.clock.monotonic_ms == 20_000
    assert seen.expires_at - office.clock.monotonic_ms == 60_000


def test_an_expired_lease_stands_until_somebody_notices(office, held):
    bus, thread, token = held
    office.clock.advance(61)
    assert working.standing(bus.desk, thread, token).hold is Hold.LIVE
    office.bus("w2").claim(mailboxes=["w1"])
    assert working.standing(bus.desk, thread, token).hold is Hold.LOST


def test_a_cancel_is_seen_without_being_acknowledged(office, held):
    bus, thread, token = held
    office.bus("leader").cancel(thread)
    assert working.standing(bus.desk, thread, token).hold is Hold.CANCELLED
    assert not working.standing(bus.desk, thread, token).thread.cancel_seen


def test_what_the_command_did_stands_also_after_a_take_over(office, held):
    bus, thread, token = held
    bus.release(thread, token)
    assert not working.standing(bus.desk, thread, token).taken_over
    office.bus("w2").claim(mailboxes=["w1"])
    seen = working.standing(bus.desk, thread, token)
    assert (seen.hold, seen.ended_by, seen.taken_over) == (Hold.ENDED, "released", True)


def test_an_answer_is_unread_until_the_command_was_given_it(office, held):
    bus, thread, token = held
    bus.ask(thread, token, body="Which?")
    assert working.standing(bus.desk, thread, token).question_open
    answer = office.bus("leader").reply(thread, body="this")
    assert working.standing(bus.desk, thread, token).answer_unread
    working.note_given(bus.desk, token, answer.message.id)
    seen = working.standing(bus.desk, thread, token)
    assert (seen.question_open, seen.answer_unread) == (False, False)


def test_a_mere_message_is_no_answer(office, held):
    bus, thread, token = held
    office.bus("leader").reply(thread, body="by the way")
    assert not working.standing(bus.desk, thread, token).answer_unread


def test_the_deadline_of_a_question_is_noticed_by_looking(office, held):
    bus, thread, token = held
    bus.ask(thread, token, body="Which?", deadline_seconds=5)
    office.clock.advance(6)
    seen = working.standing(bus.desk, thread, token)
    assert (seen.question_open, seen.answer_unread) == (False, True)


def test_an_empty_mailbox_says_when_to_look_again(office, held):
    bus, _, _ = held
    office.bus("leader").send(to="w1", subject="later", delay_seconds=30)
    look = working.claim_if_any(bus.desk, (), lease_seconds=60)
    assert look.due_wall_ms == office.clock.wall_ms + 30_000
    office.clock.advance(30)
    assert working.claim_if_any(bus.desk, (), lease_seconds=60).thread.subject == "later"


# -- what a worker writes in the command's stead ---------------------------------------------


def test_the_end_of_a_long_output_stands_in_for_a_body_and_a_whole_output_is_one():
    kept = Kept("stdout", "inbox work")
    kept.add(b"a word, and more")

    assert not kept.tail_text(100).startswith(STAND_INS)
    assert kept.tail_text(5).startswith(STAND_INS)


@pytest.mark.parametrize("content", [b"", b"a\377b", b"a\0b", b"x" * (limits.MAX_BODY_BYTES + 1)])
def test_a_note_on_a_result_that_is_no_body_stands_in_for_one(tmp_path, content):
    path = tmp_path / "result"
    path.write_bytes(content)

    assert read_result(str(path)).note.startswith(STAND_INS)
