"""Processes that wait for orders: lines of JSON on standard input, one answer a line.

So that a library which lives in another environment takes its turns beside the others. Owns the
starting, the time limits and the end of such processes; what they do is the caller's.
"""

import json
import os
import select
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any


class Silent(Exception):
    """No answer in time, or the process has ended; `str` says how it ended."""


class Role:
    """One such process: `python FILE ARGUMENT…`."""

    def __init__(
        self,
        python: str,
        file: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        folder: Path | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            [python, file, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=None if environment is None else dict(environment),
            cwd=folder,
        )
        self._buffer = b""

    def tell(self, value: Any) -> None:
        """Give it an order."""
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps(value).encode() + b"\n")
            self.process.stdin.flush()
        except BrokenPipeError as error:
            raise Silent(self._how()) from error

    def hear(self, limit_seconds: float) -> Any:
        """Its next answer. Error: `Silent`."""
        assert self.process.stdout is not None
        descriptor = self.process.stdout.fileno()
        while b"\n" not in self._buffer:
            if not select.select([descriptor], [], [], limit_seconds)[0]:
                raise Silent(f"no answer for {limit_seconds:g} s")
            chunk = os.read(descriptor, 65536)
            if not chunk:
                raise Silent(self._how())
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line)

    def ask(self, value: Any, limit_seconds: float) -> Any:
        """An order, and its answer."""
        self.tell(value)
        return self.hear(limit_seconds)

    def end(self) -> None:
        """Stop it, and wait until it has gone."""
        self.process.kill()
        self.process.communicate()

    def _how(self) -> str:
        self.process.kill()
        _, errors = self.process.communicate()
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:]
        return f"ended with {self.process.returncode}: {' '.join(last)}"
