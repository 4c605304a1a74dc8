"""What a command works with, no matter what has read its command line: click, or `quick`.

Loaded by every command, so it knows neither.
"""

import contextlib
import gc
import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from ..errors import InboxOrchError
from ..ids import named_by
from .output import Output
from .values import given_again, parse_seconds


class Shell:
    """What the options that every command takes have said; the object of a context."""

    def __init__(self, output: Output) -> None:
        self.output = output
        # By the field that each option is kept in.
        self._said: dict[str, Any] = {}

    def keep(self, field: str, value: Any, called: str) -> None:
        """Take what a common option has said; error `usage` when it has said something already,
        before the command's name."""
        if field in self._said and value is not True:
            raise given_again(called)
        self._said[field] = value

    @property
    def json(self) -> bool:
        """Whether --json was given."""
        return bool(self._said.get("json"))

    @property
    def database(self) -> str | None:
        """The database file of --db, else of INBOX_DB; error `usage` when that is empty."""
        return self._said["database"] if self.database_named else named_by("INBOX_DB")

    @property
    def database_named(self) -> bool:
        """Whether --db was given."""
        return "database" in self._said

    @property
    def database_id(self) -> str | None:
        """The id of --db-id."""
        return self._said.get("database_id")

    @property
    def agent(self) -> str | None:
        """Who is acting, by --agent, else by INBOX_AGENT; error `usage` when that is empty."""
        return self._said["agent"] if "agent" in self._said else named_by("INBOX_AGENT")

    def begin(self) -> None:
        """The command line has been read, and the command runs now, with the garbage collector
        that `program.run` has stopped."""
        # Only now is it sure whether --json was an option, and not the value of one.
        self.output.as_json = self.json
        if not gc.isenabled():
            gc.freeze()
            gc.enable()

    @property
    def busy_seconds(self) -> float:
        """How long a write waits for other writers (INBOX_BUSY_TIMEOUT, in seconds)."""
        text = os.environ.get("INBOX_BUSY_TIMEOUT", "")
        return parse_seconds("INBOX_BUSY_TIMEOUT", text, 0, 3600) if text else 10.0

    @property
    def expected_id(self) -> str | None:
        """The database id to insist on. A --db given by hand overrides INBOX_DB_ID, which
        belongs to the INBOX_DB beside it."""
        if self.database_id is not None or self.database_named:
            return self.database_id
        return named_by("INBOX_DB_ID")


class Context(Protocol):
    """What a command needs to know of the call: a click context does, and so does `quick`'s."""

    def find_object(self, kind: type[Shell], /) -> Shell | None:
        """The object of this type that goes with the call."""

    def call_on_close(self, function: Callable[..., Any], /) -> Callable[..., Any]:
        """Call a function when the command has ended."""


def shell_of(context: Context) -> Shell:
    """The shell of a command's context."""
    shell = context.find_object(Shell)
    assert shell is not None
    return shell


@contextlib.contextmanager
def helpful(command_path: str) -> Iterator[None]:
    """Give a wrong call that has no hint the one that always helps."""
    try:
        yield
    except InboxOrchError as error:
        if error.code == "usage" and error.hint is None:
            error.hint = f"`{command_path} --help` shows how it is called"
        raise
