"""The tally of a council, and the reports that are kept.

The tally is computed from stored rows by a pure function, every time anew; each time something
is settled there is a new revision, and the old ones can be counted again.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from inbox_orch.shared.digests import sha256_hex
from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.store import events

from ..runs.desk import Desk
from ..runs.model import Run
from . import rows as councils
from . import take_in, views
from .model import Council, Override, Parameters, Reply, Seat, Vote
from .stored import FORMATS, StoredOverride, StoredReport
from .views import (
    REPLIES,
    VOTES,
    CouncilView,
    SeatView,
    answered_by,
    decisions_of,
    missing_reason,
    voted_by,
)

if TYPE_CHECKING:
    from inbox_orch.shared.store.artifacts import Stored

    from .tally import Tally

_MOST_SUGGESTIONS = 1000


class Counted(NamedTuple):
    """A tally, with the raw replies by reviewer. `stale`: what has come could not be taken in,
    because the database cannot be written here."""

    view: CouncilView
    tally: "Tally"
    replies: dict[str, str]
    stale: bool = False

    def as_json(self) -> dict[str, Any]:
        return {"tally": self.tally.as_json(), "stale": self.stale}


def count(desk: Desk, run: Run, *, overrides: bool = True, revision: int | None = None) -> Counted:
    """The tally of what is stored, without taking anything in. `revision` is an earlier one.

    Error `not_found`: there is no such revision.
    """
    with desk.database.snapshot() as snapshot:
        return count_in(desk, snapshot, run, overrides=overrides, revision=revision)


def tally_of(
    desk: Desk, run: Run, *, overrides: bool = True, revision: int | None = None
) -> Counted:
    """Take in what reviewers have sent, and count it. `revision` is an earlier tally.

    Error `not_found`: there is no such revision.
    """
    stale = take_in.refresh(desk, run)
    return count(desk, run, overrides=overrides, revision=revision)._replace(stale=stale)


def count_in(
    desk: Desk,
    tx: Any,
    run: Run,
    *,
    overrides: bool = True,
    revision: int | None = None,
    more: Sequence[Override] = (),
) -> Counted:
    """The tally of what is stored, and of `more` that is not settled yet, as `count` has it."""
    from .tally import tally

    newest = councils.revision(tx, run.id)
    if revision is not None and not 1 <= revision <= newest:
        raise not_found(
            "revision", str(revision), hint=f"there are {newest}; `orch council show` has them"
        )
    view = views.view_in(desk, tx, run, revision, texts=True)
    stored = councils.overrides(tx, run.id) if overrides else []
    settled = [_override(row) for row in stored if row.revision <= view.revision]
    votes = _votes(desk, view)
    council = _council_model(desk, view)
    counted = tally(council, [*settled, *more], votes)
    return Counted(view, counted, _raw_replies(view))


def _council_model(desk: Desk, view: CouncilView) -> Council:
    return Council(
        id=view.run.id,
        title=view.run.title,
        brief_sha256=view.council.brief_sha256,
        seats=tuple(
            _seat_model(desk, view, seat)._replace(voter=voted_by(desk, view, seat))
            for seat in view.seats_of(REPLIES)
        ),
        decisions=decisions_of(view.council),
        parameters=Parameters(quorum=view.council.quorum),
        revision=view.revision,
        closed=not view.rounds[0].open,
    )


def _seat_model(desk: Desk, view: CouncilView, seat: SeatView) -> Seat:
    state = seat.stands.state
    reply = _reply_of(desk, view, seat) if missing_reason(seat) is None else None
    agent = None if reply is None else answered_by(desk, seat)
    return Seat(seat.seat.reviewer, state, reply, missing_reason(seat), agent)


def _reply_of(desk: Desk, view: CouncilView, seat: SeatView) -> Reply | None:
    stored = seat.stands.reply
    if stored is None or stored.raw is None:
        return None
    return take_in.read_reply(desk, view.run, seat.seat.reviewer, stored.raw).reply


def _votes(desk: Desk, view: CouncilView) -> list[Vote] | None:
    """What the second round came to; None while there was none or it is open."""
    if len(view.rounds) < VOTES or view.rounds[VOTES - 1].open:
        return None
    found: list[Vote] = []
    for seat in view.seats_of(VOTES):
        stored = seat.stands.reply
        if missing_reason(seat) is None and stored is not None and stored.raw is not None:
            found += take_in.read_votes(desk, view.run, seat.seat, stored.raw).votes or ()
    return found


# -- suggestions -------------------------------------------------------------------------


def suggestions(desk: Desk, run: Run) -> dict[str, Any]:
    """Pairs that may be one recommendation, to be decided on: the same shape with
    `decision` filled in is what `orch council apply` takes."""
    counted = tally_of(desk, run)
    items = {item.id: item for group in counted.tally.groups for item in group.members}
    pairs = counted.tally.possible_duplicates[:_MOST_SUGGESTIONS]
    return {
        "council": counted.view.as_json(),
        "items": [
            {
                **pair.as_json(),
                "titles": [items[name].title for name in pair.items],
                "decision": None,
                "reason": None,
            }
            for pair in pairs
        ],
        "truncated": len(pairs) < len(counted.tally.possible_duplicates),
        "next_cursor": None,
    }


# -- reports -----------------------------------------------------------------------------


def keep_report(desk: Desk, counted: Counted, name: str, content: bytes) -> dict[str, Any]:
    """Store a report as an artifact of the run: on a thread of the leader's own that is done.
    The same bytes are stored once.

    Errors: those of every write.
    """
    run, sha256 = counted.view.run, sha256_hex(content)
    with desk.database.snapshot() as snapshot:
        kept = councils.report(snapshot, run.id, name, sha256)
    if kept is not None:
        return _report_shape(kept, already=True)
    stored = desk.bus.artifacts.add_bytes(name, content)
    with desk.database.transaction() as tx:
        kept = councils.report(tx, run.id, name, sha256)
        if kept is not None:
            return _report_shape(kept, already=True)
        thread_id = _thread_of_report(desk, counted, name, stored)
        revision = counted.view.revision
        kept = StoredReport(run.id, name, sha256, len(content), revision, thread_id, tx.now.wall_ms)
        councils.insert(tx, kept)
        facts = {"name": name, "sha256": sha256, "bytes": len(content), "revision": revision}
        events.append(
            tx,
            "report_stored",
            desk.actor(run),
            facts,
            events.About(run_id=run.id, thread_id=thread_id),
        )
    return _report_shape(kept, already=False)


def _thread_of_report(desk: Desk, counted: Counted, name: str, stored: "Stored") -> str:
    run = counted.view.run
    attached = desk.bus.attach(
        f"Report: {run.title}",
        (stored,),
        body=f"{name} of council {run.name}, revision {counted.view.revision}",
        result=name,
        # While votes come in, no voter may read what the others wrote.
        sealed=counted.view.open_round is not None,
        agent=run.leader,
    )
    return attached.thread.id


def rendered(counted: Counted, format_name: str) -> bytes:
    """A report in one of `FORMATS`."""
    if format_name not in FORMATS:
        raise usage(f"a format is one of {', '.join(FORMATS)}")
    if format_name == "json":
        shape = json.dumps(counted.tally.as_json(), ensure_ascii=False, indent=2, sort_keys=True)
        return (shape + "\n").encode("utf-8", "replace")
    if format_name == "madr":
        from .decision_record import madr

        return madr(counted.tally).encode("utf-8", "replace")
    from .report import markdown

    return markdown(counted.tally, counted.replies).encode("utf-8", "replace")


def report_name(format_name: str) -> str:
    """The name of a report's artifact."""
    return {"md": "report.md", "json": "tally.json", "madr": "decision.md"}[format_name]


def shortfall(counted: Counted) -> InboxOrchError | None:
    """The error to end with when a tally is not complete: `timeout`, `degraded`, `no_quorum`;
    its data are the caller's affair."""
    tally, view = counted.tally, counted.view
    if tally.status == "complete":
        return None
    from .report import status_line

    code = {"open": "timeout", "degraded": "degraded", "no_quorum": "no_quorum"}[tally.status]
    hint = "the result is there; late replies make a new revision of it"
    if tally.status == "open":
        hint = "`orch council wait` waits for the end of the round"
    return InboxOrchError(code, status_line(tally), hint=hint, details={"council": view.run.name})


def _override(row: StoredOverride) -> Override:
    items = tuple(json.loads(row.items))
    return Override(row.number, row.kind, items, row.text, row.actor, row.forced)


def _raw_replies(view: CouncilView) -> dict[str, str]:
    """What was sent, also where it does not count: nothing that a reviewer wrote is lost."""
    return {
        seat.seat.reviewer: seat.stands.reply.raw.decode("utf-8", "replace")
        for seat in view.seats_of(REPLIES)
        if seat.stands.reply is not None and seat.stands.reply.raw is not None
    }


def _report_shape(kept: StoredReport, *, already: bool) -> dict[str, Any]:
    return {
        "name": kept.name,
        "sha256": kept.sha256,
        "bytes": kept.bytes,
        "revision": kept.revision,
        "thread": kept.thread_id,
        "already": already,
    }
