"""What comes from outside: the last value that is taken, the first that is refused, and why."""

import json
import math

import pytest

from inbox_orch.inbox.domain import limits
from inbox_orch.shared.errors import InboxOrchError

ATTACH = "attach it as a file with --attach"
YEAR = 366 * 24 * 3600


def refusal(call, *arguments, **named) -> InboxOrchError:
    with pytest.raises(InboxOrchError) as caught:
        call(*arguments, **named)
    return caught.value


def said(call, *arguments, **named) -> tuple[str, str, str | None]:
    error = refusal(call, *arguments, **named)
    return error.code, error.message, error.hint


def nested(depth: int) -> str:
    """A JSON object in which the innermost of `depth` lists is empty."""
    return '{"a": ' + "[" * depth + "]" * depth + "}"


@pytest.mark.parametrize("value", [1, 5, 5.0, 10])
def test_a_number_in_the_range_is_given_back(value):
    assert limits.check_number("n", value, 1, 10, whole=True) is value


@pytest.mark.parametrize("value", [0.499, 10.001, math.nan, math.inf, -math.inf, True, False])
def test_a_number_outside_of_the_range_is_refused_with_the_range(value):
    message = f"n must be a number from 0.5 to 10, not {value!r}"

    assert said(limits.check_number, "n", value, 0.5, 10) == ("usage", message, None)


def test_a_number_with_a_fraction_is_taken_unless_it_has_to_be_whole():
    assert limits.check_number("n", 1.5, 1, 10) == 1.5
    assert said(limits.check_number, "n", 1.5, 1, 10, whole=True) == (
        "usage",
        "n must be a whole number from 1 to 10, not 1.5",
        None,
    )


@pytest.mark.parametrize(
    "check, taken, refused, message",
    [
        (
            limits.check_lease_seconds,
            1.0,
            0.99,
            "lease must be a number of seconds from 1 to 86400, not 0.99",
        ),
        (
            limits.check_lease_seconds,
            86400.0,
            86400.5,
            "lease must be a number of seconds from 1 to 86400, not 86400.5",
        ),
        (
            limits.check_wait_seconds,
            0,
            -0.1,
            "wait must be a number of seconds from 0 to 31622400, not -0.1",
        ),
        (
            limits.check_wait_seconds,
            YEAR,
            YEAR + 1,
            "wait must be a number of seconds from 0 to 31622400, not 31622401",
        ),
        (
            lambda value: limits.check_delay_seconds("delay", value),
            0,
            -1,
            "delay must be a number of seconds from 0 to 31622400, not -1",
        ),
        (
            lambda value: limits.check_delay_seconds("delay", value, 0.001),
            0.001,
            0,
            "delay must be a number of seconds from 0.001 to 31622400, not 0",
        ),
        (
            lambda value: limits.check_delay_seconds("delay", value),
            YEAR,
            YEAR + 1,
            "delay must be a number of seconds from 0 to 31622400, not 31622401",
        ),
    ],
)
def test_a_length_of_time_has_a_first_and_a_last_value(check, taken, refused, message):
    assert check(taken) == taken
    assert said(check, refused) == ("usage", message, None)


def test_a_wait_may_have_no_end():
    assert limits.check_wait_seconds(math.inf) == math.inf


@pytest.mark.parametrize("subject", ["x", " x ", "ä" * 500, "x" * 1000, "\u0080"])
def test_a_subject_of_one_line_is_given_back(subject):
    assert limits.check_subject(subject) == subject


@pytest.mark.parametrize("subject", ["", "   ", "x" * 1001, "ä" * 500 + "x"])
def test_a_blank_or_long_subject_is_refused(subject):
    message = "a subject is 1 to 1000 bytes of text, not blank"

    assert said(limits.check_subject, subject) == ("usage", message, None)


@pytest.mark.parametrize("character", ["\n", "\t", "\x1f", "\x7f", "\x1b"])
def test_a_subject_with_a_control_character_is_refused(character):
    assert said(limits.check_subject, f"a{character}b") == (
        "usage",
        "a subject is one line without control characters",
        "use the body",
    )


def test_a_body_is_given_back_up_to_16_mib():
    whole = "ä" * (8 * 1024 * 1024)

    assert limits.check_body("x") == "x"
    assert limits.check_body(whole) is whole

    error = refusal(limits.check_body, whole + "x")
    assert (error.message, error.hint, error.details) == (
        "the body has 16777217 bytes, more than 16777216",
        ATTACH,
        {"body_bytes": 16777217},
    )


@pytest.mark.parametrize(
    "body, message, hint",
    [
        ("", "the body is empty", "give --body TEXT or --body-file PATH"),
        ("ab\0c\0", "the body has a NUL character at position 2", ATTACH),
        ("ab\ud800", "the body is not valid Unicode text at character 2", "convert it to UTF-8"),
    ],
)
def test_a_body_that_cannot_be_kept_is_refused(body, message, hint):
    assert said(limits.check_body, body) == ("usage", message, hint)


@pytest.mark.parametrize("text", ["{}", ' {"a": [1, 2.5, null, "\u00e4"]} ', nested(100)])
def test_a_payload_is_given_back_exactly_as_it_was(text):
    assert limits.check_payload(text) is text


def test_a_payload_has_at_most_1_mib():
    text = json.dumps({"a": "x" * (1024 * 1024 - 9)})
    longer = text.replace("x", "xx", 1)

    assert len(text) == 1024 * 1024
    assert limits.check_payload(text) is text
    assert said(limits.check_payload, longer) == (
        "usage",
        "the payload has more than 1048576 bytes",
        ATTACH,
    )


@pytest.mark.parametrize("depth", [101, 5_000, 200_000])
def test_a_payload_that_is_nested_too_deeply_is_refused(depth):
    message = "the payload is nested too deeply: more than 100 times"

    assert said(limits.check_payload, nested(depth)) == ("usage", message, ATTACH)


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": Infinity}', "Infinity is not JSON"),
        ('{"branch": 1, "branch": 1}', "the key 'branch' stands twice in one object"),
        ('{"a": [{"b": 1, "c": 2, "b": 3}]}', "the key 'b' stands twice in one object"),
        ('{"a": 1e999}', "1e999 is out of range"),
        ('{"a": -1e999}', "-1e999 is out of range"),
        pytest.param(f'{{"a": -{"9" * 5000}}}', "a number has too many digits", id="digits"),
    ],
)
def test_a_payload_that_is_no_json_is_refused(text, message):
    assert said(limits.check_payload, text) == (
        "usage",
        f"the payload is not JSON: {message}",
        None,
    )


def test_a_payload_with_half_a_character_is_refused():
    assert said(limits.check_payload, '{"a": "\\ud800"}') == (
        "usage",
        "the payload has half a surrogate pair in a string",
        None,
    )
    assert said(limits.check_payload, '{"a": "\ud800"}') == (
        "usage",
        "the payload is not valid Unicode text at character 7",
        "convert it to UTF-8",
    )


@pytest.mark.parametrize("text", ["[]", "1", '"a"', "null"])
def test_a_payload_that_is_no_object_is_refused(text):
    assert said(limits.check_payload, text) == (
        "usage",
        "the payload must be a JSON object",
        'for example {"result": [1, 2]}',
    )


def test_a_payload_may_have_any_number_of_layers_side_by_side():
    text = json.dumps({"a": {"b": [{"c": 1}] * 200}, "d": [[[]]]})

    assert limits.check_payload(text) is text


@pytest.mark.parametrize("options", [(), ("a",), ("a", "A"), tuple("x" * n for n in range(1, 33))])
def test_options_are_given_back(options):
    assert limits.check_options(options) == options


@pytest.mark.parametrize(
    "options, message",
    [
        (tuple(str(n) for n in range(33)), "at most 32 options can be offered"),
        (("a", " "), "an option is 1 to 1000 bytes, not blank"),
        (("a", "x" * 1001), "an option is 1 to 1000 bytes, not blank"),
        (("a\0",), "an option has a NUL character"),
        (("a", "b", "a"), "the same option is given twice"),
    ],
)
def test_options_that_cannot_be_offered_are_refused(options, message):
    assert said(limits.check_options, options) == ("usage", message, None)


def test_an_option_has_at_most_1000_bytes_of_unicode():
    assert limits.check_options(("x" * 1000,)) == ("x" * 1000,)
    assert said(limits.check_options, ("\udfff",))[1] == (
        "the option is not valid Unicode text at character 0"
    )


def test_a_subject_of_half_a_character_is_refused():
    assert said(limits.check_subject, "a\ud800")[1] == (
        "the subject is not valid Unicode text at character 1"
    )


@pytest.mark.parametrize(
    "text, position", [(None, 0), ("0", 0), ("007", 7), ("9" * 18, 10**18 - 1)]
)
def test_a_cursor_is_the_number_that_it_was_given_out_as(text, position):
    assert limits.parse_cursor(text) == position


@pytest.mark.parametrize("text", ["", "-1", "1.0", " 1", "x", "\u0663", "9" * 19, "x" * 41])
def test_anything_else_is_no_cursor(text):
    assert said(limits.parse_cursor, text) == (
        "usage",
        f"{text[:40]!r} is not a cursor",
        "give back a `next_cursor` or a message id as it was printed",
    )


def test_nothing_available_says_how_to_wait_and_is_worth_a_retry():
    error = limits.nothing_available("nothing to claim in a", thread="T")

    assert error.as_json() == {
        "code": "nothing_available",
        "message": "nothing to claim in a",
        "hint": "--wait S waits for one",
        "retryable": True,
        "details": {"thread": "T"},
    }
