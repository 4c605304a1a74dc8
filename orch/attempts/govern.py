"""Runs as a whole: pause, resume, cancel, close, reopen. None of it deletes anything."""

from typing import Any, NamedTuple

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.engine import Transaction

from ..runs import run_rows as runs
from ..runs import states
from ..runs import task_rows as tasks
from ..runs.desk import Desk
from ..runs.model import Run
from . import fold, moving, stop
from . import rows as attempts

_MOST_NAMED = 20


class Governed(NamedTuple):
    """A run after a call about it as a whole. `already`: it was so before. `cancelled` are the
    keys of the tasks that the call cancelled, `ending` those whose attempt still has to end."""

    run: Run
    outcome: str
    already: bool
    cancelled: tuple[str, ...] = ()
    ending: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        return {
            "run": self.run.as_json(),
            "outcome": self.outcome,
            "already": self.already,
            "cancelled": list(self.cancelled),
            "ending": list(self.ending),
        }


def list_runs(desk: Desk, *, closed: bool = False) -> list[Run]:
    """The runs that are not closed, oldest first; with `closed` those too."""
    with desk.database.snapshot() as snapshot:
        return runs.every(snapshot) if closed else runs.not_closed(snapshot)


def pause_run(desk: Desk, run: Run) -> Governed:
    """Dispatch nothing more; what runs goes on. Error `invalid_state`."""
    return _turn(desk, run, "paused", ("open",), "run pause")


def resume_run(desk: Desk, run: Run) -> Governed:
    """Dispatch again. Error `invalid_state`."""
    return _turn(desk, run, "open", ("paused",), "run resume")


def reopen_run(desk: Desk, run: Run) -> Governed:
    """Go on with a closed run, also with one that was closed by being cancelled; its tasks
    stay as they are. Error `invalid_state`."""
    return _turn(desk, run, "open", ("closed",), "run reopen")


def close_run(desk: Desk, run: Run) -> Governed:
    """Close a run in which nothing lives any more.

    Errors: `live_attempt`; `invalid_state` (it is being cancelled).
    """
    fold.fold(desk, run)
    with desk.database.transaction() as tx:
        present = _present(tx, run)
        if present.state == "closed":
            return _governed(desk, tx, present, already=True)
        _refuse_live(tx, present)
        columns = {"closed_at": tx.now.wall_ms}
        closed = desk.move_run(tx, present, "closed", cause="run close", changes=columns)
        return _governed(desk, tx, closed)


def cancel_run(desk: Desk, run: Run) -> Governed:
    """Cancel every pending task and stop every attempt; the run is closed once the last one
    has ended, by whichever command notices it.

    Error `invalid_state` (it is closed, and was not cancelled).
    """
    fold.fold(desk, run)
    with desk.database.transaction() as tx:
        present = _present(tx, run)
        already = present.cancelled_at is not None
        cancelled: list[str] = []
        if not already:
            if present.state == "closed":
                raise _refused(present, "run cancel", "it is over; nothing of it runs")
            columns = {"cancelled_at": tx.now.wall_ms}
            present = desk.move_run(tx, present, "cancelling", cause="run cancel", changes=columns)
            cancelled = stop.sweep(desk, tx, present)
    fold.fold(desk, run)
    with desk.database.transaction() as tx:
        governed = _governed(desk, tx, _present(tx, run), already=already)
        keys = [tasks.by_id(tx, task_id).key for task_id in cancelled]
    return governed._replace(cancelled=tuple(keys))


# -- steps -------------------------------------------------------------------------------


def _turn(desk: Desk, run: Run, target: str, sources: tuple[str, ...], verb: str) -> Governed:
    """One transition without any condition; being there already is no error."""
    with desk.database.transaction() as tx:
        present = _present(tx, run)
        if present.state == target:
            return _governed(desk, tx, present, already=True)
        if present.state not in sources:
            raise _refused(present, verb)
        columns = dict.fromkeys(("closed_at", "cancelled_at")) if "closed" in sources else {}
        turned = desk.move_run(tx, present, target, cause=verb, changes=columns)
        return _governed(desk, tx, turned)


def _present(tx: Transaction, run: Run) -> Run:
    present = runs.get(tx, run.id)
    assert present is not None, "runs are never removed"
    return present


def _governed(desk: Desk, tx: Transaction, run: Run, *, already: bool = False) -> Governed:
    picture = moving.picture(desk, tx, run, tx.now.wall_ms)
    ending = tuple(
        picture.of(a.task_id).task.key
        for a in attempts.live_of_run(tx, run.id)
        if run.cancelled_at is not None
    )
    return Governed(run, picture.outcome, already, ending=ending)


def _refuse_live(tx: Transaction, run: Run) -> None:
    live = attempts.live_of_run(tx, run.id)
    if not live:
        return
    names = [f"{tasks.by_id(tx, a.task_id).key}/{a.number}" for a in live]
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if names[5:] else "")
    raise InboxOrchError(
        "live_attempt",
        f"run {run.name} has attempts that live: {shown}",
        hint="`orch wait --until run` waits for their end, which closes the run"
        if run.state == "cancelling"
        else "wait for them; or `orch run cancel` stops them, and then closes the run",
        details={"run": run.name, "state": run.state, "attempts": names[:_MOST_NAMED]},
    )


def _refused(run: Run, verb: str, hint: str | None = None) -> InboxOrchError:
    return states.refuse("run", run.name, run.state, verb, hint)
