"""A terminal of 80 columns, as far as a program can tell."""

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from support import warm
from support.commands import command_path
from support.timing import PATIENCE_SECONDS

# What colours and styles may send: SGR sequences, nothing else (ECMA-48, section 8.3.117).
SGR = re.compile(r"\x1b\[[0-9;]*m")


class Shown(NamedTuple):
    """What a command has sent to its terminal."""

    code: int
    text: str
    stderr: str

    @property
    def plain(self) -> str:
        """Without colours."""
        return SGR.sub("", self.text)

    @property
    def lines(self) -> list[str]:
        """Without colours, line by line."""
        return self.plain.splitlines()


def show(
    *arguments: str, folder: Path, columns: int = 80, program: str = "inbox", **environment: str
) -> Shown:
    """Run a command with its standard output on a terminal."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = warm.Forked(
        "command",
        [command_path(program), *arguments],
        stdin=slave,
        stdout=slave,
        stderr=subprocess.PIPE,
        cwd=folder,
        environment={**os.environ, "TERM": "xterm-256color", **environment},
    )
    os.close(slave)
    text = _read(master)
    assert process.stderr is not None
    with process.stderr as stream:
        stderr = stream.read()
    code = process.wait(PATIENCE_SECONDS)
    return Shown(code, text.replace("\r\n", "\n"), stderr.decode())


# What a view sends: the cursor, parts of lines, modes of the terminal (ECMA-48, xterm).
_CONTROL = re.compile(r"\x1b\[[?0-9;]*[A-Za-z]")


class Viewed:
    """A command that has a terminal of its own, which sees it as its user would."""

    def __init__(
        self, *line: str, folder: Path, rows: int = 24, columns: int = 80, **environment: str
    ) -> None:
        self.master, slave = pty.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(slave)
        # The first terminal that the leader of a session opens is its own: Ctrl-C works.
        script = 'exec "$@" <"$0" >"$0" 2>"$0"'
        self.process = subprocess.Popen(
            ["sh", "-c", script, os.ttyname(slave), *line],
            cwd=folder,
            env={**os.environ, "TERM": "xterm-256color", **environment},
            start_new_session=True,
        )
        self.slave = slave
        self.sent = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def close(self) -> None:
        """End it, if it has not ended."""
        self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)

    @property
    def after(self) -> list[Any]:
        """The settings of the terminal."""
        return termios.tcgetattr(self.slave)

    @property
    def screen(self) -> list[str]:
        """What was painted last, line by line."""
        painted = self.sent.rpartition("\x1b[H")[2]
        return [line.rstrip("\r") for line in _CONTROL.sub("", painted).split("\n")]

    def resize(self, rows: int, columns: int) -> None:
        """As a window that is dragged."""
        size = struct.pack("HHHH", rows, columns, 0, 0)
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, size)

    def type(self, text: str) -> None:
        """Press keys."""
        os.write(self.master, text.encode())

    def until(self, holds: Callable[[list[str]], bool]) -> list[str]:
        """The screen, once something holds of it."""
        end = time.monotonic() + PATIENCE_SECONDS
        while not holds(self.screen):
            left = end - time.monotonic()
            assert left > 0, self.screen
            if select.select([self.master], [], [], left)[0]:
                self._take()
        return self.screen

    def ended(self) -> int:
        """Its exit status; `sent` has all that it has sent then."""
        end = time.monotonic() + PATIENCE_SECONDS
        # A terminal that nobody reads would keep it waiting.
        while self.process.poll() is None and time.monotonic() < end:
            if select.select([self.master], [], [], 0.05)[0]:
                self._take()
        code = self.process.wait(0)
        while select.select([self.master], [], [], 0)[0]:
            self._take()
        return code

    def _take(self) -> None:
        self.sent += self._decoder.decode(os.read(self.master, 65536))


def _read(master: int) -> str:
    content = bytearray()
    while True:
        try:
            chunk = os.read(master, 65536)
        except OSError:  # how Linux says that the last writer has gone
            break
        if not chunk:
            break
        content += chunk
    os.close(master)
    return content.decode()


def width(line: str) -> int:
    """How many cells a line takes; wide characters take two."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in line
    )
