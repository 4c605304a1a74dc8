"""A terminal of 80 columns, as far as a program can tell."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios
import unicodedata
from pathlib import Path
from typing import NamedTuple

from support.commands import command_path

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
    process = subprocess.Popen(
        [command_path(program), *arguments],
        cwd=folder,
        env={**os.environ, "TERM": "xterm-256color", **environment},
        stdin=slave,
        stdout=slave,
        stderr=subprocess.PIPE,
    )
    os.close(slave)
    text = _read(master)
    _, stderr = process.communicate(timeout=60)
    return Shown(process.returncode, text.replace("\r\n", "\n"), stderr.decode())


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
