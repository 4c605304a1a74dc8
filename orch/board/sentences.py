"""What has happened in a run, in a person's words: one table from kinds of events to sentences.
Pure.

One sentence for each thing that happened. An offer is a handful of events: one of them tells it,
and the others, which stand here with None, tell nothing of their own.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from inbox_orch.shared.store.events import Event

from ..views import patch_words, stage_words
from .fitting import one_line

_MOST_REASON = 200


class Told(NamedTuple):
    """An event, and what is known of what it is about: the task's `key`; `who` works on it, as far
    as that is known; `before` whose lease ran out there; the `text` that was written with it."""

    event: Event
    key: str
    who: str
    before: str | None = None
    text: str = ""

    @property
    def data(self) -> Mapping[str, Any]:
        return self.event.data

    @property
    def by(self) -> str:
        """Who has done it."""
        return self.event.actor

    @property
    def reason(self) -> str:
        """Why, behind a colon; nothing when no reason is given."""
        found = self.data.get("reason") or self.data.get("cause")
        return f": {one_line(str(found), _MOST_REASON)}" if found else ""

    @property
    def paths(self) -> str:
        """Where it conflicts."""
        return ", ".join(map(str, self.data.get("paths", ())[:5]))


class Sentence(NamedTuple):
    """One thing that happened. `at` is wall-clock milliseconds; `look` the state whose colour it
    has; `about` what it is about, `kind` and `number` which events tell it."""

    at: int
    text: str
    look: str | None
    about: str
    kind: str
    number: int = 1


Words = Callable[[Told], str | None]


def _opened(told: Told) -> str:
    source = told.data.get("from")
    if source is None:
        return f"{told.by} opened the run"
    return f"{told.by} {'reopened the run' if source == 'closed' else 'lets the run go on'}"


def _pending(told: Told) -> str | None:
    if told.data.get("from") is None:
        return f"{told.by} added `{told.key}`"
    if told.data.get("cause") == "retry":
        return f"{told.by} has `{told.key}` tried again"
    return None


def _cancelled(told: Told) -> str | None:
    """With an attempt, what becomes of that has told it."""
    return None if told.event.attempt_id else f"{told.by} cancelled `{told.key}`"


def _claimed(told: Told) -> str:
    if told.before is not None and told.before != told.who:
        return f"{told.who} took over `{told.key}` from {told.before}, whose lease ran out"
    if told.before is not None:
        return f"{told.who} took `{told.key}` again, after the lease ran out"
    return f"{told.who} took `{told.key}`"


def _updated(told: Told) -> str:
    progress = told.data.get("progress")
    said = f": {told.text}" if told.text else ""
    how = "tells of" if progress is None else f"is at {progress} % of"
    return f"{told.who} {how} `{told.key}`{said}"


def _offered(told: Told) -> str | None:
    """One that comes back from a worker is told by what that did."""
    if told.data.get("from") != "provisioned":
        return None
    number = told.data.get("number", 1)
    return f"`{told.key}` waits for a worker" + (f" (attempt {number})" if number > 1 else "")


def _ending(told: Told) -> str:
    if told.data.get("cause") == "cancel":
        return f"{told.by} cancelled `{told.key}`; its worker has still to learn of it"
    return f"work on `{told.key}` is to stop{told.reason}"


def _harvested(told: Told) -> str:
    files = told.data.get("harvested", {}).get("files", 0)
    named = "a file" if files == 1 else f"{files} files"
    return f"{named} that {told.who} had left uncommitted in `{told.key}` went into a commit"


def _asked(told: Told) -> str:
    return f"{told.who} asks about `{told.key}`" + (f": {told.text}" if told.text else "")


def _skipped(told: Told) -> str:
    # One that was blocked was split, which its reason says.
    split = told.data.get("from") == "blocked"
    return f"`{told.key}`{told.reason}" if split else f"{told.by} skipped `{told.key}`"


def _edited(told: Told) -> str:
    return f"{told.by} changed `{told.key}`: {', '.join(told.data.get('changed', ()))}"


def _roles(told: Told) -> str:
    return f"roles have mailboxes of their own now: {', '.join(told.data.get('roles', {}))}"


def _patch(told: Told) -> str | None:
    return _visit(patch_words.told(told.data), told)


def _visit(said: str | None, told: Told) -> str | None:
    return None if said is None else f"`{told.key}`: {one_line(said, _MOST_REASON)}"


SENTENCES: Mapping[str, tuple[str | None, Words | None]] = {
    # The run.
    "run_open": (None, _opened),
    "run_paused": ("waiting", lambda t: f"{t.by} paused the run: nothing new starts"),
    "run_cancelling": ("cancelled", lambda t: f"{t.by} cancelled the run"),
    "run_closed": (None, lambda t: "the run was closed"),
    # Tasks. That one is in hand, or waits for an answer, its attempt tells.
    "task_pending": (None, _pending),
    "task_active": (None, None),
    "task_blocked": (None, None),
    "task_succeeded": ("succeeded", lambda t: f"`{t.key}` is done"),
    "task_failed": ("failed", lambda t: f"`{t.key}` failed{t.reason}"),
    "task_cancelled": ("cancelled", _cancelled),
    "task_skipped": ("skipped", _skipped),
    "task_edited": (None, _edited),
    "task_removed": ("cancelled", lambda t: f"{t.by} removed `{t.key}`"),
    "task_reassigned": (
        None,
        lambda t: f"{t.by} gave `{t.key}` to the mailbox {t.data.get('mailbox')}",
    ),
    "dependency_added": (None, None),
    "dependency_removed": (None, lambda t: f"`{t.key}` waits for one task less"),
    # Attempts. What a worker did, the events of its thread tell, which name it.
    "attempt_allocating": (None, None),
    "attempt_provisioned": (None, None),
    "attempt_provision_failed": (
        "failed",
        lambda t: f"the worktree for `{t.key}` could not be made{t.reason}",
    ),
    "attempt_offered": (None, _offered),
    "attempt_running": (None, None),
    "attempt_blocked": (None, None),
    "attempt_submitted": (None, None),
    "attempt_verifying": (None, None),
    "attempt_ending": ("cancelled", _ending),
    "attempt_succeeded": (
        "succeeded",
        lambda t: f"`{t.key}` is done: the work of {t.who} is accepted",
    ),
    "attempt_rejected": (
        "failed",
        lambda t: f"the work of {t.who} on `{t.key}` is not accepted{t.reason}",
    ),
    "attempt_failed": ("failed", lambda t: f"{t.who} failed at `{t.key}`{t.reason}"),
    "attempt_timed_out": ("failed", lambda t: f"{t.who} took too long over `{t.key}`{t.reason}"),
    "attempt_lost": ("failed", lambda t: f"the work on `{t.key}` is lost{t.reason}"),
    "attempt_cancelled": ("cancelled", lambda t: f"work on `{t.key}` has stopped"),
    "attempt_adopted": (
        "succeeded",
        lambda t: f"{t.by} took commits of attempt {t.data.get('number')} as the work of `{t.key}`",
    ),
    "attempt_integrated": ("succeeded", lambda t: f"the work on `{t.key}` was integrated"),
    "attempt_conflict": (
        "base_conflict",
        lambda t: f"the work on `{t.key}` conflicts with what was integrated, in {t.paths}",
    ),
    "base_conflict_found": (
        "base_conflict",
        lambda t: f"what `{t.key}` builds on does not merge, in {t.paths}",
    ),
    "late_work_kept": (None, lambda t: f"commits that came late for `{t.key}` were kept"),
    "work_harvested": (None, _harvested),
    "worktree_removed": (None, lambda t: f"a worktree of `{t.key}` was taken away"),
    "purged": (None, lambda t: f"{t.by} took a secret out of what is stored"),
    "checkpoint_made": (None, lambda t: f"{t.by} kept a checkpoint of `{t.key}`"),
    "checkpoint_restored": (None, lambda t: f"{t.by} took `{t.key}` back to a checkpoint"),
    # Visits of stages, where a blueprint says how an attempt goes.
    "visit_begun": (None, lambda t: _visit(stage_words.begun(t.data), t)),
    "visit_ended": (None, lambda t: _visit(stage_words.ended(t.data), t)),
    "roles_given": (None, _roles),
    # Patches: what says only that all goes well, the attempt tells.
    "patch_created": (None, None),
    "patch_judged": ("failed", _patch),
    "patch_decided": (None, _patch),
    "patch_released": (None, _patch),
    "patch_applied": ("failed", _patch),
    "patch_verified": (None, None),
    "patch_committed": (None, None),
    "patch_rolled_back": (None, _patch),
    "patch_dropped": ("cancelled", _patch),
    # Councils.
    "round_opened": (None, lambda t: f"round {t.data.get('round')} was opened"),
    "round_closed": (None, lambda t: f"round {t.data.get('round')} was closed"),
    "reply_recorded": (None, lambda t: f"the reply of {t.data.get('reviewer')} is there"),
    "override_recorded": (None, lambda t: f"{t.by} settled something about the groups"),
    "tally_revised": (None, None),
    "report_stored": (None, lambda t: f"a report was stored: {t.data.get('name')}"),
    # Threads, by which workers are named.
    "thread_sent": (None, None),
    "thread_claimed": ("running", _claimed),
    "lease_renewed": (None, None),
    "lease_expired": ("failed", lambda t: f"the lease of {t.who} on `{t.key}` ran out"),
    "thread_updated": (None, _updated),
    "question_asked": ("blocked", _asked),
    "question_answered": (None, lambda t: f"{t.by} answered {t.who} about `{t.key}`"),
    "question_expired": ("failed", lambda t: f"nobody answered {t.who} about `{t.key}` in time"),
    "thread_released": (None, lambda t: f"{t.by} gave `{t.key}` back"),
    "thread_deferred": (None, lambda t: f"{t.by} gave `{t.key}` back for a while"),
    "thread_done": ("submitted", lambda t: f"{t.by} has finished `{t.key}`: it is looked at"),
    "thread_failed": (None, None),
    "thread_cancelled": (None, None),
    "cancel_seen": (None, lambda t: f"{t.by} has stopped working on `{t.key}`"),
    "message_added": (None, lambda t: f"{t.by} wrote about `{t.key}`"),
    "artifacts_attached": (None, None),
    "thread_unsealed": (None, None),
    "thread_pruned": (None, None),
}
"""For each kind of event how it looks and its words. None: another event tells it."""

_ENDS = frozenset(f"attempt_{state}" for state in ("rejected", "failed", "timed_out", "lost"))
_TAILS = {"task_pending": "; it is tried again", "task_failed": "; it is not tried again"}
_SAID_ALREADY = {(f"attempt_{how}", "task_succeeded") for how in ("succeeded", "adopted")}
# An update takes the place of the one before it, who takes over that of the lease's end, and what a
# visit came to that of its worker's word.
_REPLACED = {
    "thread_updated": "thread_updated",
    "thread_claimed": "lease_expired",
    "visit_ended": "thread_done",
}
_COUNTED = {
    "task_pending": "{by} added {number} tasks",
    "attempt_offered": "{number} tasks wait for workers",
    "worktree_removed": "{number} worktrees were taken away",
    "attempt_integrated": "the work on {number} tasks was integrated",
}
_ALONE = 3
"""Up to so many in a row are told one by one."""


def sentences(
    events: Iterable[Event],
    keys: Mapping[str, str],
    threads: Mapping[str, str],
    texts: Mapping[int, str],
    *,
    cut: bool = False,
) -> list[Sentence]:
    """What the events tell, oldest first. `keys` are the keys of the tasks by their ids, `threads`
    by the ids of threads; `texts` what was written with messages, by their ids; `cut` whether there
    were others before these events."""
    known = dict(threads)
    holders: dict[str, str] = {}
    expired: dict[str, str] = {}
    found: list[Sentence] = []
    for event in events:
        thread = event.thread_id or ""
        key = keys.get(event.task_id or "") or known.get(thread) or str(event.data.get("key", ""))
        if thread:
            known[thread] = key
            holder = event.data.get("holder") or event.data.get("lease_holder")
            holders[thread] = str(holder or holders.get(thread, "a worker"))
        text = one_line(texts.get(event.data.get("message", 0)), _MOST_REASON)
        who = holders.get(thread, "a worker")
        _add(found, Told(event, key, who, expired.get(thread), text))
        if event.kind == "lease_expired":
            expired[thread] = who
        elif event.kind == "thread_claimed":
            expired.pop(thread, None)
    return _counted(found, cut)


def _add(found: list[Sentence], told: Told) -> None:
    event = told.event
    look, words = SENTENCES.get(event.kind, (None, None))
    about = event.thread_id or event.task_id or ""
    last = found[-1] if found else None
    if last is not None and last.kind in _ENDS and event.kind in _TAILS and last.about == about:
        found[-1] = last._replace(text=last.text + _TAILS[event.kind])
        return
    if last is not None and last.about == about and (last.kind, event.kind) in _SAID_ALREADY:
        return
    text = None if words is None else words(told)
    if text is None:
        return
    replaced = _REPLACED.get(event.kind)
    before = [n for n, each in enumerate(found) if each.about == about]
    if event.kind == "visit_ended":  # what was committed for its worker is told in between
        before = [n for n in before if found[n].kind != "work_harvested"]
    if replaced and before and found[before[-1]].kind == replaced:
        del found[before[-1]]
    found.append(Sentence(event.at, text, look, about, event.kind))


def _counted(found: list[Sentence], cut: bool) -> list[Sentence]:
    """Many of a kind in a row are one thing that somebody did."""
    told: list[Sentence] = []
    row: list[Sentence] = []
    for each in [*found, None]:
        if row and (each is None or each.kind != row[0].kind):
            many = len(row) > _ALONE and row[0].kind in _COUNTED
            told += _as_one(row, cut and not told) if many else row
            row = []
        if each is not None:
            row.append(each)
    return told


def _as_one(row: list[Sentence], cut: bool) -> list[Sentence]:
    last = row[-1]
    by = last.text.split(" ", 1)[0]
    number = f"{len(row)} or more" if cut else len(row)
    text = _COUNTED[last.kind].format(by=by, number=number)
    return [last._replace(text=text, number=len(row))]
