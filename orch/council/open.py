"""Opening the rounds of a council: the same brief for every reviewer, later a ballot.

A round and its tasks are one transaction; what a process that died had not sent yet is sent by
the next look at the council.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from inbox_orch.shared.digests import sha256_hex
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.ids import check_name
from inbox_orch.shared.store import events
from inbox_orch.shared.store.engine import Transaction

from ..runs import planning
from ..runs.desk import Answer, Desk, keep_base
from ..runs.model import Run
from ..runs.plan import Opening, TaskSpec
from ..runs.planning import DEFAULT_LEADER, Facts
from . import count, take_in, views
from . import rows as councils
from .stored import Round, StoredCouncil, StoredSeat
from .take_in import fresh_word
from .views import REPLIES, VOTES, decision_json

if TYPE_CHECKING:
    from .ask import Asked
    from .tally import Group, Tally


def start_council(
    desk: Desk, asked: "Asked", *, key: str | None = None, mailboxes: Sequence[str] = ()
) -> Answer:
    """Open a council and ask its reviewers. With `key` a repeat gives the first result.
    `mailboxes`, one for each reviewer, are where they are asked, if not in those of their names.

    Errors: `usage`, `key_conflict`, `git_missing`, `invalid_state` (a branch `orch`), and
    those of every write.
    """
    leader = check_name(desk.caller or DEFAULT_LEADER, "agent")
    opening = Opening(title=asked.title, base=asked.at, no_repo=asked.repository is None)
    facts = Facts.of(opening, asked.repository, None)
    digest = asked.digest(facts.place["repository"])
    with desk.database.transaction() as tx:
        earlier = desk.replay(tx, "council start", leader, key, digest)
        if earlier is None:
            data = _open(desk, tx, planning.insert_run(tx, leader, facts), asked, mailboxes)
            answer = desk.remember(tx, "council start", leader, key, digest, data)
        else:
            answer = earlier
    run_id = answer.data["council"]["id"]
    keep_base(desk, desk.run(run_id))
    take_in.refresh(desk, views.council(desk, run_id))
    return answer


def _open(
    desk: Desk, tx: Transaction, run: Run, asked: "Asked", mailboxes: Sequence[str]
) -> dict[str, Any]:
    from . import prompts

    lenses = "".join(text for _, text in asked.lenses.values())
    decisions = [decision_json(decision) for decision in asked.decisions]
    council = StoredCouncil(
        run_id=run.id,
        brief=asked.brief,
        brief_sha256=asked.brief_sha256,
        nonce=fresh_word(asked.brief, lenses, json.dumps(decisions)),
        decisions=json.dumps(decisions, ensure_ascii=False),
        quorum=asked.quorum,
        seat_seconds=asked.seat_seconds,
        created_at=tx.now.wall_ms,
    )
    councils.insert(tx, council)
    _open_round(desk, tx, run, REPLIES, asked.deadline_seconds, len(asked.reviewers))
    request = prompts.Request(
        council_id=run.id,
        brief=council.brief,
        brief_sha256=council.brief_sha256,
        decisions=asked.decisions,
        nonce=council.nonce,
        seats=len(asked.reviewers),
    )
    where = mailboxes or asked.reviewers
    for position, (reviewer, mailbox) in enumerate(zip(asked.reviewers, where, strict=True), 1):
        lens, text = asked.lenses.get(reviewer, (None, None))
        body = prompts.reviewer_prompt(request, text)
        seat = _SeatToOpen(REPLIES, position, reviewer, mailbox, lens)
        _open_seat(desk, tx, run, seat, body, worktree=asked.at is not None)
    view = views.view_in(desk, tx, run)
    return {
        "council": view.as_json(),
        "seats": [seat.as_json() for seat in view.seats],
        "warnings": list(asked.warnings),
    }


def _open_round(
    desk: Desk, tx: Transaction, run: Run, number: int, deadline_seconds: float | None, seats: int
) -> None:
    deadline_at = None
    if deadline_seconds is not None:
        deadline_at = tx.now.wall_ms + int(deadline_seconds * 1000)
    councils.insert(tx, Round(run.id, number, deadline_at, tx.now.wall_ms, None, None))
    facts = {"round": number, "deadline_at": deadline_at, "seats": seats}
    events.append(tx, "round_opened", desk.actor(run), facts, events.About(run_id=run.id))


def _open_seat(
    desk: Desk, tx: Transaction, run: Run, seat: "_SeatToOpen", body: str, *, worktree: bool = False
) -> None:
    """The task of a seat. It never retries by itself: what fails is a fact of the round."""
    kind = "review" if seat.round == REPLIES else "ballot"
    spec = TaskSpec(
        key=f"{kind}-{seat.position}",
        title=run.title,
        body=body,
        mailbox=seat.mailbox,
        kind=kind,
        max_attempts=1,
        max_infra_attempts=1,
        worktree=worktree,
        allow_empty=True,
    )
    added = planning.add_task(desk, run, spec)
    labels = None if seat.labels is None else json.dumps(seat.labels)
    councils.insert(
        tx,
        StoredSeat(
            run.id,
            seat.round,
            seat.position,
            seat.reviewer,
            added.data["task"]["id"],
            seat.lens,
            labels,
        ),
    )


# -- the second round --------------------------------------------------------------------


def open_ballot(desk: Desk, run: Run, *, deadline_seconds: float | None) -> dict[str, Any]:
    """Ask each reviewer whose reply counts about the groups that it did not raise.

    Errors: `invalid_state` (the first round is open, there was a ballot, no seat has anything
    to vote on, the run is not open).
    """
    take_in.refresh(desk, run)
    counted = count.count(desk, run)
    ballots = {
        seat.reviewer: _ballot(counted, seat.reviewer, run.id) for seat in counted.tally.valid
    }
    with desk.database.transaction() as tx:
        view = views.view_in(desk, tx, run)
        if view.run.state != "open" or view.status in ("open", "no_quorum"):
            raise _no_ballot(run, f"its run is {view.run.state}, its status {view.status}")
        if len(view.rounds) > 1:
            raise _no_ballot(run, "there was one already")
        if not any(ballots.values()):
            raise _no_ballot(run, "there is nothing that a reviewer did not raise itself")
        if view.revision != counted.tally.council.revision:
            raise InboxOrchError("busy", "the tally has changed meanwhile", hint="try again")
        asked = {name: entries for name, entries in ballots.items() if entries}
        _open_round(desk, tx, run, VOTES, deadline_seconds, len(asked))
        for position, (reviewer, entries) in enumerate(asked.items(), start=1):
            _open_vote(desk, tx, run, position, reviewer, entries)
    take_in.refresh(desk, run)
    view = views.view(desk, run)
    return {
        "council": view.as_json(),
        "seats": [seat.as_json() for seat in view.seats_of(VOTES)],
    }


def _open_vote(
    desk: Desk, tx: Transaction, run: Run, position: int, reviewer: str, entries: "Sequence[Group]"
) -> None:
    from . import prompts

    council = councils.get(tx, run.id)
    assert council is not None
    labels = {f"b{number}": group.id for number, group in enumerate(entries, start=1)}
    shown = [
        (label, group.title, _proposal(group)) for label, group in zip(labels, entries, strict=True)
    ]
    own = take_in.own_items(desk, run, reviewer)
    body = prompts.ballot_prompt(
        council_id=run.id,
        brief_sha256=council.brief_sha256,
        entries=shown,
        own_items=own,
        nonce=fresh_word(*(text for entry in shown for text in entry)),
    )
    _open_seat(desk, tx, run, _SeatToOpen(VOTES, position, reviewer, reviewer, None, labels), body)


class _SeatToOpen(NamedTuple):
    round: int
    position: int
    reviewer: str
    mailbox: str
    lens: str | None
    labels: dict[str, str] | None = None


def _ballot(counted: Any, reviewer: str, council_id: str) -> "list[Group]":
    """What a reviewer did not raise, in an order of its own."""
    tally: Tally = counted.tally

    def place(group: "Group") -> str:
        seed = json.dumps([council_id, reviewer, group.id])
        return sha256_hex(seed.encode())

    others = [g for g in tally.groups if reviewer not in g.raised_by and not g.dismissed]
    return sorted(others, key=place)


def _proposal(group: "Group") -> str:
    face = next(item for item in group.members if item.title == group.title)
    return face.proposal


def _no_ballot(run: Run, why: str) -> InboxOrchError:
    return InboxOrchError(
        "invalid_state",
        f"council {run.name} can have no ballot now: {why}",
        hint="`orch council show` shows how it stands",
        details={"council": run.name},
    )
