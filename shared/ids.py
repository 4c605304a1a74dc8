"""Identifiers: ULIDs for things, random tokens for leases, and the rules for names.

`python-ulid` is imported only where an id is made, because the import costs more than most
commands do. `send` is called so often that it goes without.
"""

import _thread
import os
import re
import time
from collections.abc import Sequence

from .errors import InboxOrchError, usage

MAILBOX_PATTERN = r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}"
# Not compiled here: each takes 0.1 ms, and no command needs all of them.
_ULID_PATTERN = r"[0-9A-HJKMNP-TV-Z]{26}"
_BEGINNING_PATTERN = r"[0-9A-HJKMNP-TV-Z]{4,25}"
MOST_CANDIDATES = 5
MAX_KEY_BYTES = 256
_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"  # Crockford's base 32
_RANDOM_BITS = 80

_making = _thread.allocate_lock()
_last_number = 0


def new_id() -> str:
    """A new ULID: 26 characters, sorting by the millisecond of its making; within one process, each
    sorts after those of the same millisecond."""
    from ulid import ULID

    return str(ULID())


def new_thread_id() -> str:
    """A new ULID as `new_id` makes it, without the library."""
    global _last_number
    with _making:
        number = time.time_ns() // 1_000_000 << _RANDOM_BITS | int.from_bytes(os.urandom(10))
        if number >> _RANDOM_BITS == _last_number >> _RANDOM_BITS and number <= _last_number:
            # Not simply the next one: a process that was forked just now has the same last one.
            number = _last_number + 1 + int.from_bytes(os.urandom(4))
        _last_number = number
    return "".join(_ALPHABET[number >> shift & 31] for shift in range(125, -1, -5))


def new_token() -> str:
    """A secret of 128 random bits, in hexadecimal."""
    return os.urandom(16).hex()


def check_id(text: str, kind: str) -> str:
    """The id in its stored form; a text that no id can be is `not_found`, like an unknown one."""
    candidate = text.strip().upper()
    if not re.fullmatch(_ULID_PATTERN, candidate):
        raise InboxOrchError(
            "not_found",
            f"there is no {kind} {quoted(text)}",
            hint=f"a {kind} id has 26 characters; `list` shows them",
            details={"kind": kind, "id": printable(text)},
        )
    return candidate


def beginning_of_id(text: str) -> str | None:
    """The text as the beginning of an id in its stored form, None where it cannot be one: four
    characters are the least, since the first tell only in which month an id was made."""
    beginning = text.strip().upper()
    return beginning if re.fullmatch(_BEGINNING_PATTERN, beginning) else None


def ambiguous(kind: str, text: str, candidates: Sequence[str]) -> InboxOrchError:
    """Error `usage` for a beginning that several things have; `candidates` are their names."""
    shown = ", ".join(candidates[:MOST_CANDIDATES])
    more = ", …" if len(candidates) > MOST_CANDIDATES else ""
    return usage(
        f"{quoted(text)} is the beginning of several {kind}s: {shown}{more}",
        hint="give more of the one that is meant",
        **{f"{kind}s": [*candidates[:MOST_CANDIDATES]]},
    )


def check_name(text: str, what: str) -> str:
    """A mailbox or agent name, compared exactly; error `usage`."""
    if not re.fullmatch(MAILBOX_PATTERN, text):
        raise usage(
            f"{what} {quoted(text)} is not a valid name",
            hint="1 to 64 letters, digits, '.', '_' or '-', the first a letter or a digit",
        )
    return text


def check_named(text: str, called: str) -> str:
    """A text that is to name something; error `usage` for an empty one, which names nothing and
    is never taken for a default. `called` is the option or argument that it was given for."""
    if not text:
        raise usage(f"{called} is empty", hint="a variable may not be set")
    return text


def named_by(variable: str) -> str | None:
    """What an environment variable names, None where it is not set; error `usage` for an empty
    one."""
    text = os.environ.get(variable)
    if text == "":
        raise usage(f"{variable} is empty", hint=f"unset {variable}, or let it name something")
    return text


def refuse_text(values: object, what: str) -> None:
    """Error `usage` where one text was given for several, which would be taken letter by letter."""
    if isinstance(values, (str, bytes)):
        raise usage(f"`{what}` takes a list, not one text", hint=f"`{what}=[…]`")


def check_key(text: str) -> str:
    """An idempotency key: printable, not blank, at most 256 bytes; error `usage`."""
    if not text.strip() or not text.isprintable() or len(text.encode()) > MAX_KEY_BYTES:
        raise usage(
            f"the key {quoted(text)} cannot be used",
            hint=f"a key is printable text of 1 to {MAX_KEY_BYTES} bytes, not blank",
        )
    return text


def plain_number(value: float) -> str:
    """A number as people write it, whatever its size: `31622400`, `0.25`."""
    if value != value or value in (float("inf"), float("-inf")):
        return str(value)
    text = f"{value:.9f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def counted(number: int, one: str, several: str | None = None) -> str:
    """`1 task`, `0 tasks`, `1,200 tasks`; `several` where an s is not enough."""
    return f"{number:,} {one if number == 1 else several or one + 's'}"


def quoted(text: str, limit: int = 80) -> str:
    """`printable` in quotes; `repr` would escape what is escaped already."""
    shown = printable(text, limit)
    return f'"{shown}"' if "'" in shown and '"' not in shown else f"'{shown}'"


def printable(text: str, limit: int = 80) -> str:
    """The text cut to `limit` characters with unprintable ones escaped, for messages."""
    escaped = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "backslashreplace").decode("ascii")
        for c in text[: limit + 1].encode("utf-8", "backslashreplace").decode("utf-8")
    )
    return escaped if len(escaped) <= limit else escaped[: limit - 1] + "…"
