"""What comes from outside for a run: the last value that is taken, the first that is refused."""

import pytest

from inbox_orch.orch.runs import limits, states
from inbox_orch.shared.errors import InboxOrchError


def said(call, *arguments) -> tuple[str, str, str | None]:
    with pytest.raises(InboxOrchError) as caught:
        call(*arguments)
    return caught.value.code, caught.value.message, caught.value.hint


@pytest.mark.parametrize("title", ["x", " x", "x" * 200, "ä" * 100, "x \u0080", "\ue000", "\ud7ff"])
def test_a_title_of_one_line_is_given_back(title):
    assert limits.check_title(title) == title


@pytest.mark.parametrize("title", ["", "  ", "x" * 201, "ä" * 100 + "x"])
def test_a_blank_or_long_title_is_refused(title):
    message = "a title is 1 to 200 bytes of text, not blank"

    assert said(limits.check_title, title) == ("usage", message, None)


@pytest.mark.parametrize("character", [0x0A, 0x1F, 0x7F, 0xD800, 0xDFFF])
def test_a_title_with_a_control_character_is_refused(character):
    message = "a title is one line of text without control characters"

    assert said(limits.check_title, f"a{chr(character)}b") == ("usage", message, None)


@pytest.mark.parametrize(
    "commands", [(), ("make",) * 50, ("x" * 16384,), ("ä" * 8192,), ("a\nb",), ("\ue000", "\ud7ff")]
)
def test_commands_are_taken(commands):
    assert limits.check_commands(commands) is None


@pytest.mark.parametrize("command", ["", " ", "x" * 16385, "ä" * 8192 + "x", "a\0b"])
def test_a_command_that_is_blank_long_or_has_a_nul_is_refused(command):
    message = "a check is a shell command of 1 to 16384 bytes, not blank"

    assert said(limits.check_commands, ["make", command]) == ("usage", message, None)


@pytest.mark.parametrize("character", [0xD800, 0xDFFF])
def test_a_command_of_half_a_character_is_refused(character):
    assert said(limits.check_commands, [f"a{chr(character)}"]) == (
        "usage",
        "a check is a shell command in UTF-8",
        None,
    )


def test_a_task_has_at_most_50_checks():
    assert said(limits.check_commands, ["make"] * 51) == (
        "usage",
        "a task has at most 50 checks, not 51",
        None,
    )


def test_a_tasks_body_is_given_back_up_to_1_mib():
    whole = "ä" * (512 * 1024)

    assert limits.check_task_body("") == ""
    assert limits.check_task_body(whole) is whole
    assert said(limits.check_task_body, whole + "x") == (
        "usage",
        "the task's body has 1048577 bytes, more than 1048576",
        "put it into the repository, and name the file",
    )


@pytest.mark.parametrize(
    "body, message, hint",
    [
        ("\ud800", "the task's body is not valid text", None),
        (
            "a\0",
            "the task's body has a NUL character",
            "put the file into the repository, and name it",
        ),
    ],
)
def test_a_tasks_body_that_is_no_text_is_refused(body, message, hint):
    assert said(limits.check_task_body, body) == ("usage", message, hint)


# -- states ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "thread_state, reason, attempt_state",
    [
        ("pending", None, "offered"),
        ("claimed", None, "running"),
        ("blocked", None, "blocked"),
        ("done", None, "submitted"),
        ("cancelled", "exhausted", "ending"),
        ("failed", "exhausted", "lost"),
        ("failed", "failed", "failed"),
        ("failed", None, "failed"),
    ],
)
def test_an_attempt_follows_its_thread(thread_state, reason, attempt_state):
    assert states.attempt_state_for(thread_state, reason) == attempt_state


@pytest.mark.parametrize("kind", states.TABLES)
def test_every_transition_of_a_table_is_allowed_and_no_other(kind):
    table = {(t.source, t.target) for t in states.TABLES[kind]}
    names = {name for pair in table for name in pair if name is not None}
    for source in (None, *sorted(names)):
        for target in sorted(names):
            if (source, target) in table:
                states.require(kind, source, target)
                continue
            with pytest.raises(AssertionError) as caught:
                states.require(kind, source, target)
            assert str(caught.value) == f"{kind}: {source} -> {target} is not in the table"


@pytest.mark.parametrize(
    "kind, state, hint, expected",
    [
        ("run", "closed", None, "`orch run reopen` opens it again"),
        (
            "run",
            "cancelling",
            None,
            "it is closed once its last attempt has ended; reopen it then",
        ),
        ("run", "paused", None, "`orch run resume` goes on with it"),
        ("run", "open", None, "`orch run show` tells how things stand"),
        ("run", "paused", "mine", "mine"),
        ("task", "paused", None, "`orch status` tells how things stand"),
        ("task", "active", "mine", "mine"),
    ],
)
def test_a_refusal_says_what_to_do_next(kind, state, hint, expected):
    assert states.refuse(kind, "N", state, "dispatch", hint).as_json() == {
        "code": "invalid_state",
        "message": f"{kind} N is {state}: `dispatch` does not apply to it",
        "hint": expected,
        "retryable": False,
        "details": {"kind": kind, "name": "N", "state": state},
    }
