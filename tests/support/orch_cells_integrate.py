"""The cells of the commands that bring work together."""

from pathlib import Path
from typing import Any

from support.matrix import NO_WAIT, Cell, plain
from support.orch_matrix import NO_SUCH, NO_TOKEN, Enterprise, after, reader, the_run
from support.runs import commit, git


def accepted(project: Enterprise) -> Enterprise:
    """Task `a` with accepted work that changes a file."""
    item = project.dispatched()
    commit(Path(item["worktree"]), "a.txt", "a\n")
    with project.bus("w1") as bus:
        token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
        bus.done(item["thread"], str(token), body="done")
    with project.scheduler() as scheduler:
        scheduler.reconcile(the_run(scheduler))
    return project


def checked_out_and_changed(project: Enterprise) -> tuple[str, ...]:
    """The integration's own branch cannot be moved where somebody works on it."""
    accepted(project)
    with project.scheduler() as scheduler:
        branch = f"orch/{the_run(scheduler).name}/integration"
    git(project.folder, "switch", "--quiet", "--create", branch)
    (project.folder / "README.md").write_text("changed\n")
    return ("integrate",)


CELLS: dict[str, dict[str, Any]] = {
    "integrate": {
        "ok": after(accepted, "integrate", "--onto", "main"),
        "usage": after(accepted, "integrate", "--onto", "orch/x"),
        "not_found": after(accepted, "integrate", "--onto", "no-such-branch"),
        "conflict": Cell(checked_out_and_changed, 9, "it waits for the owner of a working tree"),
        "busy": after(accepted, "integrate"),
        "no_database": plain("integrate", *NO_SUCH),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "conflicts": {
        **reader("conflicts"),
        "usage": plain("conflicts", "--pairs", "0"),
    },
}
