"""Accepted work as a patch in the ledger."""

from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.patches import ledger
from inbox_orch.orch.patches import rows as patches
from inbox_orch.orch.patches.ledger import New, Word
from inbox_orch.orch.patches.model import Patch, Summary
from inbox_orch.orch.runs.model import Run
from support.runs import Site, git


def patch_of(site: Site, run: Run, key: str) -> Patch:
    """The last patch of a task's newest attempt, which has been accepted."""
    return recorded(site.scheduler, run, key)


def recorded(scheduler: Scheduler, run: Run, key: str) -> Patch:
    """Write it down as what `commits` came to, where nobody has."""
    desk = scheduler.desk
    with desk.database.snapshot() as snapshot:
        task = desk.task(snapshot, run, key)
        (_, listed) = scheduler.attempt_named(f"{key}/{task.attempts}", run.name)
        found = patches.of_attempt(snapshot, listed.attempt.id)
    if found:
        return [each for each in found if each.rollback_of is None][-1]
    attempt = listed.attempt
    base, head = str(attempt.base_commit), str(attempt.head_commit)
    folder = str(run.repository)
    trees = [git(folder, "rev-parse", f"{commit}^{{tree}}") for commit in (base, head)]
    names = git(folder, "diff", "--name-only", base, head).split("\n")
    summary = Summary(len(names), 1, 0, 1, tuple(names))
    new = New(run.id, attempt.id, "commits", base, *trees, head, summary, "0" * 64, "w1")
    with desk.database.transaction() as tx:
        patch = ledger.hand_in(tx, new)
        for kind, outcome in (
            *(("policy", "allowed"), ("apply", "applied"), ("acceptance", "accepted")),
        ):
            ledger.say(tx, desk, run, patch, Word(kind, outcome))
    return patch
