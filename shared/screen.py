"""The whole terminal, for a view that stays: painted at once, left as it was found.

Keys, a resize and a return from the background each make a descriptor readable, so that they
can be waited for beside anything else. Knows nothing of what is shown.
"""

import contextlib
import os
import re
import signal
import sys
import termios
import tty
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Any, NamedTuple

from .errors import usage
from .output import Output, escapes_allowed

# xterm's alternate screen, bracketed paste (xterm control sequences, "Private Modes"); ECMA-48.
_ENTER = b"\x1b[?1049h\x1b[?2004h\x1b[?25l\x1b[2J"
_LEAVE = b"\x1b[?25h\x1b[?2004l\x1b[?1049l"
_HOME, _LINE_END, _DOWN_END = b"\x1b[H", b"\x1b[K", b"\x1b[J"

_PASTE = re.compile(r"\x1b\[200~(.*?)\x1b\[201~", re.DOTALL)
_SEQUENCE = re.compile(r"\x1b[\[O][0-9;?]*[ -/]*[@-~]")
_NAMES = {
    "\x1b[A": "up", "\x1bOA": "up", "\x1b[B": "down", "\x1bOB": "down",
    "\x1b[C": "right", "\x1bOC": "right", "\x1b[D": "left", "\x1bOD": "left",
    "\x1b[5~": "page up", "\x1b[6~": "page down",
    "\x1b": "escape", "\r": "enter", "\n": "enter", "\t": "tab",
    "\x7f": "backspace", "\x08": "backspace", "\x15": "clear", "\x04": "end",
}  # fmt: skip


class Key(NamedTuple):
    """A key with a name, or text that was typed or pasted."""

    name: str = ""
    text: str = ""


class Screen:
    """While entered, the terminal is this view's. Works in the main thread alone (signal(3))."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._shown: tuple[os.terminal_size, list[bytes]] | None = None
        self._before: dict[int, Any] = {}
        self._typed = b""
        self._settings: list[Any] = []
        self._reader, self._writer = -1, -1

    @staticmethod
    def possible() -> bool:
        """Whether there is a terminal to read from and to paint on."""
        there = sys.stdin is not None and sys.stdin.isatty()
        there = there and sys.stdout is not None and sys.stdout.isatty()
        return there and bool(os.environ.get("TERM")) and escapes_allowed()

    def __enter__(self) -> "Screen":
        self._settings = termios.tcgetattr(0)
        self._reader, self._writer = os.pipe()
        for descriptor in (self._reader, self._writer):
            os.set_blocking(descriptor, False)
        try:
            for number, handler in (
                (signal.SIGWINCH, self._changed),
                (signal.SIGTSTP, self._stop),
            ):
                self._before[number] = signal.signal(number, handler)
            self._take()
        except BaseException:
            self._give_back()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._give_back()

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Have input when there is a key to read, or everything is to be painted again."""
        return (0, self._reader)

    @property
    def size(self) -> os.terminal_size:
        """As it is now."""
        try:
            size = os.get_terminal_size(1)
        except OSError:
            size = os.terminal_size((80, 24))
        return os.terminal_size((size.columns or 80, size.lines or 24))

    def keys(self) -> list[Key]:
        """What has been typed since the last call; `end` when the terminal is gone."""
        with contextlib.suppress(BlockingIOError):
            while os.read(self._reader, 1024):
                pass
        if not _readable(0):
            return []
        try:
            content = os.read(0, 65536)
        except OSError:
            content = b""
        if not content:
            return [Key("end")]
        self._typed += content
        text, self._typed = _decoded(self._typed)
        return list(_keys_in(text))

    def paint(self, lines: Sequence[str]) -> None:
        """Show these lines, each of which fits; nothing is sent when nothing has changed."""
        size = self.size
        encoded = [line.encode("utf-8", "backslashreplace") for line in lines[: size.lines]]
        if self._shown == (size, encoded):
            return
        self._shown = (size, encoded)
        # No line end after the last one, which would scroll.
        body = (_LINE_END + b"\r\n").join(encoded)
        self._output.raw(_HOME + body + _LINE_END + _DOWN_END)

    # -- the terminal ------------------------------------------------------------------------

    def _take(self) -> None:
        self._shown = None
        tty.setcbreak(0)
        self._output.raw(_ENTER)

    def _give_back(self) -> None:
        with contextlib.suppress(OSError):
            os.write(1, _LEAVE)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(0, termios.TCSADRAIN, self._settings)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        for descriptor in (self._reader, self._writer):
            os.close(descriptor)

    def _changed(self, number: int, frame: FrameType | None) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(self._writer, b"!")

    def _stop(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-Z: the shell gets its terminal as it was, and `fg` brings the view back."""
        with contextlib.suppress(OSError):
            os.write(1, _LEAVE)
        termios.tcsetattr(0, termios.TCSADRAIN, self._settings)
        signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, self._stop)
        self._take()
        self._changed(number, frame)


def require_terminal(hint: str) -> None:
    """Error `usage` where there is no terminal to show a view on."""
    if os.environ.get("NO_COLOR"):
        raise usage(
            "this view has to paint, and NO_COLOR refuses escape sequences",
            hint=f"set NO_COLOR to nothing for this command; {hint}",
        )
    if not Screen.possible():
        raise usage("this is a view for a terminal, and there is none", hint=hint)


def _readable(descriptor: int) -> bool:
    import select

    return bool(select.select([descriptor], [], [], 0)[0])


def _decoded(content: bytes) -> tuple[str, bytes]:
    """Text, and the beginning of a character that has not come as a whole."""
    for length in range(len(content), max(-1, len(content) - 4), -1):
        with contextlib.suppress(UnicodeDecodeError):
            return content[:length].decode(), content[length:]
    return content.decode("utf-8", "replace"), b""


def _keys_in(text: str) -> Iterator[Key]:
    position = 0
    while position < len(text):
        pasted = _PASTE.match(text, position)
        sequence = pasted or _SEQUENCE.match(text, position)
        if pasted:
            yield Key(text=pasted[1].replace("\r\n", "\n").replace("\r", "\n"))
        elif sequence:
            if sequence[0] in _NAMES:
                yield Key(_NAMES[sequence[0]])
        elif text[position] in _NAMES:
            yield Key(_NAMES[text[position]])
        elif text[position].isprintable():
            yield Key(text=text[position])
        position = sequence.end() if sequence else position + 1
