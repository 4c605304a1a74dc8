"""What a command works with, whoever has read its command line: click, or `quick`.

Loaded by every command, so it knows neither.
"""

import contextlib
import gc
import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from .errors import InboxOrchError
from .output import Output
from .values import parse_number


class Shell:
    """What the options that every command takes have said; the object of a context."""

    def __init__(self, output: Output) -> None:
        self.output = output
        self.database: str | None = None
        self.database_named = False
        self.database_id: str | None = None
        self.agent: str | None = None
        self.json = False

    @classmethod
    def of_environment(cls, output: Output) -> "Shell":
        """The shell, with what the environment says."""
        shell = cls(output)
        shell.database = os.environ.get("INBOX_DB") or None
        shell.agent = os.environ.get("INBOX_AGENT") or None
        return shell

    def keep(self, field: str, value: Any) -> None:
        """Take what a common option has said."""
        setattr(self, field, value)
        if field == "database":
            self.database_named = True

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
        return parse_number("INBOX_BUSY_TIMEOUT", text, 0, 3600) if text else 10.0

    @property
    def expected_id(self) -> str | None:
        """The database id to insist on. A --db given by hand overrides INBOX_DB_ID, which
        belongs to the INBOX_DB beside it."""
        if self.database_id is not None or self.database_named:
            return self.database_id
        return os.environ.get("INBOX_DB_ID") or None


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
