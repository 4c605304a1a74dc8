"""Whether a history keeps the promises. Decides from what the processes wrote down and from one
look at the database at the end; knows nothing of how the product works inside.

A call without a return may have happened or not; a refused one has not happened.
"""

import itertools
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from history import Fault, Operation

BOUND_SECONDS = 5.0
"""So late may a waiter notice on a busy machine, beyond what faults held it up."""

_SECOND = 1_000_000_000
# Each of these is refused for want of something, so that only while it was missing.
_SHORTAGES = {
    "disk_full": ("disk full",),
    "read_only": ("disk read-only",),
    # Git does not always say why it cannot write.
    "git_failed": ("disk full", "disk read-only"),
}
_EXPECTED = frozenset(
    (
        *("busy", "timeout", "nothing_available", "already_claimed", "lease_lost", "cancelled"),
        *("invalid_state", "not_found", "file_exists", *_SHORTAGES),
        # A coder that commits nothing, or in a worktree that is no longer its own.
        *("git", "gone"),
    )
)
# What is looked at of each kind of line.
_NEEDED = {
    "thread": ("id", "state"),
    "message": ("id", "thread", "sender", "to", "kind", "body"),
    "event": ("id",),
    "cursor": ("agent", "mailbox", "position"),
}
_EXTENDS = ("claim", "renew", "update")  # a question and waiting for its answer promise no time
_ENDS = ("done", "fail", "release")


class Ending(NamedTuple):
    """What there is when all is over: the lines of an export, what `doctor` and `git fsck` say,
    the commits that some ref reaches, the names of all files in them or in a worktree, and how
    many lines of each type there were."""

    lines: Sequence[dict[str, Any]]
    problems: Sequence[str]
    commits: frozenset[str] = frozenset()
    files: frozenset[str] = frozenset()
    stored: Mapping[str, int] = MappingProxyType({})


def as_json(ending: Ending) -> list[Any]:
    """For `from_json`."""
    lines, problems, commits, files, stored = ending
    return [list(lines), list(problems), sorted(commits), sorted(files), dict(stored)]


def from_json(values: list[Any]) -> Ending:
    """What `as_json` made something of."""
    lines, problems, commits, files, stored = values
    return Ending(lines, problems, frozenset(commits), frozenset(files), stored)


def needed(lines: Iterable[dict[str, Any]]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """Of the lines of an export what is looked at here, and how many there are of each type:
    an hour leaves millions of them."""
    kept, counts = [], Counter[str]()
    for line in lines:
        counts[line["type"]] += 1
        if line["type"] in _NEEDED:
            kept.append({key: line[key] for key in ("type", *_NEEDED[line["type"]])})
    return kept, dict(counts)


def violations(
    operations: Sequence[Operation], faults: Sequence[Fault], ending: Ending
) -> list[str]:
    """Every promise that was not kept, in words; none is the aim."""
    checks = (
        _errors(operations),
        _shortages(operations, faults),
        _examinations(operations, ending),
        _sends(operations, ending),
        _texts(operations, ending),
        _leases(operations),
        _results(operations, ending),
        _cursors(operations, ending),
        _watched(operations, ending),
        _waits(operations, faults, ending),
        _work(operations, ending),
    )
    return [found for check in checks for found in check]


# -- errors ----------------------------------------------------------------------------------


def _errors(operations: Iterable[Operation]) -> Iterator[str]:
    for op in operations:
        if op.error is not None and op.error not in _EXPECTED:
            yield f"unexpected error: {op}"


def _shortages(operations: Sequence[Operation], faults: Sequence[Fault]) -> Iterator[str]:
    """What was refused for a shortage met one, or its database had been opened in one."""
    moments: dict[str, list[Fault]] = defaultdict(list)
    for fault in faults:
        moments[fault.kind].append(fault)
    opened: dict[tuple[str, int], Operation] = {}
    for op in operations:
        if op.name == "open":
            opened[op.actor, op.life] = op
        kinds = _SHORTAGES.get(op.error or "", ())
        concerned = [op, opened.get((op.actor, op.life), op)]
        met = (_overlap(f, one) for kind in kinds for f in moments[kind] for one in concerned)
        if kinds and not any(met):
            yield f"refused for a shortage that there was not: {op}"


def _overlap(fault: Fault, op: Operation) -> bool:
    returned_ns = op.returned_ns if op.returned_ns is not None else fault.ended_ns
    return op.called_ns <= fault.ended_ns and fault.began_ns <= returned_ns


def _examinations(operations: Iterable[Operation], ending: Ending) -> Iterator[str]:
    for problem in ending.problems:
        yield f"doctor at the end: {problem}"
    for op in operations:
        if op.name == "doctor" and op.value is not None:
            for problem in op.value["problems"]:
                yield f"doctor while all went on: {problem}"


# -- nothing is lost, nothing twice ----------------------------------------------------------


def _sends(operations: Iterable[Operation], ending: Ending) -> Iterator[str]:
    there = {line["id"] for line in ending.lines if line["type"] == "thread"}
    by_key: dict[tuple[str, str], set[str]] = defaultdict(set)
    for op in operations:
        if op.name != "send" or op.value is None:
            continue
        if op.value["thread"] not in there:
            yield f"an acknowledged thread is gone: {op}"
        if op.arguments.get("key") is not None:
            by_key[op.actor, op.arguments["key"]].add(op.value["thread"])
    for (actor, key), found in by_key.items():
        if len(found) > 1:
            yield f"one key of {actor} made {len(found)} threads: {key}"


def _texts(operations: Iterable[Operation], ending: Ending) -> Iterator[str]:
    """Every text of a caller is written once: there exactly once when acknowledged, never when
    refused.

    Messages of a pruned thread have no body any more; their digest has been compared by doctor.
    """
    messages = [line for line in ending.lines if line["type"] == "message"]
    bodies = Counter(m["body"] for m in messages if m["body"] and m["kind"] != "system")
    gone = {m["thread"] for m in messages if m["body"] is None}
    for body, number in bodies.items():
        if number > 1:
            yield f"a message is there {number} times: {body!r}"
    written: dict[str, list[Operation]] = defaultdict(list)
    for op in operations:
        if "body" in op.arguments:
            written[op.arguments["body"]].append(op)
    for body, calls in written.items():
        acknowledged = [op for op in calls if op.acknowledged]
        if acknowledged and bodies[body] == 0 and _thread_of(acknowledged[0]) not in gone:
            yield f"an acknowledged message is gone: {acknowledged[0]}"
        if all(op.refused for op in calls) and bodies[body]:
            yield f"a refused call has had its effect: {calls[0]}"


def _thread_of(op: Operation) -> str:
    found = op.arguments.get("thread") or (op.value or {}).get("thread")
    return str(found)


def _results(operations: Iterable[Operation], ending: Ending) -> Iterator[str]:
    states = {line["id"]: line["state"] for line in ending.lines if line["type"] == "thread"}
    finished: dict[str, list[Operation]] = defaultdict(list)
    for op in operations:
        if op.name == "done" and op.acknowledged:
            finished[op.arguments["thread"]].append(op)
    for thread, calls in finished.items():
        if states.get(thread) != "done":
            yield f"done, and {states.get(thread)} in the end: {calls[0]}"
        if len({op.arguments["epoch"] for op in calls}) > 1:
            yield f"done by two holders: {calls[0]} and {calls[-1]}"


# -- leases ----------------------------------------------------------------------------------


def _leases(operations: Iterable[Operation]) -> Iterator[str]:
    """One owner: epochs rise as time goes on, nobody takes over before the end of a lease, and
    a holder that was followed by another can do nothing any more."""
    claims: dict[str, list[Operation]] = defaultdict(list)
    deeds: dict[tuple[str, int], list[Operation]] = defaultdict(list)
    for op in operations:
        if op.name == "claim" and op.value is not None:
            claims[op.value["thread"]].append(op)
            deeds[op.value["thread"], op.value["epoch"]].append(op)
        elif "epoch" in op.arguments:
            deeds[op.arguments["thread"], op.arguments["epoch"]].append(op)
    for thread, taken in claims.items():
        taken.sort(key=lambda op: op.value["epoch"] if op.value else 0)
        for earlier, later in itertools.pairwise(taken):
            assert earlier.value is not None and later.value is not None
            first, second = earlier.value["epoch"], later.value["epoch"]
            if first == second:
                yield f"two holders with epoch {first} of {thread}: {earlier} and {later}"
                continue
            assert earlier.returned_ns is not None and later.returned_ns is not None
            if later.returned_ns < earlier.called_ns:
                yield f"an older epoch was given out later: {earlier} after {later}"
            mine = deeds[thread, first]
            yield from _taken_too_soon(mine, earlier, later)
            yield from _stale(mine, later)


def _taken_too_soon(
    mine: Sequence[Operation], earlier: Operation, later: Operation
) -> Iterator[str]:
    """The next claim came back before the lease can have been over."""
    assert later.returned_ns is not None
    for op in mine:
        if op.name in _ENDS and not op.refused and op.called_ns < later.returned_ns:
            return  # it has, or may have, been given back
    lease_ns = int(earlier.arguments["lease_seconds"] * _SECOND)
    for op in mine:
        extended = op.name in _EXTENDS and op.acknowledged
        before = extended and op.returned_ns is not None and op.returned_ns < later.called_ns
        if before and op.called_ns + lease_ns > later.returned_ns:
            yield f"taken over while the lease ran: {op}, then {later}"


def _stale(mine: Sequence[Operation], later: Operation) -> Iterator[str]:
    assert later.returned_ns is not None
    for op in mine:
        if op.acknowledged and op.called_ns > later.returned_ns and op.name != "wait_reply":
            yield f"a stale token was served: {op}, after {later}"


# -- reading ---------------------------------------------------------------------------------


def _cursors(operations: Iterable[Operation], ending: Ending) -> Iterator[str]:
    """What lies before an agent's cursor has been shown to it."""
    seen: dict[str, set[int]] = defaultdict(set)
    for op in operations:
        if op.name == "fetch" and op.value is not None:
            seen[op.actor].update(op.value["messages"])
    cursors = {
        line["agent"]: int(line["position"])
        for line in ending.lines
        if line["type"] == "cursor" and line["agent"] == line["mailbox"]
    }
    for line in ending.lines:
        for agent in _addressed(line):
            # Who is not in `seen` is a caller that does not write down what it fetches.
            passed = agent in seen and int(line["id"]) <= cursors.get(agent, 0)
            if passed and int(line["id"]) not in seen[agent]:
                yield f"the cursor of {agent} has passed message {line['id']}, never shown to it"


def _addressed(line: dict[str, Any]) -> list[str]:
    """To whom a message is news."""
    if line["type"] != "message":
        return []
    return [mailbox for mailbox in line["to"] if mailbox != line["sender"]]


def _watched(operations: Iterable[Operation], ending: Ending) -> Iterator[str]:
    """Every event between the first and the last that was seen, once, in order."""
    by_actor: dict[str, list[int]] = defaultdict(list)
    for op in operations:
        if op.name == "watch" and op.value is not None:
            by_actor[op.actor] += op.value["seen"]
    events = sorted(int(line["id"]) for line in ending.lines if line["type"] == "event")
    for actor, seen in by_actor.items():
        if not seen:
            continue
        due = events[: bisect_right(events, max(seen))]
        if seen != due:
            missing = sorted(set(due) - set(seen))[:5]
            yield f"{actor} has not seen every event once and in order; missing: {missing}"


# -- work in git -----------------------------------------------------------------------------


def _work(operations: Iterable[Operation], ending: Ending) -> Iterator[str]:
    """Whatever was accepted is reachable, and nothing that was ever written is gone."""
    accepted: dict[str, Operation] = {}
    for op in operations:
        if op.name == "status" and op.value is not None:
            for head in op.value["heads"]:
                accepted.setdefault(head, op)
        edited = op.name == "edit" and op.acknowledged
        if edited and op.arguments["path"].rsplit("/", 1)[1] not in ending.files:
            yield f"work is gone: {op}"
    for head, op in accepted.items():
        if head not in ending.commits:
            yield f"accepted work is not reachable: {head}, accepted by {op.called_ns}"


# -- waiting ---------------------------------------------------------------------------------


def _waits(
    operations: Sequence[Operation], faults: Sequence[Fault], ending: Ending
) -> Iterator[str]:
    """A wait ends soon after there is something for it."""
    arrivals, replies = _arrived(operations, ending)
    # A writer is told a moment after others can see what it wrote: they may have had it before.
    had: dict[str, set[int]] = defaultdict(set)
    for op in operations:
        if op.name not in ("fetch", "wait_reply"):
            continue
        due = arrivals[op.actor] if op.name == "fetch" else replies[op.arguments["thread"]]
        if op.arguments.get("wait") and op.returned_ns is not None:
            first, after = (bisect_left(due, (at, 0)) for at in (op.called_ns, op.returned_ns))
            news = [at for at in due[first:after] if at[1] not in had[op.actor]]
            yield from _late(op, news, faults)
        if op.value is not None:
            had[op.actor].update(op.value["messages"])


_Moments = dict[str, list[tuple[int, int]]]


def _arrived(operations: Iterable[Operation], ending: Ending) -> tuple[_Moments, _Moments]:
    """When what came: for each agent, and the replies on each thread."""
    written = _acknowledged_at(operations)
    arrivals: _Moments = defaultdict(list)
    replies: _Moments = defaultdict(list)
    for line in ending.lines:
        if line["type"] != "message" or int(line["id"]) not in written:
            continue
        at = (written[int(line["id"])], int(line["id"]))
        for mailbox in _addressed(line):
            arrivals[mailbox].append(at)
        if line["kind"] == "reply":
            replies[line["thread"]].append(at)
    for ordered in (*arrivals.values(), *replies.values()):
        ordered.sort()
    return arrivals, replies


def _late(op: Operation, due: Iterable[tuple[int, int]], faults: Sequence[Fault]) -> Iterator[str]:
    assert op.returned_ns is not None
    for at, message in due:
        late = (op.returned_ns - at) / _SECOND
        if late <= BOUND_SECONDS:
            continue
        late -= _held_up(faults, op.actor, at, op.returned_ns)
        if late > BOUND_SECONDS:
            yield f"a wait ended {late:.1f} s after message {message} had come: {op}"
            return


def _acknowledged_at(operations: Iterable[Operation]) -> dict[int, int]:
    """When the writer of each message was told that it is there."""
    return {
        op.value["message"]: op.returned_ns
        for op in operations
        if op.value is not None and op.returned_ns is not None and "message" in op.value
    }


def _held_up(faults: Iterable[Fault], actor: str, began: int, ended: int) -> float:
    """Seconds of faults between two moments that concern everybody or this process."""
    return sum(
        max(0, min(ended, fault.ended_ns) - max(began, fault.began_ns)) / _SECOND
        for fault in faults
        if fault.target in ("", actor)
    )
