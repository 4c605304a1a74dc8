"""The cells of the commands that verify work."""

from pathlib import Path
from typing import Any

from support.matrix import NO_WAIT, plain
from support.orch_cells_integrate import accepted
from support.orch_matrix import NO_TOKEN, Enterprise, after, the_run
from support.runs import commit


def failed_with_a_commit(project: Enterprise) -> Enterprise:
    """Task `a` with an attempt that has committed, and then failed."""
    item = project.dispatched()
    commit(Path(item["worktree"]), "a.txt", "a\n")
    with project.bus("w1") as bus:
        token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
        bus.fail(item["thread"], str(token), body="it is too hard")
    with project.scheduler() as scheduler:
        scheduler.reconcile(the_run(scheduler))
    return project


CELLS: dict[str, dict[str, Any]] = {
    "adopt": {
        "ok": after(failed_with_a_commit, "adopt", "a"),
        "usage": plain("adopt"),
        "not_found": after(failed_with_a_commit, "adopt", "a", "--attempt", "7"),
        "conflict": after(accepted, "adopt", "a"),
        "busy": after(failed_with_a_commit, "adopt", "a"),
        "no_database": plain("adopt", "a"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
}
