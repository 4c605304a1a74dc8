"""Guarantees broken on purpose, so that it can be seen whether the checker notices.

Each takes away one thing that the product relies on, in this process only.
"""

import random
import time
from collections.abc import Callable
from typing import Any

from inbox_orch.inbox import Bus
from inbox_orch.inbox.services import claiming, judging, reaping
from inbox_orch.inbox.store import leases
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store import events, waits
from inbox_orch.shared.store.sqlite import bells
from inbox_orch.shared.store.sqlite.sessions import Transaction


def break_guarantee(name: str) -> None:
    """Break one of `BROKEN`."""
    BROKEN[name]()


def _claim_in_two_steps() -> None:
    """One owner: what is chosen under the write lock is taken under another one, unseen."""

    def claim_now(desk: Any, holder: str, reads: Any, lease_ms: int, thread_id: str | None) -> Any:
        with desk.database.transaction() as tx:
            reaping.reap_in(desk, tx, reads)
            chosen = claiming._choose(desk, tx, reads, thread_id)
        if not isinstance(chosen, str):
            raise chosen
        time.sleep(0.003)
        with desk.database.transaction() as tx:
            tx.connection.execute(
                "UPDATE lease SET ended_at = ?, ended_by = 'expired'"
                " WHERE thread_id = ? AND ended_at IS NULL",
                (tx.now.wall_ms, chosen),
            )
            tx.connection.execute(
                "UPDATE thread SET state = 'pending', holder = NULL"
                " WHERE id = ? AND state = 'claimed'",
                (chosen,),
            )
            if desk.thread_now(tx, chosen).state != "pending":
                raise InboxOrchError("nothing_available", "it is over already")
            return claiming._acquire(desk, tx, chosen, holder, lease_ms)

    claiming.claim_now = claim_now


def _serve_every_token() -> None:
    """Fencing: a token serves for ever."""

    def judge(desk: Any, tx: Transaction, thread: Any, token: str) -> Any:
        row = tx.connection.execute(
            "SELECT token FROM lease WHERE thread_id = ? AND ended_at IS NULL", (thread.id,)
        ).fetchone()
        return leases.by_token(tx, token if row is None else row[0])

    judging._judge = judge


def _move_the_cursor_early() -> None:
    """Reading: the cursor moves before what was read has been written out."""
    fetch = Bus.fetch

    def early(self: Any, **options: Any) -> Any:
        fetched = fetch(self, **options)
        self.mark_read(fetched)
        if random.random() < 0.05:
            raise InboxOrchError("output_failed", "standard output went away")
        return fetched

    Bus.fetch = early  # type: ignore[method-assign]


def _ring_before_the_commit() -> None:
    """Waiting: the bell rings while there is nothing to see yet, and nobody looks by himself."""

    def ring(self: Transaction, *topics: str) -> None:
        path = self.connection.execute("PRAGMA database_list").fetchone()[2]
        bells.ring(path.rsplit("/", 1)[0] + "/bells", topics)
        time.sleep(0.005)  # whoever woke up looks now

    Transaction.ring = ring  # type: ignore[method-assign]
    waits.FALLBACK_SECONDS = (1000.0, 1000.0)


def _record_done_apart() -> None:
    """One transaction, one event: `done` commits its event by itself."""
    append, done = events.append, Bus.done
    held_back: list[tuple[Any, ...]] = []
    apart = False

    def maybe_append(tx: Transaction, *arguments: Any, **options: Any) -> int:
        if not apart:
            return append(tx, *arguments, **options)
        held_back.append((arguments, options))
        return events.latest(tx)

    def done_apart(self: Any, *arguments: Any, **options: Any) -> Any:
        nonlocal apart
        apart = True
        try:
            result = done(self, *arguments, **options)
        finally:
            apart = False
        time.sleep(0.02)
        while held_back:
            given, named = held_back.pop(0)
            with self.database.transaction() as tx:
                append(tx, *given, **named)
        return result

    events.append = maybe_append
    Bus.done = done_apart  # type: ignore[method-assign]


BROKEN: dict[str, Callable[[], None]] = {
    "one-owner": _claim_in_two_steps,
    "fencing": _serve_every_token,
    "cursor": _move_the_cursor_early,
    "bell": _ring_before_the_commit,
    "event": _record_done_apart,
}
