"""What waits in the comparison: commands and libraries that block until something comes.

Owns how each waiter is started, how something is sent to it by a warm process, and what clears
its queue afterwards. Every waiter is a process that writes something, or ends, once it has got
what it waited for. The libraries are imported where they are used.
"""

import contextlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from roles import Role
from tool import Tool

WAIT = "600"
THREADS_ONLY = "it promises to wake threads of one process, not other processes"


class Waiting:
    """A tool of which processes wait, and a warm process that sends, by the name of a sender.

    `period`: no less than the seconds between two of its looks."""

    def __init__(
        self,
        name: str,
        tool: Tool,
        words: Callable[[int], list[str]],
        *,
        sends: str,
        note: str | None = None,
        period: float = 1.0,
        before: Callable[[], Any] = lambda: None,
        after: Callable[[], Any] = lambda: None,
    ) -> None:
        self.name = name
        self.tool = tool
        self.note = note
        self.period = period
        self.before = before
        self.after = after
        self.command = words(0)
        self._words = words
        self._sends = sends
        self._sender: Role | None = None
        self._complaints = tool.folder / f"complaints of {name}"

    def start(self, number: int) -> "subprocess.Popen[bytes]":
        """One waiting process; each number has a mailbox of its own where there are such."""
        with self._complaints.open("ab") as complaints:
            return subprocess.Popen(
                self._words(number),
                cwd=self.tool.folder,
                env=self.tool.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=complaints,
            )

    def complaint(self) -> str:
        """The last line that a waiting process has written to standard error."""
        text = self._complaints.read_text(encoding="utf-8", errors="replace")
        return (text.strip().splitlines() or [""])[-1]

    def warm(self, python: str) -> None:
        """Start the process that sends."""
        self._sender = Role(
            python,
            __file__,
            self._sends,
            str(self.tool.folder),
            environment=self.tool.environment,
            folder=self.tool.folder,
        )
        self._sender.hear(30)

    def send(self) -> int:
        """Send to waiter 0; nanoseconds of the monotonic clock at which the call began."""
        assert self._sender is not None, "nobody is there to send"
        began: int = self._sender.ask("send", 30)
        return began

    def end(self) -> None:
        """Stop the process that sends."""
        if self._sender is not None:
            self._sender.end()


def all_waiting(tools: dict[str, Tool], bin_folder: str | None) -> list[Waiting]:
    """Everything that can wait; ours as a command and as calls of a long-lived process."""
    ours = tools["inbox"]
    inbox = f"{Path(sys.executable).parent}/inbox"
    found = [
        Waiting(
            "inbox",
            ours,
            lambda n: [inbox, "fetch", "--agent", f"w{n}", "--wait", WAIT, "--json"],
            sends="inbox",
        ),
        Waiting(
            "inbox (call)",
            ours,
            lambda n: [sys.executable, __file__, "wait-inbox", str(ours.folder), f"c{n}"],
            sends="inbox-call",
        ),
    ]
    if bin_folder is not None:
        found += _peers(tools, bin_folder)
    return found


def _peers(tools: dict[str, Tool], bin_folder: str) -> list[Waiting]:
    python = f"{bin_folder}python"
    found = []
    if (lanes := tools.get("agent-lanes")) is not None:
        next_task = [f"{bin_folder}agent-lanes", *lanes.leading(), "next", "--lane", "default"]
        found.append(
            Waiting(
                "agent-lanes",
                lanes,
                lambda n: [*next_task, "--timeout", WAIT, "--quiet", "--json"],
                sends="agent-lanes",
                after=lambda: lanes.done(lanes.claim("w"), "w"),
            )
        )
    if (mail := tools.get("agent-mail")) is not None:
        found.append(
            Waiting(
                "agent-mail",
                mail,
                lambda n: [f"{bin_folder}agent-mail", "watch", "p:worker" if n == 0 else f"p:w{n}"],
                sends="agent-mail",
                note="looks every second",
                after=lambda: mail.done(mail.claim("w"), "w"),
            )
        )
    if (fleet := tools.get("fleetwright")) is not None:
        found.append(
            Waiting(
                "fleetwright",
                fleet,
                lambda n: [f"{bin_folder}fleetwright", "wait", "--timeout", WAIT],
                sends="fleetwright",
                note="waits only for the end of all work; looks every two seconds",
                period=2.0,
                before=lambda: (fleet.send(f"u{time.monotonic_ns()}"), fleet.claim("w")),
            )
        )
    if (broker := tools.get("simplebroker")) is not None:
        watch = [f"{bin_folder}broker", *broker.leading(), "watch"]
        found.append(
            Waiting(
                "simplebroker",
                broker,
                lambda n: [*watch, "woken" if n == 0 else f"w{n}", "--json"],
                sends="simplebroker",
            )
        )
        for name, period, note in (
            ("huey", 2.0, "looks less and less often: after 0.1 s at first, every 10 s at last"),
            ("persist-queue", 10.0, f"between processes it looks every 10 s; {THREADS_ONLY}"),
        ):
            role = [python, __file__, f"wait-{name}", str(broker.folder)]
            found.append(
                Waiting(
                    f"{name} (call)",
                    broker,
                    lambda n, r=role: [*r, str(n)],
                    sends=name,
                    note=note,
                    period=period,
                )
            )
    return found


LACKS = {
    "agent-collab": "has no wait",
    "litequeue": "has no wait",
    "pac-collab": "has no wait",
}


# -- senders -----------------------------------------------------------------------------------


def _inbox_sender(folder: Path, to: str) -> Callable[[], Any]:
    from inbox_orch.inbox import Bus

    bus = Bus.open(folder / ".inbox" / "bus.db", agent="leader")
    return lambda: bus.send(to=to, subject="woken", body="text")


def _lanes_sender(folder: Path) -> Callable[[], Any]:
    from agent_lanes.store import HandoffStore

    store = HandoffStore(folder / "handoff" / "state")
    return lambda: store.create_task(
        workspace_id="w",
        correlation_id="default",
        source_agent="leader",
        lane="default",
        workspace_root=folder,
        worktree_path=None,
        expected_branch=None,
        request_path=folder / "request.md",
        response_path=folder / "response.md",
        prompt="text",
    )


def _mail_sender(folder: Path) -> Callable[[], Any]:
    from agent_mail import cli

    words = ["agent-mail", "send", "--from", "p:leader", "--to", "p:worker", "--subject", "woken"]

    def send() -> None:
        # There is only the command; this is its own program, loaded already.
        sys.argv = [*words, "--body", "text"]
        with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
            cli.main()

    return send


def _fleetwright_sender(folder: Path) -> Callable[[], Any]:
    from fleetwright import leases

    connection = leases.connect(folder / "fleet.db")

    def finish() -> None:
        for row in leases.leased(connection):
            leases.finish(connection, row["unit_id"], worker=leases.ANY, result="{}")

    return finish


def _broker_sender(folder: Path) -> Callable[[], Any]:
    from simplebroker import Queue

    queue = Queue("woken", db_path=str(folder / "broker.db"), persistent=True)
    return lambda: queue.write("text")


def _huey(folder: Path) -> Any:
    from huey import SqliteHuey

    huey = SqliteHuey("q", filename=str(folder / "huey.db"), fsync=True)

    @huey.task(name="woken")
    def woken() -> None:
        os.write(1, b"woken\n")

    return huey, woken


def _persist_queue(folder: Path, number: str) -> Any:
    import persistqueue

    path = str(folder / f"persist-{number}")
    return persistqueue.SQLiteAckQueue(path, multithreading=True, auto_resume=False)


SENDERS: dict[str, Callable[[Path], Callable[[], Any]]] = {
    "inbox": lambda folder: _inbox_sender(folder, "w0"),
    "inbox-call": lambda folder: _inbox_sender(folder, "c0"),
    "agent-lanes": _lanes_sender,
    "agent-mail": _mail_sender,
    "fleetwright": _fleetwright_sender,
    "simplebroker": _broker_sender,
    "huey": lambda folder: _huey(folder)[1],
    "persist-queue": lambda folder: partial(_persist_queue(folder, "0").put, "text"),
}


def serve_sending(name: str, folder: str) -> None:
    """Send at each order, and tell when that began."""
    send = SENDERS[name](Path(folder))
    print(json.dumps("ready"), flush=True)
    for _ in sys.stdin:
        began = time.monotonic_ns()
        send()
        print(json.dumps(began), flush=True)


# -- waiters that are no commands ----------------------------------------------------------------


def wait_inbox(folder: str, agent: str) -> None:
    """Fetch what comes, for ever."""
    from inbox_orch.inbox import Bus

    with Bus.open(Path(folder) / ".inbox" / "bus.db", agent=agent) as bus:
        while True:
            fetched = bus.fetch(wait_seconds=float("inf"))
            os.write(1, b"woken\n")
            bus.mark_read(fetched)


def wait_huey(folder: str, number: str) -> None:
    """A consumer with its defaults."""
    _huey(Path(folder))[0].create_consumer(periodic=False).run()


def wait_persist_queue(folder: str, number: str) -> None:
    """A blocking get."""
    queue = _persist_queue(Path(folder), number)
    while True:
        item = queue.get()
        os.write(1, b"woken\n")
        queue.ack(item)


WAITERS = {
    "wait-inbox": wait_inbox,
    "wait-huey": wait_huey,
    "wait-persist-queue": wait_persist_queue,
}

if __name__ == "__main__":
    if sys.argv[1] in WAITERS:
        WAITERS[sys.argv[1]](*sys.argv[2:])
    else:
        serve_sending(*sys.argv[1:])
