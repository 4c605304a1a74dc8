"""Plain work that was handed in as text: judged, and then brought into the attempt's worktree, from
where it goes on as any other."""

from typing import NamedTuple

from ..git import worktrees
from ..runs.desk import Desk, place_of
from ..runs.model import Attempt, Run, Task
from . import bring_in, patches, rows
from .patches import Judged, NotFitting
from .rows import Details, details_with


class TakenIn(NamedTuple):
    """What came of it: the column `details` of the attempt then, why it was not brought in, and
    what is to be written down as a patch of that."""

    details: str
    reason: str | None = None
    judged: Judged | NotFitting | None = None


def take_in(desk: Desk, run: Run, task: Task, attempt: Attempt, seconds: float) -> TakenIn:
    """Bring in what the worker of an attempt has handed in; where that was done before, it is
    seen. Errors: `busy` when another leader is at it for so many seconds; those of git where this
    machine is the cause, and of every write."""
    repository, found = desk.repository(run), list[Judged]()

    def judged(made: rows.Brought) -> str | None:
        column = details_with(attempt, Details(brought=made))
        one = patches.judge(desk, run, task, attempt._replace(details=column), made.commit)
        if one is None or not one.denied:
            return None
        found.append(one)
        return one.rejection

    with worktrees.alone(repository, place_of(desk, attempt), seconds) as hold:
        about, base = (run, task, attempt), str(attempt.base_commit)
        done = bring_in.bring_in(desk, about, base, (repository, hold), judged)
    column = details_with(attempt, Details(brought=done.made))
    if done.code is None:
        return TakenIn(column)
    if found:
        return TakenIn(column, done.reason, found[0])
    reason = f"{done.code}: {done.reason}"
    if done.stored is None:
        return TakenIn(column, reason)
    text = (done.way, done.stored.sha256, done.author)
    return TakenIn(column, reason, patches.not_fitting(desk, run, attempt, text, reason))
