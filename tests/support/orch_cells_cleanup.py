"""The cells of `cleanup` and of the commands about attempts."""

from pathlib import Path

from support.matrix import NO_WAIT, Cell, Never, plain, read_while_busy
from support.orch_matrix import NO_SUCH, NO_TOKEN, Enterprise, after, the_run
from support.runs import commit


def ended(project: Enterprise) -> str:
    """Task `a` with an attempt that has failed and left a file; its thread."""
    item = project.dispatched()
    Path(item["worktree"], "left.txt").write_text("left\n")
    with project.bus("w1") as bus:
        token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
        bus.fail(item["thread"], str(token), body="no", fatal=True)
    with project.scheduler() as scheduler:
        scheduler.reconcile(the_run(scheduler))
    return str(item["thread"])


def salvaged(project: Enterprise) -> None:
    """The same after a clean-up."""
    ended(project)
    with project.scheduler() as scheduler:
        scheduler.cleanup(the_run(scheduler), force=True)


def into_a_full_folder(project: Enterprise) -> tuple[str, ...]:
    """Where something is already."""
    salvaged(project)
    return ("attempt", "restore", "a", "--into", str(project.folder))


def kept(project: Enterprise) -> None:
    """An attempt that has ended, with a checkpoint, in whose worktree something changed since."""
    item = project.dispatched()
    Path(item["worktree"], "left.txt").write_text("left\n")
    with project.bus("w1") as bus:
        token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
        bus.fail(item["thread"], str(token), body="no", fatal=True)
    with project.scheduler() as scheduler:
        scheduler.reconcile(the_run(scheduler))
        scheduler.checkpoint_make(*scheduler.attempt_named("a", None))
    Path(item["worktree"], "left.txt").write_text("other\n")


def kept_while_at_work(project: Enterprise) -> None:
    """A checkpoint of an attempt that a worker may take at any moment."""
    project.dispatched()
    with project.scheduler() as scheduler:
        scheduler.checkpoint_make(*scheduler.attempt_named("a", None))


def leaked(project: Enterprise) -> None:
    """A message with a secret, which stands in a file, too."""
    (project.folder / "leaked.txt").write_text("a-secret-of-ours\n")
    with project.bus("w1") as bus:
        bus.send(to="w2", subject="s", body="it is a-secret-of-ours")


def accepted(project: Enterprise) -> None:
    """Task `a`, whose work is accepted."""
    item = project.dispatched()
    commit(item["worktree"], "a.txt", "a\n")
    with project.bus("w1") as bus:
        token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
        bus.done(item["thread"], str(token), body="done")
    with project.scheduler() as scheduler:
        scheduler.reconcile(the_run(scheduler))


def brought_in(project: Enterprise) -> None:
    """The same, integrated."""
    accepted(project)
    with project.scheduler() as scheduler:
        scheduler.integrate(the_run(scheduler))


_RESTORE = ("attempt", "restore", "a/1")
_BACK = ("checkpoint", "restore", "a/1/1")

CELLS: dict[str, dict[str, Cell | Never]] = {
    "cleanup": {
        "ok": after(ended, "cleanup", "--force"),
        "usage": plain("cleanup", "--no-such-option"),
        "not_found": after(ended, "cleanup", "b"),
        "conflict": Cell(
            after(ended, "cleanup", "a").arguments, 9, "what it will not remove is a refusal"
        ),
        "busy": after(ended, "cleanup", "--force"),
        "no_database": plain("cleanup"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "attempt list": {
        "ok": after(salvaged, "attempt", "list"),
        "usage": plain("attempt", "list", "--no-such-option"),
        "not_found": plain("attempt", "list", *NO_SUCH),
        "conflict": Never("it only looks"),
        "busy": read_while_busy(after(salvaged, "attempt", "list")),
        "no_database": plain("attempt", "list"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "attempt show": {
        "ok": after(salvaged, "attempt", "show", "a"),
        "usage": plain("attempt", "show"),
        "not_found": after(salvaged, "attempt", "show", "a/2"),
        "conflict": Never("it only looks"),
        "busy": read_while_busy(after(salvaged, "attempt", "show", "a")),
        "no_database": plain("attempt", "show", "a"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "attempt restore": {
        "ok": after(salvaged, *_RESTORE),
        "usage": plain("attempt", "restore"),
        "not_found": after(ended, *_RESTORE),
        "conflict": Cell(into_a_full_folder, 9, "it never writes over anything"),
        "busy": read_while_busy(after(salvaged, *_RESTORE)),
        "no_database": plain(*_RESTORE),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "checkpoint list": {
        "ok": after(kept, "checkpoint", "list", "a"),
        "usage": plain("checkpoint", "list", "--no-such-option"),
        "not_found": after(kept, "checkpoint", "list", "b"),
        "conflict": Never("it only looks"),
        "busy": read_while_busy(after(kept, "checkpoint", "list")),
        "no_database": plain("checkpoint", "list"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "checkpoint show": {
        "ok": after(kept, "checkpoint", "show", "a/1/1"),
        "usage": plain("checkpoint", "show"),
        "not_found": after(kept, "checkpoint", "show", "a/1/2"),
        "conflict": Never("it only looks"),
        "busy": read_while_busy(after(kept, "checkpoint", "show", "a/1/1")),
        "no_database": plain("checkpoint", "show", "a/1/1"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "checkpoint make": {
        "ok": after(kept, "checkpoint", "make", "a"),
        "usage": plain("checkpoint", "make"),
        "not_found": after(kept, "checkpoint", "make", "b"),
        "conflict": after(salvaged, "checkpoint", "make", "a"),
        "busy": after(kept, "checkpoint", "make", "a"),
        "no_database": plain("checkpoint", "make", "a"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "checkpoint restore": {
        "ok": after(kept, *_BACK),
        "usage": plain("checkpoint", "restore"),
        "not_found": after(kept, "checkpoint", "restore", "a/1/2"),
        "conflict": Cell(
            after(kept_while_at_work, *_BACK).arguments, 9, "it disturbs nobody who is at work"
        ),
        "busy": after(kept, *_BACK),
        "no_database": plain(*_BACK),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "purge": {
        "ok": after(leaked, "purge", "--yes", "--from", "leaked.txt"),
        "usage": plain("purge", "--yes"),
        "not_found": Never("a value that is nowhere is what is hoped for"),
        "conflict": Never("what it does not reach it names"),
        "busy": after(leaked, "purge", "--yes", "--from", "leaked.txt"),
        "no_database": after(leaked, "purge", "--from", "leaked.txt"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "patch rollback": {
        "ok": after(brought_in, "patch", "rollback", "a/1/1"),
        "usage": plain("patch", "rollback"),
        "not_found": after(brought_in, "patch", "rollback", "a/1/2"),
        "conflict": after(accepted, "patch", "rollback", "a/1/1"),
        "busy": after(brought_in, "patch", "rollback", "a/1/1"),
        "no_database": plain("patch", "rollback", "a/1/1"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
}
