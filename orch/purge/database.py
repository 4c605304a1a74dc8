"""The rows of a purge: looked for in a snapshot, changed in one transaction with its event.

What is written meanwhile is found by looking again.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store import events
from inbox_orch.shared.store.engine import Session

from ..runs.desk import Desk
from . import rows
from .rows import Name, Touched
from .scrub import Renames, Scrub

_ROUNDS = 5
_MOST_NAMED = 200


class Seen(NamedTuple):
    """What a look has found: rows that have to change, names that hold a value, what processes are
    in the middle of with one, and what to go on with."""

    rows: list[Touched]
    names: list[Name]
    begun: list[str]
    scrub: Scrub


def look(desk: Desk, scrub: Scrub) -> Seen:
    """Every row, as of one commit."""
    with desk.database.snapshot() as snapshot:
        return _seen(snapshot, scrub)


def _seen(tx: Session, scrub: Scrub) -> Seen:
    names = rows.names(tx, scrub)
    whole = scrub.carrying(rows.renamed_texts(tx, scrub), [name.value for name in names])
    return Seen(list(rows.touched(tx, whole)), names, rows.begun(tx, scrub), whole)


def put_down(
    desk: Desk,
    scrub: Scrub,
    renames: Renames,
    told: Mapping[str, Any],
    also: Mapping[str, Any] | None = None,
) -> Counter[str]:
    """Change all rows that hold a value, or name what has another name now; how many, by table.

    `told` is what each event tells besides, `also` what the first does: with that there is one in
    any case. Errors: `busy` when others go on writing a value, and those of every write.
    """
    counts: Counter[str] = Counter()
    for _ in range(_ROUNDS):
        seen = look(desk, scrub.carrying(renames))
        if not seen.rows and also is None:
            return counts
        counts += _put_down(desk, seen, {**told, **(also or {})})
        also = None
    if look(desk, scrub.carrying(renames)).rows:
        raise InboxOrchError(
            "busy",
            "rows with the value go on being written",
            hint="stop the agents that have it, and give the same command again",
        )
    return counts


def _put_down(desk: Desk, seen: Seen, told: Mapping[str, Any]) -> Counter[str]:
    database = desk.database
    with database.transaction() as tx:
        messages = [each.key[0] for each in seen.rows if each.table == "message"][:_MOST_NAMED]
        with database.admin.written_once_lifted(tx):
            counts = rows.put_down(tx, seen.scrub, seen.rows)
            rows.forget_ends(tx, seen.rows)
        # Neither the value nor a digest of it: who has a short one would find it by trying.
        facts = {
            **told,
            "rows": dict(sorted(counts.items())),
            "messages": messages,
            "threads": rows.threads_of(tx, messages),
        }
        actor = desk.caller or "_system"
        events.append(tx, "purged", actor, facts, events.About())
    return counts
