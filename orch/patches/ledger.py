"""The ledger of patches: what was handed in, and what was said of it, each with its event in the
same transaction. Written once; the state of a patch follows from it.

In the caller's transaction or snapshot; asks no git.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.digests import sha256_hex
from inbox_orch.shared.errors import not_found
from inbox_orch.shared.ids import (
    MOST_CANDIDATES,
    ambiguous,
    beginning_of_id,
    new_thread_id,
    printable,
)
from inbox_orch.shared.store import events
from inbox_orch.shared.store.engine import Session, Transaction

from ..runs.desk import Desk
from ..runs.model import Attempt, Run
from . import rows as patches
from . import states
from .model import Entry, Patch, Summary
from .policy import Policy


class New(NamedTuple):
    """A change that is handed in by `by`; the other fields are those of `Patch`."""

    run_id: str
    attempt_id: str
    way: str
    base: str
    base_tree: str
    tree: str | None
    head: str | None
    summary: Summary
    content: str
    by: str
    visit: int | None = None
    author: str | None = None
    text: str | None = None
    replaces: str | None = None
    rollback_of: str | None = None


class Word(NamedTuple):
    """What is said of a patch: `kind` and `outcome` are those of `states.ENTRIES`; `by` is who says
    it, by default who calls; `facts` is stored as JSON; `policy` the one that it was judged by,
    which is kept (one without layers is none)."""

    kind: str
    outcome: str
    by: str | None = None
    reason: str | None = None
    facts: Mapping[str, Any] | None = None
    policy: Policy | None = None


def hand_in(tx: Transaction, new: New) -> Patch:
    """Write down a change that was handed in, with its event. The same content for the same base
    in the same attempt is the patch that is there already, unless it replaces another."""
    content = _content_of(new)
    known = patches.same(tx, new.attempt_id, new.base_tree, content)
    if known is not None:
        return known
    given = new._asdict()
    by, summary = given.pop("by"), given.pop("summary")
    patch = Patch(
        **{
            **given,
            "id": new_thread_id(),
            "number": patches.next_number(tx, new.attempt_id),
            "facts": json.dumps(summary.as_json(), ensure_ascii=False),
            "content": content,
            "created_at": tx.now.wall_ms,
        }
    )
    patches.insert(tx, patch)
    said = {
        "from": None,
        "to": "created",
        "way": patch.way,
        "base": patch.base,
        "tree": patch.tree,
        "author": patch.author,
        "files": summary.files,
        "insertions": summary.insertions,
        "deletions": summary.deletions,
        **{name: given[name] for name in ("replaces", "rollback_of") if given[name] is not None},
    }
    _record(tx, patch, "patch_created", by, said)
    return patch


def name_of_new(tx: Session, new: New) -> str:
    """How a change is going to be named once it is handed in, or is already."""
    known = patches.same(tx, new.attempt_id, new.base_tree, _content_of(new))
    number = patches.next_number(tx, new.attempt_id) if known is None else known.number
    return patches.where(tx, new.attempt_id).named(number)


def _content_of(new: New) -> str:
    if new.replaces is None:
        return new.content
    return sha256_hex(f"{new.content} instead of {new.replaces}".encode())


def say(tx: Transaction, desk: Desk, run: Run, patch: Patch, word: Word) -> str:
    """Write down what is said of a patch, with its event. Returns the state that follows. To say
    what does not belong to its state is a bug."""
    before = patches.entries_of(tx, patch.id)
    state = states.state_of(before)
    said = states.require(state, word.kind, word.outcome)
    policy = word.policy if word.policy is not None and word.policy.layers else None
    if policy is not None:
        patches.keep_policy(tx, policy.digest, policy.canonical(), tx.now.wall_ms)
    entry = Entry(
        patch.id,
        len(before) + 1,
        word.kind,
        word.outcome,
        word.by or desk.actor(run),
        word.reason,
        None if word.facts is None else json.dumps(word.facts, ensure_ascii=False),
        None if policy is None else policy.digest,
        tx.now.wall_ms,
    )
    patches.add_entry(tx, entry)
    told = {
        "from": state,
        "to": said.target or state,
        "entry": entry.number,
        "said": f"{entry.kind} {entry.outcome}",
        "by": entry.by,
        "reason": entry.reason,
        "policy": entry.policy,
    }
    _record(tx, patch, said.event, desk.actor(run), told)
    return said.target or state


def _record(tx: Transaction, patch: Patch, kind: str, actor: str, facts: Mapping[str, Any]) -> None:
    where = patches.where(tx, patch.attempt_id)
    about = events.About(where.thread_id, None, patch.run_id, where.task_id, patch.attempt_id)
    name = {"patch": patch.id, "name": where.name_of(patch), "number": patch.number}
    events.append(tx, kind, actor, {**name, **facts}, about)


# -- reading ---------------------------------------------------------------------------------


def state(tx: Session, patch: Patch, attempt: Attempt) -> str:
    """The state of a patch of this attempt."""
    ended = patches.where(tx, attempt.id).given_up_at
    return states.state_of(patches.entries_of(tx, patch.id), given_up_at=ended)


def said_of(tx: Session, patch: Patch) -> str:
    """The state that follows from what was said of a patch, however its attempt stands."""
    return states.state_of(patches.entries_of(tx, patch.id))


def named(tx: Session, run: Run | None, name: str) -> Patch:
    """The patch of this name (`KEY/ATTEMPT/NUMBER`, in the run), with this id, or the only one
    whose id begins so. Errors: `not_found`; `usage`, which lists them, when there are several."""
    found = None if run is None else _by_name(tx, run, name)
    found = found or patches.get(tx, name)
    beginning = beginning_of_id(name)
    if found is None and beginning is not None:
        begun = patches.beginning(tx, beginning, MOST_CANDIDATES + 1)
        if len(begun) > 1:
            raise ambiguous("patch", name, [each.id for each in begun])
        found = begun[0] if begun else None
    if found is None:
        raise not_found("patch", printable(name), hint="`orch patch list` shows them")
    return found


def _by_name(tx: Session, run: Run, name: str) -> Patch | None:
    key, *numbers = name.split("/")
    if len(numbers) != 2 or not all(n.isascii() and n.isdigit() and len(n) < 10 for n in numbers):
        return None
    attempt, number = map(int, numbers)
    where = patches.where_named(tx, run.id, key, attempt)
    return None if where is None else patches.numbered(tx, where.attempt_id, number)


# -- waivers ---------------------------------------------------------------------------------


class Waiver(NamedTuple):
    """That a rule does not count once, for the tree of the refused patch and for these paths;
    none of them: for whatever the rule says of that tree."""

    patch: Patch
    rule: str
    paths: tuple[str, ...]
    by: str


def waivers_for(tx: Session, task_id: str, attempt_id: str, tree: str) -> list[Waiver]:
    """What was released of refused patches of a task with this tree, for an attempt that hands it
    in: what is not used up, or is by a patch of the attempt that has not come to its end."""
    found: list[Waiver] = []
    for patch in patches.of_task(tx, task_id):
        if patch.tree != tree:
            continue
        found += _open_waivers(patch, patches.entries_of(tx, patch.id))
        if patch.attempt_id == attempt_id and said_of(tx, patch) not in states.ENDED:
            found += waivers_used_by(tx, task_id, patch)
    return found


def waivers_used_by(tx: Session, task_id: str, patch: Patch) -> list[Waiver]:
    """What was released for a patch that has come in by that."""
    found: list[Waiver] = []
    for refused in patches.of_task(tx, task_id):
        given: list[Waiver] = []
        for entry in patches.entries_of(tx, refused.id):
            if entry.kind != "waiver":
                continue
            if entry.outcome == "given":
                given.append(_waiver(refused, entry))
            elif entry.found.get("by") == patch.id:
                found += given
            if entry.outcome != "given":
                given = []
    return found


def _waiver(patch: Patch, entry: Entry) -> Waiver:
    told = entry.found
    return Waiver(patch, told["rule"], tuple(told.get("paths", ())), entry.by)


def _open_waivers(patch: Patch, entries: Sequence[Entry]) -> list[Waiver]:
    found: list[Waiver] = []
    for entry in entries:
        if entry.kind == "waiver" and entry.outcome == "given":
            found.append(_waiver(patch, entry))
        elif entry.kind in ("waiver", "drop"):
            found.clear()  # used up by another patch, or given up
    return found
