"""The things of the bus in JSON: every key, and what stands there when there is nothing."""

import pytest

from inbox_orch.inbox.domain.model import Artifact, Lease, Message, Thread

AT = 1_700_000_000_123
AT_TEXT = "2023-11-14T22:13:20.123Z"
LATER, LATER_TEXT = AT + 60_000, "2023-11-14T22:14:20.123Z"
FILE = Artifact("log.txt", "ab" * 32, 9, 7, AT, False)
FILE_JSON = {
    "name": "log.txt",
    "sha256": "ab" * 32,
    "bytes": 9,
    "message": "7",
    "created_at": AT_TEXT,
    "pruned": False,
}


def a_message(**changes) -> Message:
    values = {
        "id": 7,
        "thread_id": "T",
        "kind": "question",
        "sender": "worker",
        "to": ("lead", "third"),
        "body": "which?",
        "body_sha256": "cd" * 32,
        "body_bytes": 6,
        "payload": '{"a": [1]}',
        "options": ("x", "y"),
        "deadline": LATER,
        "progress": 50,
        "answers": 3,
        "epoch": 2,
        "created_at": AT,
        "artifacts": (FILE,),
    }
    return Message(**{**values, **changes})


def a_thread(**changes) -> Thread:
    flags = ("sealed", "fatal", "late", "pruned", "uncounted", "cancel_seen")
    values = {
        **dict.fromkeys(Thread._fields),
        **dict.fromkeys(flags, False),
        "id": "T",
        "number": 4,
        "subject": "do it",
        "sender": "lead",
        "mailbox": "box",
        "state": "pending",
        "priority": 3,
        "available_at": AT,
        "deliveries": 1,
        "max_deliveries": 5,
        "epoch": 2,
        "created_at": AT,
        "updated_at": LATER,
    }
    return Thread(**{**values, **changes})


THREAD_JSON = {
    "id": "T",
    "subject": "do it",
    "sender": "lead",
    "mailbox": "box",
    "state": "pending",
    "priority": 3,
    "sealed": False,
    "available_at": AT_TEXT,
    "deliveries": 1,
    "max_deliveries": 5,
    "epoch": 2,
    "holder": None,
    "question": None,
    "question_deadline": None,
    "progress": None,
    "reason": None,
    "fatal": False,
    "late": False,
    "created_at": AT_TEXT,
    "updated_at": LATER_TEXT,
    "finished_at": None,
    "pruned": False,
    "lease": None,
}


def test_an_artifact_names_its_message_as_text():
    assert FILE.as_json() == FILE_JSON
    assert FILE._replace(message_id=None).as_json() == FILE_JSON | {"message": None}


def test_a_message_has_every_key():
    assert a_message().as_json() == {
        "id": "7",
        "thread": "T",
        "kind": "question",
        "sender": "worker",
        "to": ["lead", "third"],
        "created_at": AT_TEXT,
        "body": "which?",
        "body_bytes": 6,
        "body_sha256": "cd" * 32,
        "body_truncated": False,
        "payload": {"a": [1]},
        "options": ["x", "y"],
        "deadline": LATER_TEXT,
        "progress": 50,
        "answers": "3",
        "artifacts": [FILE_JSON],
    }


def test_a_message_without_the_rest_has_the_same_keys():
    bare = a_message(payload=None, options=(), deadline=None, answers=None, artifacts=()).as_json()

    assert bare.keys() == a_message().as_json().keys()
    assert (bare["payload"], bare["deadline"], bare["answers"]) == (None, None, None)
    assert (bare["options"], bare["artifacts"]) == ([], [])


@pytest.mark.parametrize(
    "body, shown",
    [
        (None, None),
        ("x" * 4096, "x" * 4096),
        ("x" * 4097, "x" * 4096),
        ("ä" * 2048, "ä" * 2048),
        # A character is not cut into halves.
        ("x" + "ä" * 2048, "x" + "ä" * 2047),
        ("\U0001f600" * 1024, "\U0001f600" * 1024),
        ("\U0001f600" * 1025, "\U0001f600" * 1024),
    ],
)
def test_a_body_is_shown_up_to_4_kib(body, shown):
    found = a_message(body=body).as_json()

    assert found["body"] == shown
    assert found["body_truncated"] is (body != shown)


def test_a_body_is_shown_whole_to_who_asks_for_it():
    found = a_message(body="x" * 5000).as_json(full=True)

    assert (found["body"], found["body_truncated"]) == ("x" * 5000, False)


def test_a_lease_shows_its_token_to_nobody_but_its_holder():
    lease = Lease("T", 2, "worker", 1500, AT, None, LATER, False)
    shape = {
        "thread": "T",
        "epoch": 2,
        "holder": "worker",
        "lease_seconds": 1.5,
        "acquired_at": AT_TEXT,
        "renewed_at": None,
        "expires_at": LATER_TEXT,
        "expired": False,
    }

    assert lease.as_json() == shape
    assert lease._replace(renewed_at=AT).as_json() == shape | {"renewed_at": AT_TEXT}
    assert lease._replace(token="secret").as_json() == shape | {"token": "secret"}


def test_a_thread_that_nobody_has_touched_has_every_key():
    assert a_thread().as_json() == THREAD_JSON


def test_a_thread_with_everything_shows_all_of_it():
    lease = Lease("T", 2, "worker", 1500, AT, None, LATER, True)
    changes = {"holder": "worker", "progress": 10, "reason": "failed", "state": "blocked"}
    flags = dict.fromkeys(("sealed", "fatal", "late", "pruned"), True)
    shown = a_thread(
        **changes, **flags, question=7, question_deadline=LATER, finished_at=LATER, lease=lease
    )

    assert shown.as_json() == THREAD_JSON | changes | flags | {
        "question": "7",
        "question_deadline": LATER_TEXT,
        "finished_at": LATER_TEXT,
        "lease": lease.as_json(),
    }
