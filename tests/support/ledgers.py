"""What the database says about owners: the event log folded, and dumps to be compared."""

from collections.abc import Iterable
from typing import Any

from sqlite import outside

_ENDS_A_LEASE = {
    "lease_expired",
    "thread_released",
    "thread_deferred",
    "thread_failed",
    "thread_done",
    "thread_cancelled",
}


def owners_by_event(events: Iterable[Any]) -> dict[str, list[tuple[int, str]]]:
    """Each thread's owners (epoch, holder) in order.

    Asserts that between a claim and the event that ends its lease there is no other claim of
    the thread, and that every claim raises the epoch by one.
    """
    live: dict[str, str] = {}
    owners: dict[str, list[tuple[int, str]]] = {}
    for event in events:
        thread = event.thread_id
        if event.kind == "thread_claimed":
            assert thread not in live, f"event {event.seq}: {thread} has two owners"
            live[thread] = event.data["holder"]
            owners.setdefault(thread, []).append((event.data["epoch"], event.data["holder"]))
            assert event.data["epoch"] == len(owners[thread]), f"event {event.seq}: its epoch"
        elif event.kind in _ENDS_A_LEASE:
            live.pop(thread, None)
    return owners


def all_events(bus: Any) -> list[Any]:
    """The whole log."""
    return list(bus.watch(after="0", wait_seconds=0))


def live_leases(path: object) -> dict[str, int]:
    """How many leases of each thread have not ended."""
    query = "SELECT thread_id, count(*) FROM lease WHERE ended_at IS NULL GROUP BY thread_id"
    return dict(outside.rows(path, query))


def dump(path: object) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table."""
    return outside.contents(path)


def integrity(path: object) -> str:
    """The engine's own verdict on the database: "ok", or what is wrong."""
    return outside.integrity(path)
