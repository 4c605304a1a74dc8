"""The range of every number and the size of every text that comes from outside."""

import json
from typing import Any, NoReturn

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import plain_number
from inbox_orch.shared.shell.json_words import once_each, whole_number

DEFAULT_LEASE_SECONDS = 300.0
MIN_LEASE_SECONDS, MAX_LEASE_SECONDS = 1.0, 24 * 3600.0
DEFAULT_WAIT_SECONDS = 90.0
DEFAULT_MAX_DELIVERIES, MOST_DELIVERIES = 5, 1000
MIN_PRIORITY, MAX_PRIORITY = -1000, 1000
MAX_DELAY_SECONDS = 366 * 24 * 3600.0
DEFAULT_FETCH_LIMIT = 20
DEFAULT_LIST_LIMIT, MAX_LIST_LIMIT = 50, 10_000
MAX_BODY_BYTES = 16 * 1024 * 1024
SHOWN_BODY_BYTES = 4096
MAX_PAYLOAD_BYTES = 1024 * 1024
# Far below where the JSON library gives up, which depends on how deep its caller stands.
MAX_PAYLOAD_DEPTH = 100
MAX_SCHEMA_BYTES, MAX_SCHEMA_DEPTH = 64 * 1024, 50
MAX_SUBJECT_BYTES = 1000
MAX_OPTIONS, MAX_OPTION_BYTES = 32, 1000
MAX_ATTACHMENTS = 100
MAX_REAPED = 32
MAX_MAILBOXES = 64


def check_number(name: str, value: float, low: float, high: float, *, whole: bool = False) -> float:
    """`value` if it lies in the range; error `usage` with the range otherwise (NaN included)."""
    if isinstance(value, bool) or not low <= value <= high or (whole and value != int(value)):
        kind = "a whole number" if whole else "a number"
        limits = f"from {plain_number(low)} to {plain_number(high)}"
        raise usage(f"{name} must be {kind} {limits}, not {value!r}")
    return value


def check_seconds(name: str, value: float, low: float, high: float) -> float:
    """A number of seconds in the range; error `usage` with the range otherwise."""
    if isinstance(value, bool) or not low <= value <= high:
        limits = f"from {plain_number(low)} to {plain_number(high)}"
        raise usage(f"{name} must be a number of seconds {limits}, not {value!r}")
    return value


def check_lease_seconds(value: float) -> float:
    """A lease from 1 s to 24 h; error `usage`."""
    return check_seconds("lease", value, MIN_LEASE_SECONDS, MAX_LEASE_SECONDS)


def check_delay_seconds(name: str, value: float, low: float = 0.0) -> float:
    """A delay of at most a year; error `usage`."""
    return check_seconds(name, value, low, MAX_DELAY_SECONDS)


def check_wait_seconds(value: float) -> float:
    """A wait: 0 looks once, infinity blocks; error `usage`."""
    return value if value == float("inf") else check_seconds("wait", value, 0, MAX_DELAY_SECONDS)


def check_subject(subject: str) -> str:
    """One line that is not blank; error `usage`."""
    if not subject.strip() or len(_encoded("subject", subject)) > MAX_SUBJECT_BYTES:
        raise usage(f"a subject is 1 to {MAX_SUBJECT_BYTES} bytes of text, not blank")
    if any(ord(c) < 32 or ord(c) == 127 for c in subject):
        raise usage("a subject is one line without control characters", hint="use the body")
    return subject


def check_body(body: str) -> str:
    """UTF-8 text of 1 byte to 16 MiB without NUL; error `usage`."""
    size = len(_encoded("body", body))
    if size == 0:
        raise usage("the body is empty", hint="give --body TEXT or --body-file PATH")
    if size > MAX_BODY_BYTES:
        raise usage(
            f"the body has {size} bytes, more than {MAX_BODY_BYTES}",
            hint="attach it as a file with --attach",
            body_bytes=size,
        )
    if "\0" in body:
        raise usage(
            f"the body has a NUL character at position {body.index(chr(0))}",
            hint="attach it as a file with --attach",
        )
    return body


def check_payload(text: str) -> str:
    """The text of a JSON object of at most 1 MiB, exactly as given; error `usage`, also for what
    `read_json` refuses."""
    attached = "attach it as a file with --attach"
    value = read_json("payload", text, MAX_PAYLOAD_BYTES, hint=attached)
    if not isinstance(value, dict):
        raise usage("the payload must be a JSON object", hint='for example {"result": [1, 2]}')
    check_depth("payload", value, MAX_PAYLOAD_DEPTH, hint=attached)
    return text


def read_json(what: str, text: str, most_bytes: int, *, hint: str | None = None) -> Any:
    """The value of a JSON text of at most so many bytes; error `usage`, with the hint for one that
    is too large, or so deep that it cannot be read at all.

    Numbers beyond the range of a double, `NaN` and half characters are refused: they could not
    be given back as JSON. So is a key that stands twice: readers differ in which value they take.
    """
    if len(_encoded(what, text)) > most_bytes:
        raise usage(f"the {what} has more than {most_bytes} bytes", hint=hint)
    try:
        value = json.loads(
            text,
            object_pairs_hook=once_each,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=whole_number,
        )
        json.dumps(value, ensure_ascii=False).encode("utf-8")
    except RecursionError as error:
        raise _too_deep(what, MAX_PAYLOAD_DEPTH, hint) from error
    except UnicodeEncodeError as error:
        raise usage(f"the {what} has half a surrogate pair in a string") from error
    except ValueError as error:
        raise usage(f"the {what} is not JSON: {error}") from error
    return value


def check_depth(what: str, value: Any, most_deep: int, *, hint: str | None = None) -> None:
    """Error `usage`, with the hint, for a value that is nested more often."""
    if not _is_within(value, most_deep):
        raise _too_deep(what, most_deep, hint)


def check_schema(text: str) -> str:
    """The text of a JSON Schema of at most 64 KiB, without the blanks between its parts; error
    `usage`. Whether it is one that can be judged by, `accepting` knows."""
    value = read_json("schema", text, MAX_SCHEMA_BYTES)
    if not isinstance(value, dict):
        raise usage(
            "the schema must be a JSON object",
            hint='for example {"type": "object", "required": ["verdict"]}',
        )
    check_depth("schema", value, MAX_SCHEMA_DEPTH)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _is_within(value: Any, depth: int) -> bool:
    """Whether objects and lists are nested at most `depth` times."""
    layer = [value]
    for _ in range(depth + 1):
        parts = [v.values() if isinstance(v, dict) else v for v in layer]
        layer = [v for part in parts for v in part if isinstance(v, (dict, list))]
        if not layer:
            return True
    return False


def _too_deep(what: str, most_deep: int, hint: str | None) -> InboxOrchError:
    return usage(f"the {what} is nested too deeply: more than {most_deep} times", hint=hint)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> Any:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is out of range")
    return value


def check_options(options: tuple[str, ...]) -> tuple[str, ...]:
    """The answers offered with a question; error `usage`."""
    if len(options) > MAX_OPTIONS:
        raise usage(f"at most {MAX_OPTIONS} options can be offered")
    for option in options:
        if not option.strip() or len(_encoded("option", option)) > MAX_OPTION_BYTES:
            raise usage(f"an option is 1 to {MAX_OPTION_BYTES} bytes, not blank")
        if "\0" in option:
            raise usage("an option has a NUL character")
    if len(set(options)) != len(options):
        raise usage("the same option is given twice")
    return options


def parse_cursor(text: str | None) -> int:
    """A cursor as it was given out; error `usage` for anything else."""
    if text is None:
        return 0
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise usage(
            f"{text[:40]!r} is not a cursor",
            hint="give back a `next_cursor` or a message id as it was printed",
        )
    return int(text)


def _encoded(what: str, text: str) -> bytes:
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise usage(
            f"the {what} is not valid Unicode text at character {error.start}",
            hint="convert it to UTF-8",
        ) from error


def nothing_available(message: str, **details: object) -> InboxOrchError:
    """There is nothing to claim now: exit 8."""
    return InboxOrchError(
        "nothing_available", message, hint="--wait S waits for one", details=details
    )
