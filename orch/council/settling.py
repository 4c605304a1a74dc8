"""What leaders settle in a tally: which items are one, which are two, what is dismissed, notes.

It is only ever added; each time there is a new revision of the tally.
"""

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from inbox_orch.shared.digests import sha256_hex
from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.store import events
from inbox_orch.shared.store.engine import Transaction

from ..runs.desk import Desk
from ..runs.model import Run
from . import count, take_in
from . import rows as councils
from .model import Override
from .stored import MAX_REASON_BYTES, StoredOverride

if TYPE_CHECKING:
    from .tally import Group, Tally

_MOST_TRIES = 30


class Settled(NamedTuple):
    """One thing to be settled: two items, or a group by one of its items."""

    kind: str
    items: tuple[str, ...]
    text: str
    forced: bool = False


def settle_groups(desk: Desk, run: Run, wanted: Sequence[Settled]) -> dict[str, Any]:
    """Record what a leader has settled, all of it in one transaction or nothing.

    An exact repeat of the last word on the same items is `already`. Errors: `usage`,
    `not_found` (no such item), `invalid_state` (the round is open, or a leader has split
    what is to be merged), `opposed` (a merge across opposed stances without `forced`),
    `busy` (others settle faster).
    """
    take_in.refresh(desk, run)
    for _ in range(_MOST_TRIES):
        # Counting takes its time, and must not hold up those who write meanwhile.
        counted = count.count(desk, run)
        _check_closed(counted)
        given = [_resolved(counted.tally, each) for each in wanted]
        new = _to_record(desk, counted, given)
        _check_carried_out(desk, run, new)
        if _record_all(desk, run, counted, new):
            return _settled(desk, run, given, new)
    raise InboxOrchError("busy", f"council {run.name} is being settled", hint="try again")


def _check_closed(counted: count.Counted) -> None:
    view = counted.view
    if view.rounds[0].open:
        raise InboxOrchError(
            "invalid_state",
            f"the round of council {view.run.name} is still open",
            hint="`orch council wait` waits for its end",
            details={"council": view.run.name},
        )


def _to_record(desk: Desk, counted: count.Counted, given: Sequence[Settled]) -> list[Override]:
    """What is not so already, numbered."""
    stored = counted.tally.overrides
    new = [each for each in given if not _is_repeat(stored, each)]
    actor = desk.actor(counted.view.run)
    return [
        Override(number, each.kind, each.items, each.text, actor, each.forced)
        for number, each in enumerate(new, start=len(stored) + 1)
    ]


def _record_all(desk: Desk, run: Run, counted: count.Counted, new: Sequence[Override]) -> bool:
    """False when the tally has changed since it was counted."""
    if not new:
        return True
    with desk.database.transaction() as tx:
        if councils.revision(tx, run.id) != counted.view.revision:
            return False
        cause = "overrides" if len(new) > 1 else f"override {new[0].number}"
        revision = take_in.revise(desk, tx, run, cause)
        for override in new:
            _record_override(tx, run, override, revision)
        return True


def _settled(
    desk: Desk, run: Run, given: Sequence[Settled], recorded: Sequence[Override]
) -> dict[str, Any]:
    after = count.count(desk, run)
    return {
        "council": after.view.as_json(),
        "overrides": [override.as_json() for override in recorded],
        "groups": [g.as_json() for g in _touched(after.tally, given)],
        "already": bool(given) and not recorded,
    }


def _check_carried_out(desk: Desk, run: Run, recorded: Sequence[Override]) -> None:
    """A merge that the tally would not carry out is refused instead of recorded."""
    left_out = _not_carried_out(desk, run, recorded)
    if not left_out:
        return
    items = " and ".join(left_out[0].items)
    forced = [override._replace(forced=True) for override in recorded]
    if _not_carried_out(desk, run, forced):
        raise InboxOrchError(
            "invalid_state",
            f"{items} are kept apart: items of their groups have been split",
            hint="`orch council report` shows who; merge those items again first",
            details={"items": list(left_out[0].items)},
        )
    raise InboxOrchError(
        "opposed",
        f"{items} are opposed, or others of their groups are",
        hint="with --force they become one group, and stay contested",
        details={"items": list(left_out[0].items)},
    )


def _not_carried_out(desk: Desk, run: Run, recorded: Sequence[Override]) -> list[Override]:
    if not any(override.kind == "merge" for override in recorded):
        return []
    with desk.database.snapshot() as snapshot:
        left_out = count.count_in(desk, snapshot, run, more=recorded).tally.not_carried_out
    return [override for override in recorded if override.number in left_out]


def _record_override(tx: Transaction, run: Run, override: Override, revision: int) -> None:
    councils.insert(
        tx,
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
    events.append(tx, "override_recorded", override.actor, facts, events.About(run_id=run.id))


def _resolved(tally: "Tally", wanted: Settled) -> Settled:
    """What a leader wants to settle, with the full ids of its items and a text that can be shown.
    Errors: `usage`, `not_found`."""
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
