"""Choosing among many threads: what `list` and `stats` show.

A list reads its rows in the order of an index that begins with what the filter fixes, so that
its time depends on its own length and not on the number of stored threads. The exception is a
filter of which each part lets very many threads through and the whole only a few.
`INDEXED BY` makes a query fail whose index is gone, instead of letting it scan.
"""

from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from inbox_orch.shared.clock import Moment
from inbox_orch.shared.store.engine import Session

from ..domain.model import Thread
from ..domain.states import THREAD_STATES
from . import threads

# A sender with fewer threads than this is looked up by name, whatever else is asked for.
_FEW = 1_000

Way = tuple[str, tuple[object, ...]]


class Filter(NamedTuple):
    """What is shown; an empty field lets everything through. `agent` and `reads` decide on
    sealed threads."""

    states: tuple[str, ...] = ()
    mailboxes: tuple[str, ...] = ()
    senders: tuple[str, ...] = ()
    agent: str | None = None
    reads: tuple[str, ...] = ()


def select(
    tx: Session,
    chosen: Filter,
    now: Moment,
    *,
    after: int = 0,
    limit: int,
) -> list[Thread]:
    """Threads by age, numbered above `after`."""
    condition, parameters = _conditions(chosen)
    numbers: set[int] = set()
    for source, fixed in _ways(tx, chosen):
        rows = tx.all(
            f"SELECT t.number FROM thread AS t {source} AND t.number > ? AND {condition}"
            " ORDER BY t.number LIMIT ?",
            (*fixed, after, *parameters, limit),
        )
        numbers.update(row[0] for row in rows)
    return threads.numbered(tx, sorted(numbers)[:limit], now)


def _ways(tx: Session, chosen: Filter) -> list[Way]:
    """(source and equality, its values): each gives threads by number, and all together give
    what the filter lets through, and perhaps more."""
    if not (chosen.mailboxes or chosen.states or chosen.senders):
        return [("NOT INDEXED WHERE true", ())]
    if chosen.senders and (
        not (chosen.mailboxes or chosen.states) or _sent_few(tx, chosen.senders)
    ):
        by_sender = "INDEXED BY thread_by_sender WHERE t.sender = ?"
        return [(by_sender, (sender,)) for sender in chosen.senders]
    by_mailbox = "INDEXED BY thread_by_mailbox WHERE t.mailbox = ? AND t.state = ?"
    mailboxes = chosen.mailboxes or _mailboxes(tx)
    return [(by_mailbox, way) for way in product(mailboxes, chosen.states or THREAD_STATES)]


def _sent_few(tx: Session, senders: Sequence[str]) -> bool:
    row = tx.only(
        "SELECT count(*) FROM (SELECT 1 FROM thread AS t INDEXED BY thread_by_sender"
        f" WHERE t.sender IN ({', '.join('?' * len(senders))}) LIMIT ?)",
        (*senders, _FEW),
    )
    return int(row[0]) < _FEW


def _mailboxes(tx: Session) -> list[str]:
    """Every mailbox with a thread, by one probe of the index for each."""
    rows = tx.all(
        "WITH RECURSIVE known (mailbox) AS (SELECT min(mailbox) FROM thread UNION ALL"
        " SELECT (SELECT min(t.mailbox) FROM thread AS t WHERE t.mailbox > known.mailbox)"
        " FROM known WHERE known.mailbox IS NOT NULL)"
        " SELECT mailbox FROM known WHERE mailbox IS NOT NULL"
    )
    return [row[0] for row in rows]


def count(tx: Session, chosen: Filter) -> int:
    """How many threads the filter lets through; looks at each of them."""
    condition, parameters = _conditions(chosen)
    row = tx.only(f"SELECT count(*) FROM thread AS t WHERE {condition}", parameters)
    return int(row[0])


def count_by_mailbox_and_state(tx: Session, chosen: Filter) -> list[tuple[str, str, int, int]]:
    """(mailbox, state, threads, number of the oldest) for everything the filter shows.

    Unsealed threads are counted in the index alone, sealed ones one by one.
    """
    where, mailboxes = _among("mailbox", chosen.mailboxes)
    rows = tx.all(
        "SELECT t.mailbox, t.state, count(*), min(t.number) FROM thread AS t"
        f" INDEXED BY thread_by_mailbox WHERE t.sealed = 0{where}"
        " GROUP BY t.mailbox, t.state",
        mailboxes,
    )
    condition, parameters = _conditions(chosen)
    rows += tx.all(
        "SELECT t.mailbox, t.state, count(*), min(t.number) FROM thread AS t"
        f" INDEXED BY thread_sealed WHERE t.sealed = 1 AND {condition}"
        " GROUP BY t.mailbox, t.state",
        parameters,
    )
    total: dict[tuple[str, str], tuple[int, int]] = {}
    for mailbox, state, number, oldest in rows:
        before, older = total.get((mailbox, state), (0, oldest))
        total[mailbox, state] = (before + number, min(older, oldest))
    return [(*key, *total[key]) for key in sorted(total)]


def _conditions(chosen: Filter) -> tuple[str, list[Any]]:
    clause, parameters = threads.visibility(chosen.agent, chosen.reads)
    for column, values in (
        ("state", chosen.states),
        ("mailbox", chosen.mailboxes),
        ("sender", chosen.senders),
    ):
        more, wanted = _among(column, values)
        clause += more
        parameters += wanted
    return clause, parameters


def _among(column: str, values: Sequence[str]) -> tuple[str, list[Any]]:
    if not values:
        return "", []
    return f" AND t.{column} IN ({', '.join('?' * len(values))})", list(values)
