"""Patches, and what is said of them, as values. Pure.

A patch is two trees: the one that an attempt, or a stage of it, started from, and the one that was
handed in. Rows of both kinds are written once; the state of a patch follows from its entries (see
`states`).
"""

import json
from typing import Any, NamedTuple

from inbox_orch.shared.clock import rfc3339

WAYS = ("commits", "harvest", "diff", "edits", "gate", "reverse")
"""How a change came: a worker's commits; what it left, committed for it; a unified diff or edits as
text; what a gate wrote that keeps what it writes; the reverse of an accepted patch."""


class Patch(NamedTuple):
    """A change that was handed in. `number` counts the patches of the attempt, from 1; `visit` is
    the one that it came in, None where there was none. `base` is the commit that it starts from,
    `head` a commit that has `tree`; `tree` and `head` are None where the text did not apply.
    `author` is the agent or person who wrote it. `facts` is JSON: what it changes (see
    `Summary`). `content` is a digest of what was handed in, `text` the artifact that has it, where
    it came as text. `replaces` is the refused patch that it was handed in instead of, `rollback_of`
    the accepted one that it undoes. Times are wall-clock milliseconds."""

    id: str
    run_id: str
    attempt_id: str
    number: int
    visit: int | None
    way: str
    base: str
    base_tree: str
    tree: str | None
    head: str | None
    author: str | None
    facts: str
    content: str
    text: str | None
    replaces: str | None
    rollback_of: str | None
    created_at: int

    @property
    def summary(self) -> "Summary":
        """What it changes."""
        return Summary.from_json(json.loads(self.facts))

    def as_json(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "run": self.run_id,
            "attempt": self.attempt_id,
            "number": self.number,
            "visit": self.visit,
            "way": self.way,
            "base": self.base,
            "base_tree": self.base_tree,
            "tree": self.tree,
            "head": self.head,
            "author": self.author,
            "facts": self.summary.as_json(),
            "text": self.text,
            "replaces": self.replaces,
            "rollback_of": self.rollback_of,
            "created_at": rfc3339(self.created_at),
        }


MOST_PATHS = 200


class Summary(NamedTuple):
    """What a patch changes: how many files and lines, `bytes` of the new contents, and the first
    `MOST_PATHS` of the paths; `notes` are what was done to bring it in (an offset, say)."""

    files: int
    insertions: int
    deletions: int
    bytes: int
    paths: tuple[str, ...]
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        found = {**self._asdict(), "paths": list(self.paths), "notes": list(self.notes)}
        return found if self.notes else {k: v for k, v in found.items() if k != "notes"}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "Summary":
        """The summary that `as_json` has made the value of."""
        paths, notes = tuple(stored["paths"]), tuple(stored.get("notes", ()))
        return cls(**{**stored, "paths": paths, "notes": notes})


class Entry(NamedTuple):
    """Something that was said of a patch: `kind` and `outcome` are those of `states.ENTRIES`; `by`
    is who said it, `reason` why in words, `facts` JSON (the objections of a policy, the gates of a
    tree, the paths of a waiver), `policy` the digest of the one that it was judged by. Times are
    wall-clock milliseconds."""

    patch_id: str
    number: int
    kind: str
    outcome: str
    by: str
    reason: str | None
    facts: str | None
    policy: str | None
    created_at: int

    @property
    def found(self) -> dict[str, Any]:
        """The facts as a value; empty where there are none."""
        stored: dict[str, Any] = {} if self.facts is None else json.loads(self.facts)
        return stored

    def as_json(self) -> dict[str, Any]:
        return {
            "number": self.number,
            "kind": self.kind,
            "outcome": self.outcome,
            "by": self.by,
            "reason": self.reason,
            **({} if self.facts is None else {"facts": self.found}),
            **({} if self.policy is None else {"policy": self.policy}),
            "at": rfc3339(self.created_at),
        }


class Waiting(NamedTuple):
    """A patch that waits for approvals: why, by how many people it `needs` to be approved, and who
    has done so already."""

    patch: Patch
    reason: str
    objections: tuple[dict[str, Any], ...]
    needs: int
    given: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """Why, and how far that is, in part of a line."""
        if self.needs < 2:
            return self.reason
        by = f", approved by {', '.join(self.given)}" if self.given else ""
        return f"{self.reason} ({len(self.given)} of {self.needs} approvals{by})"
