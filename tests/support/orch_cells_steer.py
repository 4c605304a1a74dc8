"""The cells of the commands that steer runs and tasks."""

from typing import Any

from support.matrix import NO_STATE, NO_WAIT, Cell, Never, given, plain
from support.orch_matrix import NO_SUCH, NO_TOKEN, Enterprise, after, reader, the_run, with_tasks


def writer(
    *line: str,
    ok: Any = None,
    conflict: Any = None,
    not_found: Cell | None = None,
    usage: tuple[str, ...] | None = None,
) -> dict[str, Cell | Never]:
    """The cells of a command that changes what is there: `ok` (by default a run with task `a`)
    and `conflict` make it ready."""
    ok = ok or with_tasks("a")
    return {
        "ok": after(ok, *line),
        "usage": plain(*(usage or (*line, "--no-such-option"))),
        "not_found": not_found or plain(*line, *NO_SUCH),
        "conflict": NO_STATE if conflict is None else after(conflict, *line),
        "busy": after(ok, *line),
        "no_database": plain(*line),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    }


def closing(project: Enterprise) -> str:
    """A run with task `a` that is closed; its name."""
    project.tasks("a")
    with project.scheduler() as scheduler:
        return scheduler.close_run(the_run(scheduler)).run.name


def on_closed(*line: str) -> Cell:
    """The command on a closed run, which must be named."""
    return given(lambda project: (*line, "--run", closing(project)))


def cancelling(project: Enterprise) -> str:
    """A run that is being cancelled; its name."""
    project.running()
    with project.scheduler() as scheduler:
        return scheduler.cancel_run(the_run(scheduler)).run.name


def paused(project: Enterprise) -> None:
    """A paused run."""
    project.tasks("a")
    with project.scheduler() as scheduler:
        scheduler.pause_run(the_run(scheduler))


def failed(project: Enterprise) -> None:
    """Task `a` has failed for good, after a commit."""
    item = project.dispatched()
    with project.bus("w1") as bus:
        token = bus.claim(item["thread"], mailboxes=["workers"]).lease.token
        bus.fail(item["thread"], str(token), body="it does not work", fatal=True)
    with project.scheduler() as scheduler:
        scheduler.reconcile(the_run(scheduler))


_EDIT, _REMOVE = ("task", "edit", "a", "--title", "B"), ("task", "remove", "a")

CELLS: dict[str, dict[str, Cell | Never]] = {
    "task edit": {
        **writer(*_EDIT, conflict=Enterprise.running, usage=("task", "edit", "a")),
        "usage": after(with_tasks("a"), "task", "edit", "a"),
    },
    "task remove": writer(*_REMOVE, conflict=with_tasks("a", "b")),
    "run pause": {
        **writer("run", "pause"),
        "conflict": on_closed("run", "pause"),
    },
    "run resume": {
        **writer("run", "resume", ok=paused),
        "conflict": on_closed("run", "resume"),
    },
    "run cancel": {
        **writer("run", "cancel", ok=Enterprise.running),
        "conflict": on_closed("run", "cancel"),
    },
    "run close": {
        **writer("run", "close"),
        "conflict": Cell(
            after(Enterprise.running, "run", "close").arguments,
            9,
            "what stands in the way is a live attempt, which is not closed for safety",
        ),
    },
    "run reopen": {
        **writer("run", "reopen", usage=("run", "reopen")),
        "ok": on_closed("run", "reopen"),
        "not_found": plain("run", "reopen", *NO_SUCH),
        "conflict": given(lambda project: ("run", "reopen", "--run", cancelling(project))),
        "busy": on_closed("run", "reopen"),
        "no_database": plain("run", "reopen", *NO_SUCH),
    },
    "task show": {
        **reader("task", "show", "a"),
        "not_found": after(with_tasks("b"), "task", "show", "a"),
    },
    "dep remove": writer(
        *("dep", "remove", "b", "--on", "a"),
        ok=with_tasks("a", "b"),
        conflict=lambda project: started(project),
        not_found=after(with_tasks("b", "a", "c"), "dep", "remove", "c", "--on", "b"),
        usage=("dep", "remove", "b"),
    ),
    "retry": writer(
        *("retry", "a", "--from-attempt", "1"),
        ok=failed,
        conflict=Enterprise.running,
        not_found=after(failed, "retry", "a", "--from-attempt", "2"),
        usage=("retry",),
    ),
    "reassign": writer(
        *("reassign", "a", "--to", "others"),
        ok=Enterprise.running,
        conflict=lambda project: ended_for_good(project),
        not_found=after(with_tasks("b"), "reassign", "a", "--to", "others"),
        usage=("reassign", "a"),
    ),
    "cancel": writer(
        *("cancel", "a"),
        ok=Enterprise.asked,
        conflict=failed,
        not_found=after(with_tasks("b"), "cancel", "a"),
        usage=("cancel",),
    ),
    "skip": writer(
        *("skip", "a"),
        conflict=Enterprise.running,
        not_found=after(with_tasks("b"), "skip", "a"),
        usage=("skip",),
    ),
}


def started(project: Enterprise) -> None:
    """Task `b`, which waits for `a`, has been dispatched."""
    project.tasks("a", "b")
    with project.scheduler() as scheduler:
        run = the_run(scheduler)
        scheduler.skip(run, ["a"])
        scheduler.dispatch(run)


def ended_for_good(project: Enterprise) -> None:
    """Task `a` is being cancelled."""
    project.running()
    with project.scheduler() as scheduler:
        scheduler.cancel(the_run(scheduler), ["a"])
