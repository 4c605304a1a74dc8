"""The tally of a council, what leaders settle in it, and the reports that are kept.

The tally is computed from stored rows by a pure function, every time anew. What leaders settle
is only ever added; each time there is a new revision, and the old ones can be counted again.
"""

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from inbox_orch.shared import events
from inbox_orch.shared.digests import sha256_hex
from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.transactions import Transaction

from ..council.model import Council, Override, Parameters, Reply, Seat, Vote
from ..domain.councils import (
    FORMATS,
    MAX_REASON_BYTES,
    StoredOverride,
    StoredReport,
)
from ..domain.model import Run
from ..store import councils
from .council_desk import (
    REPLIES,
    VOTES,
    CouncilView,
    SeatView,
    answered_by,
    decisions_of,
    missing_reason,
    voted_by,
)
from .council_settling import CouncilSettling

if TYPE_CHECKING:
    from ..council.tally import Group, Tally

_MOST_SUGGESTIONS = 1000
_MOST_TRIES = 30


class Counted(NamedTuple):
    """A tally, with the raw replies by reviewer. `stale`: what has come could not be taken in,
    because the database cannot be written here."""

    view: CouncilView
    tally: "Tally"
    replies: dict[str, str]
    stale: bool = False

    def as_json(self) -> dict[str, Any]:
        return {"tally": self.tally.as_json(), "stale": self.stale}


class Settled(NamedTuple):
    """One thing to be settled: two items, or a group by one of its items."""

    kind: str
    items: tuple[str, ...]
    text: str
    forced: bool = False


class CouncilCounting(CouncilSettling):
    """`tally`, `report`, `group …`, `suggest`, `apply`."""

    def count(self, run: Run, *, overrides: bool = True, revision: int | None = None) -> Counted:
        """The tally of what is stored, without taking anything in. `revision` is an earlier one.

        Error `not_found`: there is no such revision.
        """
        with self.database.snapshot() as connection:
            return self._count_in(connection, run, overrides=overrides, revision=revision)

    def tally_of(self, run: Run, *, overrides: bool = True, revision: int | None = None) -> Counted:
        """The same after taking in what has come. Error `not_found`."""
        stale = self.refresh(run)
        return self.count(run, overrides=overrides, revision=revision)._replace(stale=stale)

    def _count_in(
        self,
        connection: Any,
        run: Run,
        *,
        overrides: bool = True,
        revision: int | None = None,
        more: Sequence[Override] = (),
    ) -> Counted:
        from ..council.tally import tally

        newest = councils.revision(connection, run.id)
        if revision is not None and not 1 <= revision <= newest:
            raise not_found(
                "revision", str(revision), hint=f"there are {newest}; `orch council show` has them"
            )
        view = self.view_in(connection, run, revision, texts=True)
        stored = councils.overrides(connection, run.id) if overrides else []
        settled = [_override(row) for row in stored if row.revision <= view.revision]
        votes = self._votes(view)
        council = self._council_model(view)
        counted = tally(council, [*settled, *more], votes)
        return Counted(view, counted, _raw_replies(view))

    def _council_model(self, view: CouncilView) -> Council:
        return Council(
            id=view.run.id,
            title=view.run.title,
            brief_sha256=view.council.brief_sha256,
            seats=tuple(
                self._seat_model(view, seat)._replace(voter=voted_by(self, view, seat))
                for seat in view.seats_of(REPLIES)
            ),
            decisions=decisions_of(view.council),
            parameters=Parameters(quorum=view.council.quorum),
            revision=view.revision,
            closed=not view.rounds[0].open,
        )

    def _seat_model(self, view: CouncilView, seat: SeatView) -> Seat:
        state = seat.stands.state
        reply = self._reply_of(view, seat) if missing_reason(seat) is None else None
        agent = None if reply is None else answered_by(self, seat)
        return Seat(seat.seat.reviewer, state, reply, missing_reason(seat), agent)

    def _reply_of(self, view: CouncilView, seat: SeatView) -> Reply | None:
        stored = seat.stands.reply
        if stored is None or stored.raw is None:
            return None
        return self.read_reply(view.run, seat.seat.reviewer, stored.raw).reply

    def _votes(self, view: CouncilView) -> list[Vote] | None:
        """What the second round came to; None while there was none or it is open."""
        if len(view.rounds) < VOTES or view.rounds[VOTES - 1].open:
            return None
        found: list[Vote] = []
        for seat in view.seats_of(VOTES):
            stored = seat.stands.reply
            if missing_reason(seat) is None and stored is not None and stored.raw is not None:
                found += self.read_votes(view.run, seat.seat, stored.raw).votes or ()
        return found

    # -- what leaders settle -----------------------------------------------------------------

    def settle_groups(self, run: Run, wanted: Sequence[Settled]) -> dict[str, Any]:
        """Record what a leader has settled, all of it in one transaction or nothing.

        An exact repeat of the last word on the same items is `already`. Errors: `usage`,
        `not_found` (no such item), `invalid_state` (the round is open, or somebody has split
        what is to be merged), `opposed` (a merge across opposed stances without `forced`),
        `busy` (others settle faster).
        """
        self.refresh(run)
        for _ in range(_MOST_TRIES):
            # Counting takes its time, and must not hold up those who write meanwhile.
            counted = self.count(run)
            self._check_closed(counted)
            given = [_resolved(counted.tally, each) for each in wanted]
            new = self._to_record(counted, given)
            self._check_carried_out(run, new)
            if self._record_all(run, counted, new):
                return self._settled(run, given, new)
        raise InboxOrchError("busy", f"council {run.name} is being settled", hint="try again")

    def _check_closed(self, counted: Counted) -> None:
        view = counted.view
        if view.rounds[0].open:
            raise InboxOrchError(
                "invalid_state",
                f"the round of council {view.run.name} is still open",
                hint="`orch council wait` waits for its end",
                details={"council": view.run.name},
            )

    def _to_record(self, counted: Counted, given: Sequence[Settled]) -> list[Override]:
        """What is not so already, numbered."""
        stored = counted.tally.overrides
        new = [each for each in given if not _is_repeat(stored, each)]
        actor = self.actor(counted.view.run)
        return [
            Override(number, each.kind, each.items, each.text, actor, each.forced)
            for number, each in enumerate(new, start=len(stored) + 1)
        ]

    def _record_all(self, run: Run, counted: Counted, new: Sequence[Override]) -> bool:
        """False when the tally has changed since it was counted."""
        if not new:
            return True
        with self.database.transaction() as tx:
            if councils.revision(tx.connection, run.id) != counted.view.revision:
                return False
            cause = "overrides" if len(new) > 1 else f"override {new[0].number}"
            revision = self.revise(tx, run, cause)
            for override in new:
                self._record_override(tx, run, override, revision)
            return True

    def _settled(
        self, run: Run, given: Sequence[Settled], recorded: Sequence[Override]
    ) -> dict[str, Any]:
        after = self.count(run)
        return {
            "council": after.view.as_json(),
            "overrides": [override.as_json() for override in recorded],
            "groups": [g.as_json() for g in _touched(after.tally, given)],
            "already": bool(given) and not recorded,
        }

    def _check_carried_out(self, run: Run, recorded: Sequence[Override]) -> None:
        """A merge that the tally would not carry out is refused instead of recorded."""
        left_out = self._not_carried_out(run, recorded)
        if not left_out:
            return
        items = " and ".join(left_out[0].items)
        forced = [override._replace(forced=True) for override in recorded]
        if self._not_carried_out(run, forced):
            raise InboxOrchError(
                "invalid_state",
                f"{items} are kept apart: somebody has split items of their groups",
                hint="`orch council report` shows who; merge those items again first",
                details={"items": list(left_out[0].items)},
            )
        raise InboxOrchError(
            "opposed",
            f"{items} are opposed, or others of their groups are",
            hint="with --force they become one group, and stay contested",
            details={"items": list(left_out[0].items)},
        )

    def _not_carried_out(self, run: Run, recorded: Sequence[Override]) -> list[Override]:
        if not any(override.kind == "merge" for override in recorded):
            return []
        with self.database.snapshot() as connection:
            warnings = self._count_in(connection, run, more=recorded).tally.warnings
        return [
            override
            for override in recorded
            if any(
                warning.startswith(f"override {override.number} was not carried out")
                for warning in warnings
            )
        ]

    def _record_override(
        self, tx: Transaction, run: Run, override: Override, revision: int
    ) -> None:
        councils.insert(
            tx.connection,
            StoredOverride(
                run.id,
                override.number,
                override.kind,
                json.dumps(list(override.items)),
                override.text,
                override.actor,
                override.forced,
                revision,
                tx.now.wall_ms,
            ),
        )
        facts = {
            "number": override.number,
            "override": override.kind,
            "items": list(override.items),
            "forced": override.forced,
            "text_sha256": sha256_hex(override.text.encode()),
            "revision": revision,
        }
        events.append(tx, "override_recorded", override.actor, facts, run_id=run.id)

    # -- suggestions -------------------------------------------------------------------------

    def suggestions(self, run: Run) -> dict[str, Any]:
        """Pairs that may be one recommendation, for somebody to decide on: the same shape with
        `decision` filled in is what `orch council apply` takes."""
        counted = self.tally_of(run)
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

    def keep_report(self, counted: Counted, name: str, content: bytes) -> dict[str, Any]:
        """Store a report as an artifact of the run: on a thread of the leader's own that is done.
        The same bytes are stored once.

        Errors: those of every write.
        """
        run, sha256 = counted.view.run, sha256_hex(content)
        with self.database.snapshot() as connection:
            kept = councils.report(connection, run.id, name, sha256)
        if kept is not None:
            return _report_shape(kept, already=True)
        stored = self.bus.artifacts.add_bytes(name, content)
        with self.database.transaction() as tx:
            kept = councils.report(tx.connection, run.id, name, sha256)
            if kept is not None:
                return _report_shape(kept, already=True)
            thread_id = self._thread_of_report(counted, name, stored)
            revision = counted.view.revision
            kept = StoredReport(
                run.id, name, sha256, len(content), revision, thread_id, tx.now.wall_ms
            )
            councils.insert(tx.connection, kept)
            facts = {"name": name, "sha256": sha256, "bytes": len(content), "revision": revision}
            events.append(
                tx,
                "report_stored",
                self.actor(run),
                facts,
                run_id=run.id,
                thread_id=thread_id,
            )
        return _report_shape(kept, already=False)

    def _thread_of_report(self, counted: Counted, name: str, stored: Any) -> str:
        run, leader = counted.view.run, counted.view.run.leader
        sent = self.bus.send(
            to=leader,
            subject=f"Report: {run.title}",
            body=f"{name} of council {run.name}, revision {counted.view.revision}",
            # While votes come in, nobody may read what the others wrote.
            sealed=counted.view.open_round is not None,
            agent=leader,
        )
        claimed = self.bus.claim(sent.thread.id, agent=leader)
        assert claimed.lease.token is not None
        self.bus.done(sent.thread.id, claimed.lease.token, body=name, files=(stored,))
        return sent.thread.id


def rendered(counted: Counted, format_name: str) -> bytes:
    """A report in one of `FORMATS`."""
    if format_name not in FORMATS:
        raise usage(f"a format is one of {', '.join(FORMATS)}")
    if format_name == "json":
        shape = json.dumps(counted.tally.as_json(), ensure_ascii=False, indent=2, sort_keys=True)
        return (shape + "\n").encode("utf-8", "replace")
    if format_name == "madr":
        from ..council.decision_record import madr

        return madr(counted.tally).encode("utf-8", "replace")
    from ..council.report import markdown

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
    from ..council.report import status_line

    code = {"open": "timeout", "degraded": "degraded", "no_quorum": "no_quorum"}[tally.status]
    hint = "the result is there; late replies make a new revision of it"
    if tally.status == "open":
        hint = "`orch council wait` waits for the end of the round"
    return InboxOrchError(code, status_line(tally), hint=hint, details={"council": view.run.name})


def find_group(tally: "Tally", name: str) -> "Group":
    """The group with this item, or the n-th one as `Gn`; error `not_found` with a near id."""
    for group in tally.groups:
        if any(item.id == name for item in group.members):
            return group
    if re.fullmatch("[gG][0-9]{1,9}", name) and 1 <= int(name[1:]) <= len(tally.groups):
        return tally.groups[int(name[1:]) - 1]
    raise _no_item(tally, name)


def _no_item(tally: "Tally", name: str) -> InboxOrchError:
    import difflib

    known = [item.id for group in tally.groups for item in group.members]
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean {near[0]}?" if near else "`orch council tally` lists the items"
    return not_found("item", name[:80], hint=hint)


def _resolved(tally: "Tally", wanted: Settled) -> Settled:
    """The same with ids that there are, and with a text that can be shown."""
    text = " ".join(wanted.text.split())
    size = len(text.encode("utf-8", "surrogatepass"))
    if not text or size > MAX_REASON_BYTES or not text.isprintable():
        raise usage(f"a reason is printable text of 1 to {MAX_REASON_BYTES} bytes")
    if wanted.kind in ("dismiss", "note"):
        return wanted._replace(items=(find_group(tally, wanted.items[0]).id,), text=text)
    known = {item.id for group in tally.groups for item in group.members}
    for name in wanted.items:
        if name not in known:
            raise _no_item(tally, name)
    if len(set(wanted.items)) != 2:
        raise usage("two different items are needed")
    return wanted._replace(items=tuple(sorted(wanted.items)), text=text)


def _is_repeat(stored: Sequence[Override], wanted: Settled) -> bool:
    """Whether the last word on these items is the same already; notes add up."""
    pair = wanted.kind in ("merge", "split")
    alike = ("merge", "split") if pair else (wanted.kind,)
    about = [each for each in stored if each.items == wanted.items and each.kind in alike]
    if wanted.kind == "note":
        return any(each.text == wanted.text for each in about)
    return bool(about) and (about[-1].kind, about[-1].forced) == (wanted.kind, wanted.forced)


def _touched(tally: "Tally", given: Sequence[Settled]) -> list["Group"]:
    names = {name for each in given for name in each.items}
    return [g for g in tally.groups if names & {item.id for item in g.members}]


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
