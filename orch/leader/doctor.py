"""`orch doctor`: whether runs, git and the events agree. Reads, and changes nothing."""

import contextlib
import os

from inbox_orch.inbox.services.examining import Examined
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store import events
from inbox_orch.shared.store.checks import OK, PROBLEM, WARNING, Check

from ..git import repository as git_repository
from ..git import settings, stale, worktrees
from ..git.failures import shown
from ..git.standing import require_apart, require_here
from ..journal import owners
from ..journal import rows as journal_rows
from ..runs import run_rows as runs
from ..runs.desk import Desk
from ..runs.model import Run
from . import care_rows as care
from . import event_folding

_MOST_ITEMS = 20


def doctor(desk: Desk, *, verify: bool = False) -> Examined:
    """Look at git, the repositories, what was begun and not finished, the worktrees of live
    attempts; with `verify` also fold the events and compare the tables with them."""
    with desk.database.snapshot() as snapshot:
        newest = events.latest(snapshot)
        live = care.with_worktree(snapshot)
        open_runs = runs.not_closed(snapshot)
        open_intents = [i for run in open_runs for i in journal_rows.open_intents(snapshot, run.id)]
        disagreements = (
            event_folding.differences(
                event_folding.fold(care.facts(snapshot)), care.stored(snapshot)
            )
            if verify
            else None
        )
    checks = [_git(), _repositories(desk, open_runs)]
    abandoned = [
        i.attempt_id or f"{i.kind} of run {i.run_id}"
        for i in open_intents
        if owners.is_abandoned(desk, i)
    ]
    checks.append(
        _check(
            "intents",
            abandoned,
            WARNING,
            "begun by a process that is gone; `orch reconcile` finishes it",
        )
    )
    missing = [
        f"{a.worktree_path} of attempt {a.id}"
        for a in live
        if not git_repository.is_there(str(a.worktree_path))
    ]
    checks.append(_check("worktrees", missing, PROBLEM, "of a live attempt, and not there"))
    checks += [_leftovers(open_runs), _locks(open_runs), _settings(open_runs)]
    if disagreements is not None:
        checks.append(_check("events", disagreements, PROBLEM, "tables and events do not agree"))
    path = desk.database.address
    return Examined(path, desk.database.id, verify, newest, tuple(checks))


def _repositories(desk: Desk, open_runs: list[Run]) -> Check:
    gone = []
    for run in open_runs:
        if run.repository is not None:
            try:
                _require_usable(desk.repository(run))
            except InboxOrchError as error:
                gone.append(error.message)
    return _check("repositories", gone, PROBLEM, "not where their run says, or not for git")


def _leftovers(open_runs: list[Run]) -> Check:
    """Worktrees that a killed git left half made, of `orch` and of others."""
    folders = {run.repository for run in open_runs if run.repository is not None}
    found = [
        entry
        for folder in sorted(folders)
        if os.path.isdir(folder)
        for entry in worktrees.half_made(git_repository.Repository(folder))
    ]
    return _check(
        "half-made worktrees",
        found,
        WARNING,
        "left by a git that was killed; `git worktree remove -f -f` takes one away",
    )


def _settings(open_runs: list[Run]) -> Check:
    """What of the repositories' settings matters for worktrees."""
    found = []
    for folder in sorted({run.repository for run in open_runs if run.repository is not None}):
        if os.path.isdir(folder):
            with contextlib.suppress(InboxOrchError):  # `repositories` tells of those
                found += settings.notes(git_repository.Repository(folder))
    return _check("settings", found, WARNING, "that matter for worktrees")


def _require_usable(repository: git_repository.Repository) -> None:
    """Git looks at a repository, works in its main working tree, and would in others."""
    repository.ref_commit("HEAD")
    if not repository.bare:
        require_here(repository.path, repository.common_directory)
    require_apart(repository.common_directory)


def _locks(open_runs: list[Run]) -> Check:
    """Locks of git's that are older than any git needs one; whose they are cannot be told."""
    folders = {run.repository for run in open_runs if run.repository is not None}
    found = [
        shown(path)
        for folder in sorted(folders)
        if os.path.isdir(folder)
        for path in stale.old_locks(git_repository.Repository(folder).common_directory)
    ]
    text = "older than a minute; when no git is at work there, one that was killed has left them:"
    return _check("git's locks", found, WARNING, f"{text} remove the files")


def _git() -> Check:
    try:
        version = settings.check_version()
    except InboxOrchError as error:
        return Check("git", PROBLEM, error.message)
    warning = settings.version_warning(version)
    return Check("git", OK if warning is None else WARNING, warning or version)


def _check(name: str, found: list[str], status: str, text: str) -> Check:
    if not found:
        return Check(name, OK, "nothing found")
    return Check(name, status, f"{len(found)} {text}", tuple(found[:_MOST_ITEMS]), len(found))
