"""What a command says: one JSON value, a text for a terminal, or plain values for a pipe.

Nothing else in the program writes to the standard streams. Text for people is described by
blocks (`Sentence`, `Facts`, `Table`, `Body`); how a block looks on a terminal is the affair of
`terminal`, which is loaded only there.
"""

import contextlib
import errno
import functools
import json
import os
import re
import select
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ..errors import EXITS_WITH_DATA, InboxOrchError, usage
from ..later import Later
from .blocks import Block, harmless, harmless_json, plain, readable
from .escapes import escapes_allowed

_PIECE_BYTES = 64 * 1024
# By the names of programs: what takes out of all that they say what nobody is to read. It has
# `suspects` of a text, `hidden` of one, and `covered` of any value.
_COVERS = {"orch": Later("inbox_orch.orch.patches.hiding")}


class ReaderGone(Exception):
    """The reader of standard output has closed it (EPIPE); the process ends as by SIGPIPE."""


class Output:
    """The standard streams of one command; or, with `hand_over`, the function that takes its
    JSON, for a command that is not run in a shell."""

    def __init__(
        self,
        schema: str,
        *,
        as_json: bool,
        hand_over: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self._schema = schema
        self._hand_over = hand_over
        self._cover = _COVERS.get(schema.partition("/")[0])
        self.as_json = as_json
        self.answered = False
        self.exit_code = 0
        # What stands in the `data` of the result besides what the command gives.
        self.also: dict[str, Any] = {}
        # What stands at the lower end of the terminal, and how wide each of its lines is.
        self._pictured = b""
        self._picture: list[int] = []

    @property
    def terminal(self) -> bool:
        """Whether the output is for a person: on a terminal, or when FORCE_COLOR says so."""
        if self._hand_over is not None:
            return False
        return self._on_terminal() or os.environ.get("FORCE_COLOR", "") not in ("", "0")

    @property
    def paints(self) -> bool:
        """Whether a picture can be kept at the lower end of what is shown."""
        known = bool(os.environ.get("TERM")) and escapes_allowed()
        return self._on_terminal() and not self.as_json and known

    @property
    def on_terminal(self) -> bool:
        """Whether bytes that are written as they are would reach a terminal and drive it."""
        return self._on_terminal()

    @property
    def converses(self) -> bool:
        """Whether a person has called and reads all that is said: both streams go to a terminal,
        and nothing is to be JSON."""
        if self._hand_over is not None or self.as_json or sys.stderr is None:
            return False
        return self._on_terminal() and sys.stderr.isatty()

    def bare(self) -> None:
        """From now on say all as it is: somebody has asked for the very bytes."""
        self._cover = None

    # -- results -----------------------------------------------------------------------------

    def result(self, data: Mapping[str, Any], *blocks: Block) -> None:
        """The result of the command, once.

        Errors: `output_failed`; `ReaderGone` when the output is not read any more.
        """
        # Set before anything is written: whatever happens now, nothing else may follow.
        self.answered = True
        if self.as_json:
            self._write_json({"schema": self._schema, "ok": True, "data": {**data, **self.also}})
        elif self.terminal:
            from .terminal import render

            self._write(self._encoded(render(self._covered(blocks))))
        else:
            self._write(self._encoded("".join(map(plain, self._covered(blocks)))))

    def outcome(self, error: InboxOrchError, *blocks: Block) -> None:
        """A result that is not a plain success (exit 11): the whole of it, and the error.

        The command goes on to its end, and then has the error's exit code.
        """
        if not self.as_json:
            self.result({}, *blocks)
        self.error(error)
        self.exit_code = error.exit_code

    def error(self, error: InboxOrchError) -> None:
        """The failure of the command: JSON on stdout, or text on stderr."""
        if not self.as_json:
            self.complain(error.message)
            if error.hint:
                self.notice(f"hint: {error.hint}")
            return
        if self.answered:
            self.complain(error.message)
            if error.hint:
                self.notice(f"hint: {error.hint}")
            return
        self.answered = True
        value: dict[str, Any] = {"schema": self._schema, "ok": False}
        if error.data is not None or error.exit_code in EXITS_WITH_DATA:
            value["data"] = {**(error.data or {}), **self.also}
        value["error"] = error.as_json()
        self._write_json(value)

    def line(self, value: Mapping[str, Any]) -> None:
        """One line of a stream of JSON Lines, flushed."""
        self.answered = True
        self._write(self._dumped(value) + b"\n")

    def lines(self, values: Iterable[Mapping[str, Any]]) -> None:
        """JSON Lines for a reader that wants all of them: many at a time, because a call of the
        system for each costs more than the line. What comes before an error is written, too."""
        self.answered = True
        piece = bytearray()
        try:
            for value in values:
                piece += self._dumped(value) + b"\n"
                if len(piece) >= _PIECE_BYTES:
                    whole, piece = bytes(piece), bytearray()
                    self._write(whole)
        finally:
            self._write(bytes(piece))

    def last_line(self, data: Mapping[str, Any] | None, error: InboxOrchError | None) -> None:
        """The last line of a stream, with the type `outcome`: the envelope that every other
        command answers with. The command then has the error's exit code, if there is one."""
        value: dict[str, Any] = {"type": "outcome", "schema": self._schema, "ok": error is None}
        if data is not None and (error is None or error.exit_code in EXITS_WITH_DATA):
            value["data"] = data
        if error is not None:
            value["error"] = error.as_json()
            self.exit_code = error.exit_code
        self.line(value)

    def text(self, text: str) -> None:
        """Text as it is: generated code, help. Error `usage` when there is no stream for it."""
        self._require_stream()
        self.answered = True
        self._write(self._encoded(self.as_shown(text)))

    def raw(self, content: bytes) -> None:
        """Bytes as they are: the content of an artifact. Error `usage` when there is no stream
        for them."""
        self._require_stream()
        self.answered = True
        self._write(content)

    def show(self, *blocks: Block) -> None:
        """One more piece of a text that grows (not with --json)."""
        self.result({}, *blocks)

    def picture(self, *blocks: Block) -> None:
        """Show blocks below everything else, in the place of the last picture, until something
        else is written. What is higher or wider than the terminal is cut."""
        from .terminal import picture

        lines, widths = picture(self._covered(blocks))
        content = self._encoded("".join(line + "\n" for line in lines))
        if content != self._pictured or widths != self._picture:
            self._write(content)
            self._picture, self._pictured = widths, content

    @property
    def listens(self) -> bool:
        """Whether a short line would be taken at once: the reader does not stand still."""
        import select

        if sys.stdout is None:
            return True
        try:
            return bool(select.select([], [1], [], 0)[1])
        except OSError:
            return True  # the write itself will tell what is wrong

    # -- notices -----------------------------------------------------------------------------

    def complain(self, message: str) -> None:
        """An error message for people, on stderr."""
        self.notice(f"{self._schema.split('/')[0]}: {message}")

    def notice(self, message: str) -> None:
        """A line on stderr; one that cannot be written is not worth failing for."""
        if sys.stderr is None:
            return
        with contextlib.suppress(InboxOrchError, ReaderGone):
            self._write(b"")  # the picture gives way
        encoding = sys.stderr.encoding or "utf-8"
        line = harmless(self.as_shown(message)) + "\n"
        try:
            os.write(2, line.encode(encoding, "backslashreplace"))
        except OSError:
            return

    # -- what nobody is to read --------------------------------------------------------------

    def as_shown(self, text: str) -> str:
        """A text without what nobody is to read, for one that is written elsewhere."""
        if self._cover is None or not self._cover.suspects(text):
            return text
        hidden: str = self._cover.hidden(text)
        return hidden

    def _covered(self, blocks: tuple[Block, ...]) -> tuple[Block, ...]:
        if self._cover is None:
            return blocks
        covered: tuple[Block, ...] = self._cover.covered(blocks)
        return covered

    # -- writing -----------------------------------------------------------------------------

    def _require_stream(self) -> None:
        if self._hand_over is not None:
            raise usage("there is no standard output to write to", hint="name a file")

    def _write_json(self, value: Mapping[str, Any]) -> None:
        if self._hand_over is not None:
            self._hand_over(json.loads(self._dumped(value)))
            return
        indent = 2 if self._on_terminal() else None
        self._write(self._dumped(value, indent) + b"\n")

    def _dumped(self, value: Mapping[str, Any], indent: int | None = None) -> bytes:
        """UTF-8 where the stream is; ASCII with escapes on any other encoding."""
        unicode = (self._encoding() or "").lower().replace("-", "") == "utf8"
        text = harmless_json(readable(_encoder(indent).encode(value)))
        if self._cover is not None and self._cover.suspects(text):
            value = self._cover.covered(value)
            text = harmless_json(readable(_encoder(indent).encode(value)))
        if not unicode:
            # Outside of strings JSON is ASCII, so all of it may be escaped as in a string.
            text = re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], text)
        # What is left of bytes that are no text becomes an escape that JSON knows, too.
        return text.encode("utf-8", "backslashreplace")

    def _on_terminal(self) -> bool:
        return sys.stdout is not None and sys.stdout.isatty()

    def _encoding(self) -> str | None:
        return sys.stdout.encoding if sys.stdout is not None else None

    def _encoded(self, text: str) -> bytes:
        return text.encode(self._encoding() or "utf-8", "backslashreplace")

    def _write(self, content: bytes) -> None:
        """All of it, to the descriptor itself: nothing stays in a buffer of ours."""
        if sys.stdout is None:
            raise _output_failed("standard output is closed")
        view = memoryview(self._erasing() + content)
        try:
            while view:
                view = view[_write_some(view) :]
        except OSError as error:
            if error.errno == errno.EPIPE:
                raise ReaderGone from error
            raise _output_failed(os.strerror(error.errno or 0)) from error

    def _erasing(self) -> bytes:
        """What takes the picture away, a line at a time from below (CSI F and CSI K of ECMA-48). To
        erase all that is below would be shorter, but tmux keeps a whole screen that is erased so
        among what was scrolled away. A terminal that has become narrower has broken its lines."""
        if not self._picture:
            return b""
        try:
            columns = os.get_terminal_size(1).columns or 80
        except OSError:
            columns = 80
        rows = sum(max(1, -(-width // columns)) for width in self._picture)
        self._picture = []
        return b"\x1b[F\x1b[2K" * rows


def _write_some(content: memoryview) -> int:
    """Bytes written. A caller may have left its end of the pipe non-blocking; wait then."""
    while True:
        try:
            return os.write(1, content)
        except BlockingIOError:
            select.select([], [1], [])


@functools.cache
def _encoder(indent: int | None) -> json.JSONEncoder:
    separators = (",", ": ") if indent else (",", ":")
    return json.JSONEncoder(
        ensure_ascii=False, indent=indent, separators=separators, allow_nan=False
    )


def _output_failed(reason: str) -> InboxOrchError:
    return InboxOrchError(
        "output_failed",
        f"the result could not be written: {reason}",
        hint="what was asked for has been done or not at all; the same call again is safe "
        "with the same key or token",
    )
