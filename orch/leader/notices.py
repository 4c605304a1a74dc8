"""Telling somebody who does not look: a notice for each question, failure and decision of a drive,
and for its end.

A notice is one JSON object on the standard input of a command. The drive never waits for one: a
few run at once, the others stand in a short line, and what takes too long is killed.
"""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from types import TracebackType
from typing import Any, NamedTuple, Self

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import quoted
from inbox_orch.shared.processes.groups import signal_group
from inbox_orch.shared.store.temporary import temporary_place

from ..patches.hiding import covered, hidden
from ..runs.limits import check_commands
from ..runs.model import Run
from .drive import Drive, Driven, Line, Step

BELL, DESKTOP = "bell", "desktop"
"""What needs no command of the user's: the terminal's bell, and a notice of the desktop's."""

_MOST_AT_ONCE, _MOST_IN_LINE = 4, 64
_MOST_SECONDS, _LAST_SECONDS = 30.0, 10.0
_MOST_LETTERS = 4000
_APPLE = ("on run said", "display notification (item 2 of said) with title (item 1 of said)")


class Notice(NamedTuple):
    """One thing that somebody may want to know of: a `question`, `failure`, `decision` or `end`.

    `text` is one line for people, `call` what to do about it. `facts` are keys that only some
    types have.
    """

    type: str
    run: str
    task: str | None
    text: str
    call: str | None
    facts: dict[str, Any]

    def as_json(self) -> dict[str, Any]:
        common = {"type": self.type, "run": self.run, "task": self.task, "text": self.text}
        return {**common, "next": self.call, **self.facts}


def notices_of(step: Step) -> list[Notice]:
    """What there is to tell of what has happened."""
    told = [_of_line(step.run, line) for line in step.lines]
    return [notice for notice in told if notice is not None]


def _of_line(run: Run, line: Line) -> Notice | None:
    facts = line.facts
    if line.type == "question":
        return _question(run, facts)
    if line.type == "base_conflict":
        text = f"the results that {facts['key']} needs do not merge: {', '.join(facts['paths'])}"
        call = f"orch conflicts --run {run.name}"
        return Notice("decision", run.name, facts["key"], _line(text), call, {})
    if line.type == "notice":
        return Notice("decision", run.name, None, _line(facts["message"]), facts["hint"], {})
    if line.type == "change" and facts["kind"] == "task_failed":
        text = f"{facts['key']} failed: {facts['data'].get('reason') or 'no reason is given'}"
        call = f"orch report --run {run.name}"
        return Notice("failure", run.name, facts["key"], _line(text), call, {})
    return None


def _question(run: Run, facts: dict[str, Any]) -> Notice:
    message = facts["message"]
    body = hidden(str(message["body"] or ""))
    if "decision" in facts:
        return _decision(run, facts, body)
    more = {"body": body[:_MOST_LETTERS], "options": message["options"] or []}
    return Notice(
        "question",
        run.name,
        facts["key"],
        _line(f"{facts['asked_by']} asks: {body}"),
        f"orch answer --run {run.name} {facts['key']} --body TEXT",
        more,
    )


def _decision(run: Run, facts: dict[str, Any], body: str) -> Notice:
    decision = facts["decision"]
    return Notice(
        "decision",
        run.name,
        facts["key"],
        _line(f"{facts['key']} needs a decision: {decision['sentence']}"),
        f"orch answer --run {run.name} {facts['key']} --decide ANSWER --body HINT",
        {"body": body[:_MOST_LETTERS], "options": decision["answers"]},
    )


def end_of(ending: Driven, failure: InboxOrchError | None) -> Notice:
    """How it has ended; `failure` is what is not a plain success about it."""
    if failure is not None:
        return _end(ending.run, failure.message, failure, ending)
    counts = ", ".join(f"{n} {state}" for state, n in ending.counts.items())
    return _end(ending.run, f"{ending.run.name}: {ending.outcome}. {counts}", None, ending)


def _end(
    run: Run, text: str, failure: InboxOrchError | None, ending: Driven | None = None
) -> Notice:
    facts = {
        "outcome": None if ending is None else ending.outcome,
        "counts": {} if ending is None else ending.counts,
        "error": None if failure is None else failure.code,
    }
    return Notice("end", run.name, None, _line(text), failure.hint if failure else None, facts)


def _line(text: str) -> str:
    return hidden(" ".join(text.split()))[:300]


class Notifier:
    """The commands that are given notices, for as long as a drive lasts.

    `say` is told when one cannot be given, once for each reason.
    """

    def __init__(self, commands: Sequence[str], say: Callable[[str], None]) -> None:
        """Error `usage`: a command is empty, or they are too many."""
        check_commands(commands, "notifier", "run")
        self._commands, self._say = tuple(commands), say
        self._in_line: deque[tuple[str, Notice]] = deque(maxlen=_MOST_IN_LINE)
        self._running: dict[subprocess.Popen[bytes], tuple[str, float]] = {}
        self._said: set[str] = set()

    def on(self, wanted: Drive) -> Drive:
        """The drive, with a look at the commands whenever it wakes up."""
        return wanted.pulsing(self.pulse) if self._commands else wanted

    def through(self, steps: Generator[Step, None, None]) -> Generator[Step, None, None]:
        """The steps of a drive; what has happened is told before each is handed on."""
        with contextlib.closing(steps):
            for step in steps:
                self.tell(*notices_of(step))
                yield step

    @contextlib.contextmanager
    def told_of_failure(self, run: Run) -> Iterator[None]:
        """An error inside is told as the end."""
        try:
            yield
        except InboxOrchError as error:
            self.tell(_end(run, error.message, error))
            raise

    def tell(self, *notices: Notice) -> None:
        """Give these notices to every command, as soon as there is room."""
        for notice in notices:
            self._in_line.extend((command, notice) for command in self._commands)
        self.pulse()

    def pulse(self) -> None:
        """See which commands have ended, end those that took too long, start the next ones."""
        now = time.monotonic()
        for process, (command, begun) in list(self._running.items()):
            if process.poll() is None and now - begun < _MOST_SECONDS:
                continue
            del self._running[process]
            self._end(process, command)
        while self._in_line and len(self._running) < _MOST_AT_ONCE:
            command, notice = self._in_line.popleft()
            if command == BELL:
                self._ring()
            else:
                self._start(command, notice)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give what is still to be given a few seconds; after an interruption, none."""
        interrupted = error is not None and not isinstance(error, Exception)
        until = time.monotonic() + (0.0 if interrupted else _LAST_SECONDS)
        while (self._running or self._in_line) and time.monotonic() < until:
            self.pulse()
            self._wait_for_one(until)
        self._in_line.clear()
        for process, (command, _) in self._running.items():
            self._end(process, command)
        self._running.clear()

    def _wait_for_one(self, until: float) -> None:
        process = next(iter(self._running), None)
        if process is None:
            return
        begun = self._running[process][1]
        left = min(until, begun + _MOST_SECONDS) - time.monotonic()
        try:
            process.wait(max(0.0, left))
        except subprocess.TimeoutExpired:
            return  # the next pulse ends it

    def _start(self, command: str, notice: Notice) -> None:
        words = _desktop(notice) if command == DESKTOP else ("/bin/sh", "-c", command)
        if not words:
            self._complain("neither notify-send nor osascript is there to show a desktop notice")
            return
        try:
            # Unlike a pipe, a file never blocks.
            with tempfile.TemporaryFile(dir=temporary_place()) as told:
                told.write(json.dumps(covered(notice.as_json())).encode() + b"\n")
                told.seek(0)
                process = subprocess.Popen(
                    words,
                    stdin=told,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,
                )
        except (InboxOrchError, OSError, ValueError) as error:  # the last for a NUL in a word
            reason = getattr(error, "strerror", None) or str(error)
            self._complain(f"a notice could not be given to {quoted(command)}: {reason}")
        else:
            self._running[process] = command, time.monotonic()

    def _end(self, process: subprocess.Popen[bytes], command: str) -> None:
        late = process.poll() is None
        if late:  # only then does its number still belong to it
            signal_group(process.pid, signal.SIGKILL)
        code = process.wait()
        if late:
            self._complain(f"the notifier {quoted(command)} took too long, and was ended")
        elif code != 0:
            self._complain(f"the notifier {quoted(command)} ended with exit {code}")

    def _complain(self, text: str) -> None:
        if text not in self._said:
            self._said.add(text)
            self._say(f"{text}; the run goes on")

    def _ring(self) -> None:
        if sys.stderr is not None and sys.stderr.isatty():
            with contextlib.suppress(OSError):  # the terminal has gone away, say
                os.write(2, b"\a")


def _desktop(notice: Notice) -> tuple[str, ...]:
    """What shows a notice on the desktop; nothing where nothing does."""
    title = notice.run if notice.task is None else f"{notice.run}: {notice.task}"
    if shutil.which("notify-send"):
        return ("notify-send", "--app-name=orch", "--", title, notice.text)
    if shutil.which("osascript"):
        script = [word for line in (*_APPLE, "end run") for word in ("-e", line)]
        return ("osascript", *script, title, notice.text)
    return ()
