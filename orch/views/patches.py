"""Patches as they stand, with what was said of each. Reads, and asks no git."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.errors import not_found
from inbox_orch.shared.ids import counted
from inbox_orch.shared.store.engine import Session

from ..git import diffs
from ..git.diffs import Span
from ..patches import approvals, ledger, states
from ..patches import rows as patches
from ..patches.hiding import KeyStream
from ..patches.model import Entry, Patch
from ..patches.policy import naming_patch, of_task
from ..patches.rows import Where
from ..runs import run_rows as runs
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from ..runs.secrets import secrets_of
from . import patch_words

MOST_DIFF_BYTES = 1024 * 1024
_AS_ITS_ATTEMPT = ("created", "validated", "applied", "verified", "committed")
"""States that a patch comes into, and stays in, by what becomes of its attempt."""
_HELD_UP = ("queued", "quarantined", "apply_failed", "rolled_back")


class Listed(NamedTuple):
    """A patch with what was said of it, in order, and where it belongs."""

    patch: Patch
    where: Where
    entries: tuple[Entry, ...]

    @property
    def name(self) -> str:
        """How people name it."""
        return self.where.name_of(self.patch)

    @property
    def state(self) -> str:
        """Of `states.STATES`."""
        return states.state_of(self.entries, given_up_at=self.where.given_up_at)

    @property
    def reason(self) -> str | None:
        """Why it stands as it does: what was said last with a reason."""
        return next((e.reason for e in reversed(self.entries) if e.reason), None)

    @property
    def why(self) -> str | None:
        """Why it waits, was refused or taken back, on one line; None where its attempt says it."""
        if self.state == "queued":
            return " ".join(approvals.waits(self.patch, self.entries).sentence.split())
        return patch_words.why(self.entries) if self.state == self._said else None

    @property
    def line(self) -> str:
        """Its name, how it stands, how much it changes, and why."""
        return f"{self.name} {self.state}, {self.size}" + (f": {self.why}" if self.why else "")

    @property
    def tells_more(self) -> bool:
        """Whether something was said of it that is not said of its attempt."""
        return self._said not in _AS_ITS_ATTEMPT

    @property
    def _said(self) -> str:
        """The state by what was said of it, however its attempt stands."""
        return states.state_of(self.entries)

    @property
    def size(self) -> str:
        """How much it changes, in words."""
        summary = self.patch.summary
        return f"{counted(summary.files, 'file')}, +{summary.insertions} -{summary.deletions}"

    @property
    def objections(self) -> list[dict[str, Any]]:
        """What the policy has against it, with rule, layer, and how it could be allowed."""
        judged = (e.found for e in self.entries if e.kind == "policy")
        every = [each for found in judged for each in found.get("objections", ())]
        return [{**e, "remedy": naming_patch(e["remedy"], self.name)} for e in every]

    @property
    def lines(self) -> list[str]:
        """A line for each thing that was said."""
        return [
            f"{e.kind} {e.outcome} by {e.by}" + (f": {e.reason}" if e.reason else "")
            for e in self.entries
        ]

    def as_json(self) -> dict[str, Any]:
        return {
            **self.patch.as_json(),
            "name": self.name,
            "key": self.where.key,
            "state": self.state,
            "reason": self.reason,
        }


def listed(desk: Desk, run: Run, task_names: Sequence[str] = ()) -> list[Listed]:
    """The patches of a run, or of certain tasks, oldest first. Error `not_found`."""
    with desk.database.snapshot() as snapshot:
        wanted = {desk.task(snapshot, run, name).id for name in task_names}
        places = patches.places_of_run(snapshot, run.id)
        found = patches.of_run(snapshot, run.id)
        said = patches.entries_of_all(snapshot, [patch.id for patch in found])
    every = [Listed(patch, places[patch.attempt_id], tuple(said[patch.id])) for patch in found]
    return [each for each in every if not wanted or each.where.task_id in wanted]


def shown_of(
    tx: Session, run: Run, task: Task, its_attempts: Iterable[Attempt]
) -> dict[str, tuple[Listed, ...]]:
    """The patches of attempts at a task, by the ids of these, where they say more than the attempts
    do: all as soon as a policy is in force; without one, those of attempts that have several, or
    one that was held up or taken back."""
    found: dict[str, tuple[Listed, ...]] = {}
    for attempt in its_attempts if run.patches else ():
        named = (task.id, task.key, attempt.id, attempt.number)
        where = Where(*named, attempt.state, attempt.thread_id, attempt.ended_at)
        own = patches.of_attempt(tx, attempt.id)
        every = tuple(Listed(each, where, tuple(patches.entries_of(tx, each.id))) for each in own)
        if every and _say_more(run, task, attempt, every):
            found[attempt.id] = every
    return found


def _say_more(run: Run, task: Task, attempt: Attempt, every: Sequence[Listed]) -> bool:
    if len(every) > 1 or every[0].tells_more:
        return True
    policy = of_task(config_of(run), task, staged=attempt.staged)
    return policy.is_more_than_the_floor


def held_up(tx: Session, run: Run) -> list[Listed]:
    """The patches of a run that wait, are refused (released or not), fit nothing, or were taken
    back; oldest first."""
    found = patches.held_up(tx, run.id)
    if not found:
        return []
    places = patches.places_of_run(tx, run.id)
    said = patches.entries_of_all(tx, [patch.id for patch in found])
    every = [Listed(patch, places[patch.attempt_id], tuple(said[patch.id])) for patch in found]
    return [each for each in every if each.state in _HELD_UP]


def as_json(found: Iterable[Listed]) -> list[dict[str, Any]]:
    """Patches as a list in JSON."""
    return [each.as_json() for each in found]


def named(
    desk: Desk, name: str, run_name: str | None, *, shows: bool = False
) -> tuple[Run, Listed]:
    """The patch of this name, in the run where it is `KEY/ATTEMPT/NUMBER`, else by its id or the
    beginning of that. Errors: `not_found`; `usage` when there are several."""
    run = desk.run(run_name, shows=shows) if "/" in name or run_name is not None else None
    with desk.database.snapshot() as snapshot:
        patch = ledger.named(snapshot, run, name)
        its_run = runs.get(snapshot, patch.run_id)
        assert its_run is not None
        where = patches.where(snapshot, patch.attempt_id)
        return its_run, Listed(patch, where, tuple(patches.entries_of(snapshot, patch.id)))


def names_of(desk: Desk, ids: Iterable[str | None]) -> dict[str, str]:
    """How people name some patches, by their ids."""
    with desk.database.snapshot() as snapshot:
        found = [patches.get(snapshot, each) for each in ids if each is not None]
        there = [patch for patch in found if patch is not None]
        return {p.id: patches.where(snapshot, p.attempt_id).name_of(p) for p in there}


def diff_of(desk: Desk, run: Run, listed: Listed) -> tuple[str, bool]:
    """What a patch changes, as git prints it, with secrets masked; and whether it is cut. Errors:
    `not_found` where there is nothing to compare, `git_failed`."""
    patch = listed.patch
    if patch.head is None:
        hint = f"`orch patch show {listed.name}` says why; what was handed in is its artifact"
        raise not_found("change", listed.name, hint=hint)
    repository = desk.repository(run)
    kept, stream = bytearray(), KeyStream(secrets_of(config_of(run)))

    def keep(piece: bytes) -> None:
        if len(kept) <= MOST_DIFF_BYTES:
            kept.extend(stream.add(piece))

    diffs.write_diff(Span(repository.path, patch.base, patch.head), keep, stat=False)
    kept.extend(stream.finish())
    text = bytes(kept[:MOST_DIFF_BYTES]).decode("utf-8", "backslashreplace")
    return text, len(kept) > MOST_DIFF_BYTES
