"""The workers that a drive starts, keeps up, and ends: each an `inbox work` with a command.

A worker is a process of its own, so that a hanging command holds up no drive. When the drive is
killed, a guardian ends its workers, which hand back what they hold. Must not touch the run:
workers find their work in the mailboxes, as any other worker does.
"""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Collection, Sequence
from types import TracebackType
from typing import Protocol, Self

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import printable
from inbox_orch.shared.processes.guardian import Guardian
from inbox_orch.shared.store.folders import file_failure
from inbox_orch.shared.store.temporary import temporary_place

from ..runs import run_rows as runs
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Run
from ..stages import roles
from .drive import Drive
from .posts import Post, free_name

# A worker begins only once the guardian knows of it (see `Guardian`).
_GATE = 'read -r go && exec "$@" </dev/null'
# A worker that was told to end gives its commands ten seconds, and itself a few.
_END_SECONDS = 15.0
_FIRST_PAUSE_SECONDS, _MOST_STARTS = 1.0, 4
_STEADY_SECONDS = 30.0
_EXIT_ENVIRONMENT = 6
_MOST_BYTES = 1 << 20  # that are read of what a worker says at a time


class Shown(Protocol):
    """Whoever shows how a drive stands."""

    def looked(self) -> None:
        """The run may stand differently now."""

    def pulse(self) -> None:
        """Time has passed."""


class Crew:
    """The workers of one drive, from `with` to its end."""

    def __init__(
        self,
        desk: Desk,
        run: Run,
        posts: Sequence[Post],
        *,
        to: str | None = None,
        slots: int = 1,
    ) -> None:
        """`to` is the mailbox that the drive sends to, None for the tasks' own; `slots` how many
        threads each worker takes at once."""
        self._desk, self._run, self._posts, self._to, self._slots = desk, run, posts, to, slots
        self._notice = desk.database.notice
        self._guardian = Guardian(self._notice, "this drive")
        self._workers: list[_Worker] = []
        self._served: set[str] = {post.mailbox for post in posts if post.mailbox is not None}

    def __enter__(self) -> Self:
        self._guardian.start()
        try:
            for post in self._posts:
                if post.mailbox is not None:
                    self.add(post, (post.mailbox,), self._slots)
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end()

    def serve(self) -> None:
        """See to it that the mailboxes of the run are served, and that the workers are up.

        Error `worker_failed` when one does not stay up.
        """
        mailboxes, of_roles = self._mailboxes()
        new = tuple(sorted(set(mailboxes) - set(of_roles) - self._served))
        # Who reviews must not be who wrote: the mailbox of a role has a worker of its own.
        groups = [new, *((each,) for each in of_roles if each not in self._served)]
        for group in filter(None, groups):
            self._served.update(group)
            for post in self._posts:
                if post.mailbox is None:
                    self.add(post, group, self._slots)
        self.look()

    def on(self, wanted: Drive, shown: "Shown") -> Drive:
        """A drive that looks after its workers, besides showing how it stands."""

        def looked() -> None:
            self.serve()
            shown.looked()

        def pulse() -> None:
            self.look()
            shown.pulse()

        return wanted._replace(on_look=looked, pulse=pulse)

    def look(self) -> None:
        """Tell what the workers complain of, and start again those that have died."""
        now = self._desk.database.clock.now().monotonic_ms
        for worker in self._workers:
            self._tell(worker)
            worker.keep_up(self._guardian, now)

    def _tell(self, worker: "_Worker") -> None:
        for line in worker.said():
            self._notice(f"{worker.post.agent}: {line}")

    def _mailboxes(self) -> tuple[Collection[str], Sequence[str]]:
        """Those of the run, and those of them that only roles have."""
        with self._desk.database.snapshot() as snapshot:
            run = runs.get(snapshot, self._run.id) or self._run
            found = tasks.mailboxes_to_serve(snapshot, run.id)
            own = set() if self._to is not None else tasks.own_mailboxes(snapshot, run.id)
            of_roles = roles.mailboxes_of(snapshot, run)
        if self._to is not None:
            found, own = [self._to], {self._to}
        return found, [mailbox for mailbox in of_roles if mailbox not in own]

    def add(self, post: Post, mailboxes: Sequence[str], slots: int) -> None:
        """Start a worker for these mailboxes, which takes so many threads at once."""
        agents = {worker.post.agent for worker in self._workers}
        named = post._replace(agent=free_name(post.agent, agents))
        worker = _Worker(named, self._command(named, mailboxes, slots))
        self._workers.append(worker)
        worker.start(self._guardian, self._desk.database.clock.now().monotonic_ms)

    def _command(self, post: Post, mailboxes: Sequence[str], slots: int) -> tuple[str, ...]:
        database = self._desk.database
        return (
            *(sys.executable, "-P", "-m", "inbox_orch.inbox", "work", "--json"),
            *("--db", database.layout.database, "--db-id", database.id),
            *("--agent", post.agent, "--slots", str(slots), "--keep-questions"),
            *(word for mailbox in mailboxes for word in ("--mailbox", mailbox)),
            *post.words,
        )

    def _end(self) -> None:
        """Tell all to end, and wait for it: what they hold is handed back before."""
        for worker in self._workers:
            self._tell(worker)  # later, that it was told to end
            worker.tell(signal.SIGTERM)
        for worker in self._workers:
            worker.await_end(self._guardian)
        self._guardian.close()
        for worker in self._workers:
            worker.close()


class _Worker:
    """One process, started again when it dies. Errors: as of `temporary_place`."""

    def __init__(self, post: Post, command: Sequence[str]) -> None:
        self.post, self._command = post, command
        self._errors = _nameless_file()  # a pipe could fill, and stop it
        self._process: subprocess.Popen[bytes] | None = None
        self._read, self._last_line = 0, ""
        self._last_lines: list[str] = []
        self._began_ms, self._start_at_ms, self._starts = 0, 0, 0

    def start(self, guardian: Guardian, now_ms: int) -> None:
        """Start it; error `worker_failed` if that cannot be."""
        reader, writer = os.pipe()
        try:
            process = subprocess.Popen(
                ("/bin/sh", "-c", _GATE, "worker", *self._command),
                stdin=reader,
                stdout=subprocess.DEVNULL,
                stderr=self._errors,
                start_new_session=True,
            )
            guardian.begin(process.pid, None)
            os.write(writer, b"\n")
        except OSError as error:
            raise self._failed(str(error.strerror)) from error
        finally:
            os.close(reader)
            os.close(writer)
        self._process, self._began_ms = process, now_ms
        self._starts += 1

    def keep_up(self, guardian: Guardian, now_ms: int) -> None:
        """Start it again after a while, a few times; error `worker_failed`."""
        if self._process is not None:
            status = self._process.poll()
            if status is None:
                return
            guardian.end(self._process.pid)
            self._process = None
            if now_ms - self._began_ms >= _STEADY_SECONDS * 1000:
                self._starts = 0
            # An agent that is known and cannot work here would only cost further tasks a try.
            if self.post.adapter is not None and status == _EXIT_ENVIRONMENT:
                raise self._gave_up()
            if self._starts >= _MOST_STARTS:
                raise self._failed(self._last_line or f"it ended with {status}")
            pause = _FIRST_PAUSE_SECONDS * 2.0 ** max(0, self._starts - 1)
            self._start_at_ms = now_ms + int(pause * 1000)
        if now_ms >= self._start_at_ms:
            self.start(guardian, now_ms)

    def said(self) -> list[str]:
        """The whole lines that it has written to standard error since the last call."""
        content = os.pread(self._errors, _MOST_BYTES, self._read)
        whole = content[: content.rfind(b"\n") + 1]
        if len(content) == _MOST_BYTES:
            whole = whole or content  # a part of a line that may never end
        self._read += len(whole)
        lines = [line for line in whole.decode(errors="replace").splitlines() if line.strip()]
        self._last_line = lines[-1] if lines else self._last_line
        self._last_lines = [*self._last_lines, *lines][-2:]
        return lines

    def tell(self, number: int) -> None:
        """Send it a signal, if it runs."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def await_end(self, guardian: Guardian) -> None:
        """Wait until it has ended; what does not end is killed, and its own guardian ends what
        it had begun."""
        if self._process is not None:
            try:
                self._process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            guardian.end(self._process.pid)
            self._process = None

    def close(self) -> None:
        """Nothing more is read of it."""
        os.close(self._errors)

    def _gave_up(self) -> InboxOrchError:
        """What an agent that cannot work here has said about that."""
        why = [line.removeprefix("inbox: ") for line in self._last_lines]
        hints = [line.removeprefix("hint: ") for line in why if line.startswith("hint: ")]
        reason = next((line for line in why if not line.startswith("hint: ")), "it has ended")
        return InboxOrchError(
            "worker_failed",
            f"the worker {self.post.agent} cannot go on: {reason}",
            hint="; ".join(hints) or None,
            details={"agent": self.post.agent, "command": self.post.shown},
        )

    def _failed(self, reason: str) -> InboxOrchError:
        return InboxOrchError(
            "worker_failed",
            f"the worker {self.post.agent} does not stay up: {reason}",
            hint="nothing is lost; try its command by itself: "
            f"inbox work --agent {self.post.agent} --once {self.post.shown}",
            details={"agent": self.post.agent, "command": printable(self.post.command, 300)},
        )


def _nameless_file() -> int:
    """The descriptor of a temporary file that is gone with it; errors as of `temporary_place`."""
    place = temporary_place()
    try:
        descriptor, path = tempfile.mkstemp(dir=place)
        os.unlink(path)
    except OSError as error:
        raise file_failure(place, error) from error
    return descriptor
