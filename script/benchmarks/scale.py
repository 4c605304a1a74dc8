"""Scale: what each operation takes with 1,000, 100,000 and 1,000,000 threads stored.

Half of the threads are done and half are queued. Every round does each operation once on each
database, so that a busy moment of the machine meets all sizes alike. The first half of the
rounds is as durable as the product; the second half leaves out the syncs, which otherwise hide
the work. Then: how far the write-ahead log grows under watchers that read all the time.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from common import machine, parser, report, say, scratch, summary, table
from stock import BODY, MAILBOX, SENDER, WORKER, stock

from inbox_orch.inbox import Bus
from inbox_orch.shared.store.sqlite import creating

SIZES = (1_000, 100_000, 1_000_000)
LIMIT_RATIO = 1.5
LIMIT_LOG_BYTES = 64 * 1024 * 1024
LISTS: dict[str, dict[str, Any]] = {
    "list": {},
    "list --state pending": {"states_wanted": ["pending"]},
    "list --state failed": {"states_wanted": ["failed"]},
    "list --mailbox": {"mailboxes": [MAILBOX]},
    "list --mailbox --state done": {"mailboxes": [MAILBOX], "states_wanted": ["done"]},
    "list --from": {"senders": [SENDER]},
    "list --from nobody": {"senders": ["nobody"]},
    "list --from --state failed": {"senders": [SENDER], "states_wanted": ["failed"]},
}
# Of the time with the fewest threads; the rest is shown beside them.
PROMISED = ("claim + done", "fetch", *LISTS)
# Its work is to count every thread, so it grows with them.
LINEAR = ("stats",)

Times = dict[tuple[bool, str, int], list[float]]


class Desk:
    """One database with its three agents."""

    def __init__(self, path: Path, stack: ExitStack) -> None:
        self.leader, self.worker, self.reader = (
            stack.enter_context(Bus.open(path, agent=agent)) for agent in (SENDER, WORKER, "reader")
        )
        self._synced = type(self.leader.database)._set_synchronous
        # Everything stored is read already; only what comes now is unread.
        while (fetched := self.reader.fetch(mailboxes=[MAILBOX], limit=10_000)).items:
            self.reader.mark_read(fetched)

    def leave_out_syncs(self) -> None:
        """From now on no commit waits for the disk."""
        for bus in (self.leader, self.worker, self.reader):
            bus.database.connection.execute("PRAGMA synchronous=OFF")
            setattr(bus.database, "_set_synchronous", lambda mode: None)  # noqa: B010

    def operations(self) -> Iterator[tuple[str, Callable[[], Any]]]:
        """What is measured, in an order that leaves as many queued threads as there were."""
        yield "send", lambda: self.leader.send(to=MAILBOX, subject="task", body=BODY)
        yield "fetch", self._fetch
        yield "claim", self._claim
        yield "done", self._done
        yield "show", lambda: self.leader.show(self._claimed.thread.id)
        yield "inbox", self.leader.overview
        for name, arguments in LISTS.items():
            yield name, lambda chosen=arguments: self.leader.list(limit=20, **chosen)
        yield "stats", self.leader.stats

    def _fetch(self) -> None:
        fetched = self.reader.fetch(mailboxes=[MAILBOX])
        assert len(fetched.items) == 1, fetched.items
        self.reader.mark_read(fetched)

    def _claim(self) -> None:
        self._claimed = self.worker.claim(mailboxes=[MAILBOX])

    def _done(self) -> None:
        self.worker.done(self._claimed.thread.id, self._claimed.lease.token, body=BODY)


def main() -> None:
    """Measure, and report."""
    options_parser = parser(__doc__.splitlines()[0])
    options_parser.add_argument("--rounds", type=int, default=400)
    options_parser.add_argument("--sizes", type=int, nargs="+", default=list(SIZES))
    options_parser.add_argument("--writes", type=int, default=50_000)
    options_parser.add_argument("--watchers", type=int, default=12)
    options_parser.add_argument("--part", choices=("operations", "log"), help="only one of them")
    options = options_parser.parse_args()
    if options.quick:
        options.rounds, options.sizes, options.writes, options.watchers = 4, [20, 200], 100, 2
    figures: dict[str, Any] = {"benchmark": "scale", "machine": machine()}
    with scratch() as folder:
        if options.part != "log":
            figures["operations"] = in_figures(measure(folder, options), options.sizes)
        if options.part != "operations":
            figures["log"] = measure_log(folder / "log", options)
    report(options, figures, as_text(figures))


def measure(folder: Path, options: argparse.Namespace) -> Times:
    """(synced?, operation, size) -> seconds."""
    times: Times = {}
    with ExitStack() as stack:
        desks = {}
        for size in options.sizes:
            path = folder / str(size) / ".inbox" / "bus.db"
            stock(path, done=size // 2, pending=size - size // 2)
            desks[size] = Desk(path, stack)
            say(f"made {size:,} threads, {path.stat().st_size / 1e6:,.0f} MB")
        for number in range(options.rounds):
            synced = number < options.rounds // 2
            if number == options.rounds // 2:
                for desk in desks.values():
                    desk.leave_out_syncs()
            one_round(desks, times, synced=synced)
    return times


def one_round(desks: dict[int, Desk], times: Times, *, synced: bool) -> None:
    """Each operation once for each size, the sizes side by side."""
    for steps in zip(*(desk.operations() for desk in desks.values()), strict=True):
        for size, (name, operation) in zip(desks, steps, strict=True):
            if name in LINEAR and size >= 100_000 and len(times.get((synced, name, size), ())) > 10:
                continue
            before = time.perf_counter()
            operation()
            times.setdefault((synced, name, size), []).append(time.perf_counter() - before)


def in_figures(times: Times, sizes: list[int]) -> list[dict[str, Any]]:
    """For each operation the times at each size, and the last size's ratio to the first's."""
    for synced, size in product((True, False), sizes):
        both = zip(times[synced, "claim", size], times[synced, "done", size], strict=True)
        times[synced, "claim + done", size] = [claim + done for claim, done in both]
    figures = []
    for synced, name in dict.fromkeys((synced, name) for synced, name, _ in times):
        at = {size: summary(times[synced, name, size]) for size in sizes}
        first, last = at[sizes[0]], at[sizes[-1]]
        figures.append(
            {
                "synced": synced,
                "operation": name,
                "sizes": {str(size): figure for size, figure in at.items()},
                "ratio_of_medians": last["p50_ms"] / first["p50_ms"],
                "ratio_of_means": last["mean_ms"] / first["mean_ms"],
                "allowed": LIMIT_RATIO if name in PROMISED else None,
            }
        )
    return figures


# -- the write-ahead log -----------------------------------------------------------------------


@contextmanager
def watchers(path: Path, number: int) -> Iterator[list[Path]]:
    """So many `inbox watch` processes; gives the files that they write to."""
    files = [path.parent / f"watched-{i}" for i in range(number)]
    command = [f"{Path(sys.executable).parent}/inbox", "watch", "--after", "0", "--wait", "inf"]
    started = []
    try:
        for file in files:
            with file.open("wb") as output:
                started.append(
                    subprocess.Popen(
                        [*command, "--db", str(path)],
                        stdout=output,
                        stderr=subprocess.DEVNULL,
                        cwd=path.parent,
                    )
                )
        yield files
    finally:
        for process in started:
            process.terminate()
        for process in started:
            process.wait()


def measure_log(folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """The largest size of the log, seen after every write, and that no watcher missed one."""
    path = folder / ".inbox" / "bus.db"
    creating.create(str(path))
    largest = 0
    with Bus.open(path, agent=SENDER) as leader, watchers(path, options.watchers) as files:
        log = leader.database.layout.wal
        before = time.perf_counter()
        for number in range(options.writes):
            leader.send(to=MAILBOX, subject="task", body=BODY)
            largest = max(largest, os.stat(log).st_size)
            if number % 10_000 == 0:
                say(f"{number:,} writes, the log had {largest / 1e6:.1f} MB at most")
        seconds = time.perf_counter() - before
        seen = wait_for_lines(files, options.writes)
    return {
        "writes": options.writes,
        "watchers": options.watchers,
        "writes_per_second": options.writes / seconds,
        "largest_log_bytes": largest,
        "allowed_log_bytes": LIMIT_LOG_BYTES,
        "least_events_seen": min(seen),
        "most_events_seen": max(seen),
        "database_bytes": path.stat().st_size,
    }


def wait_for_lines(files: list[Path], wanted: int) -> list[int]:
    """The lines of each file, once all have enough or nothing has come for ten seconds."""
    seen, changed = [0] * len(files), time.monotonic()
    while min(seen) < wanted and time.monotonic() - changed < 10:
        time.sleep(0.1)
        now = [file.read_bytes().count(b'"type":"event"') for file in files]
        if now != seen:
            seen, changed = now, time.monotonic()
    return seen


# -- tables ------------------------------------------------------------------------------------


def as_text(figures: dict[str, Any]) -> str:
    """The tables."""
    parts = []
    for synced in (True, False):
        chosen = [f for f in figures.get("operations", ()) if f["synced"] == synced]
        if chosen:
            parts.append("as durable as the product:" if synced else "without syncs:")
            parts.append(operations_table(chosen))
    if "log" in figures:
        parts.append(log_text(figures["log"]))
    return "\n\n".join(parts)


def operations_table(figures: list[dict[str, Any]]) -> str:
    """Median and mean at each size, in milliseconds."""
    sizes = list(figures[0]["sizes"])
    headings = ["operation", *(f"ms at {int(size):,}: median (mean)" for size in sizes)]
    rows = [
        [
            f"`{f['operation']}`",
            *(
                f"{f['sizes'][size]['p50_ms']:.3f} ({f['sizes'][size]['mean_ms']:.3f})"
                for size in sizes
            ),
            f"{f['ratio_of_medians']:.2f} ({f['ratio_of_means']:.2f})",
            f["allowed"],
        ]
        for f in figures
    ]
    return table([*headings, "last to first", "allowed"], rows)


def log_text(log: dict[str, Any]) -> str:
    """One sentence."""
    return (
        f"{log['watchers']} watchers beside {log['writes']:,} writes"
        f" ({log['writes_per_second']:,.0f} a second): the log had at most"
        f" {log['largest_log_bytes'] / 2**20:.1f} MiB of {log['allowed_log_bytes'] / 2**20:.0f}"
        f" allowed; the watchers saw {log['least_events_seen']:,} to"
        f" {log['most_events_seen']:,} events"
    )


if __name__ == "__main__":
    main()
