"""What has happened, in a person's words: a sentence for each kind of event that says something by
itself; the key of its task stands before it. Pure: a table, and how it is read."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from ..patches.vocabulary import EVENTS as OF_PATCHES
from . import patch_words, stage_words

_SAYS: dict[str, str | None] = {
    "run_open": "the run was opened",
    "run_paused": "the run was paused",
    "run_cancelling": "the run is being cancelled",
    "run_closed": "the run was closed",
    "task_pending": "is to be tried again{reason}",
    "task_active": None,
    "task_blocked": "waits for an answer",
    "task_succeeded": "succeeded",
    "task_failed": "failed for good{reason}",
    "task_cancelled": "was cancelled{reason}",
    "task_skipped": "was skipped",
    "task_edited": "was changed: {changed}",
    "task_removed": "was removed",
    "task_reassigned": "goes to `{mailbox}` from now on",
    "dependency_added": None,
    "dependency_removed": None,
    "attempt_allocating": None,
    "attempt_provisioned": None,
    "attempt_offered": "attempt {number} was handed back",
    "attempt_running": "attempt {number} was begun",
    "attempt_blocked": None,
    "attempt_submitted": "attempt {number} was handed in",
    "attempt_verifying": None,
    "attempt_ending": "attempt {number} is to end{reason}",
    "attempt_succeeded": None,
    "attempt_rejected": "attempt {number} was not accepted{reason}",
    "attempt_failed": "attempt {number} failed{reason}",
    "attempt_timed_out": "attempt {number} took too long{reason}",
    "attempt_lost": "attempt {number} was lost{reason}",
    "attempt_cancelled": "attempt {number} was cancelled{reason}",
    "attempt_provision_failed": "attempt {number} could not be set up{reason}",
    "attempt_conflict": "attempt {number} does not merge{reason}",
    "attempt_integrated": "attempt {number} was integrated",
    "attempt_adopted": "attempt {number} was adopted",
    "base_conflict_found": "what it depends on does not merge: {paths}",
    "late_work_kept": "work that came late was kept, of attempt {number}",
    "work_harvested": "what attempt {number} left uncommitted was committed",
    "worktree_removed": "the worktree of attempt {number} was removed",
    "checkpoint_made": "checkpoint {checkpoint} of attempt {number} was kept",
    "checkpoint_restored": "attempt {number} went back to its checkpoint {checkpoint}",
    "round_opened": "round {round} was opened",
    "round_closed": "round {round} was closed",
    "reply_recorded": "a reply was read",
    "override_recorded": "the leader settled something",
    "tally_revised": None,
    "report_stored": "the report {name} was stored",
    "purged": "a secret was taken out of what is stored",
    "roles_given": "roles have mailboxes of their own now: {roles}",
}
"""None: another event of the same moment says it, or nobody needs to know."""

_SAYS_FROM: dict[tuple[str, str | None], str | None] = {
    ("run_open", "paused"): "the run goes on",
    ("run_open", "closed"): "the run was reopened",
    ("task_pending", None): "was added",
    ("task_active", "blocked"): "goes on",
    ("task_skipped", "blocked"): "was skipped{reason}",
    ("attempt_offered", "provisioned"): "attempt {number} was handed out",
    ("attempt_offered", "blocked"): None,
    ("attempt_running", "blocked"): None,
}
"""Where it matters which state was left."""

_OF_VISITS = {"visit_begun": stage_words.begun, "visit_ended": stage_words.ended}
_LONGEST = 300


def sentence(kind: str, data: Mapping[str, Any]) -> str | None:
    """What an event of this kind says with these `data`, on one line; None when it says nothing by
    itself."""
    if kind in _OF_VISITS:
        said = _OF_VISITS[kind](data)
        return None if said is None else one_line(said)
    if kind in OF_PATCHES:
        said = patch_words.told(data)
        return None if said is None else one_line(said)
    there = (kind, data.get("from"))
    words = _SAYS_FROM[there] if there in _SAYS_FROM else _SAYS.get(kind, kind.replace("_", " ", 1))
    if words is None:
        return None
    values = defaultdict(str, {name: _words(value) for name, value in data.items()})
    if values["reason"]:
        values["reason"] = f": {values['reason']}"
    return words.format_map(values)


def is_told_by_next(kind: str, attempt: str | None, following: str, its: str | None) -> bool:
    """Whether the event after this one says the same and more: how an attempt has ended is the
    reason of what becomes of its task. `attempt` and `its` are the ids of their attempts."""
    ends = kind.startswith("attempt_") and following.startswith("task_")
    return ends and attempt is not None and attempt == its


def one_line(text: object) -> str:
    """A text of any length as a part of a sentence, of at most 300 characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 1] + "…"


def _words(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, tuple, dict)):
        return one_line(", ".join(map(str, value)))
    return one_line(value)
