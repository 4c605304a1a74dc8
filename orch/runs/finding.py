"""Which run is meant: the one that is named, or the only one there is. Nothing is guessed: who
changes something gets no closed run that was not named."""

from collections.abc import Sequence

from inbox_orch.shared.errors import InboxOrchError, not_found, usage
from inbox_orch.shared.ids import MOST_CANDIDATES, ambiguous, beginning_of_id, printable
from inbox_orch.shared.shell.nearest import nearest
from inbox_orch.shared.store.engine import Session

from . import run_rows as runs
from .model import Run


def named(tx: Session, name: str) -> Run:
    """The run of this name or id, or the only one whose name or id begins so. Errors: `not_found`;
    `usage`, which lists them, when there are several."""
    run = runs.get(tx, name) or the_only(
        "run", name, runs.beginning(tx, name, beginning_of_id(name), MOST_CANDIDATES + 1)
    )
    if run is None:
        raise not_found("run", printable(name), hint=_runs_hint(tx, name))
    return run


def the_only(kind: str, name: str, begun: Sequence[Run]) -> Run | None:
    """The one run or council that begins so, None where there is none; error `usage`, which lists
    them, when there are several."""
    if len(begun) > 1:
        raise ambiguous(kind, name, [run.name for run in begun])
    return begun[0] if begun else None


def only_open(tx: Session) -> Run:
    """The only run that is not closed. Errors: `not_found`, which tells of the last one; `usage`,
    which lists them, when there are several."""
    candidates = _mostly_runs(tx, runs.not_closed(tx))
    if not candidates:
        raise none_open("run", runs.last_closed(tx, "work"), "`orch run init --title T` opens one")
    if len(candidates) > 1:
        raise usage(
            "there are several open runs: " + ", ".join(r.name for r in candidates),
            hint="give --run NAME or set ORCH_RUN",
            runs=[r.name for r in candidates],
        )
    return candidates[0]


def last_or_open(tx: Session) -> Run:
    """For who only looks: the only run that is not closed; where all are, the one that was closed
    last. Errors as of `only_open`."""
    if _mostly_runs(tx, runs.not_closed(tx)):
        return only_open(tx)
    return runs.last_closed(tx, "work") or only_open(tx)


def none_open(kind: str, last: Run | None, opens: str) -> InboxOrchError:
    """The error where no run or council is open; `opens` is a hint at how to open one."""
    hint = opens
    if last is not None:
        hint = f"--{kind} {last.name} names the last one, which is closed; {opens}"
    return InboxOrchError("not_found", f"there is no open {kind}", hint=hint)


def _mostly_runs(tx: Session, found: list[Run]) -> list[Run]:
    """A council is a run, too; beside any other it is meant only when it is named."""
    return [run for run in found if runs.kind(tx, run.id) == "work"] or found


def _runs_hint(tx: Session, name: str) -> str:
    every = runs.every(tx)
    near = nearest(name[:200], [run.name for run in every])
    if near:
        return f"did you mean {near}?"
    names = [run.name for run in runs.not_closed(tx)]
    if not names and every:
        return "`orch run list --all` lists those that are closed"
    return f"open runs: {', '.join(names)}" if names else "`orch run init` opens one"
