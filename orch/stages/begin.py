"""The beginning of an attempt that goes by a blueprint: its worktree, and its first visit."""

from collections.abc import Sequence

from inbox_orch.shared.ids import printable
from inbox_orch.shared.store.engine import Transaction

from ..attempts import rows as attempts
from ..attempts import verify, work
from ..attempts.equip import SetupFailed
from ..attempts.rows import Details, Start, details_with
from ..gates.look import Found
from ..git import snapshots
from ..git.worktrees import Hold
from ..runs import blueprint_rows
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.model import Attempt, Run, Task
from . import course, enter, grounds
from . import settle as settling
from .model import SURROUNDINGS, Stage, from_canonical
from .settle import Outcome


def prepare(desk: Desk, run: Run, task: Task, attempt: Attempt, hold: Hold) -> Attempt:
    """The worktree with what set-up makes, found or configured; and a snapshot of it, so that there
    is something to go back to. Errors: those of plain work."""
    base = grounds.base_of(desk, run, attempt)
    known = base.known
    with desk.database.snapshot() as snapshot:
        text = blueprint_rows.text_of(snapshot, run.id, str(task.blueprint))
    stages = from_canonical(text).stages
    if known is None:
        found = grounds.found_once(desk, run, str(attempt.base_commit))
        _announce(desk, task, stages, found)
    else:
        found = Found(known.setup, known.why, known.gates, known.notes, known.packages)
    equipped, base = _equipped(desk, (run, task, attempt), hold, (found, base))
    repository = desk.repository(run)
    untracked = verify.untracked_at_start(equipped)
    worktree, ref = str(equipped.worktree_path), snapshots.ref_of(attempt.id)
    made = snapshots.snapshot(repository, worktree, untracked, ref, "Before the first stage", None)
    prove = grounds.has_to_prove(task, stages, found, base)
    start = Start(made.tree, made.commit, base.tree, prove)
    return equipped._replace(details=details_with(equipped, Details(start=start)))


def _announce(desk: Desk, task: Task, stages: Sequence[Stage], found: Found) -> None:
    """Say what is done before the first stage, which may take its time."""
    told = announcement(found, any(stage.runs_gates for stage in stages), bool(task.checks))
    if told is not None:
        desk.database.notice(f"task {task.key}: {told}")


def announcement(found: Found, judges: bool, checked: bool) -> str | None:
    """What is done on the base before the first stage of a task, which `judges` by gates or not,
    and is `checked` by commands of its own or not; None for nothing."""
    parts = []
    if found.setup is not None:
        parts.append(f"it is set up by `{printable(found.setup)}` ({found.why})")
    if judges and found.gates:
        names = ", ".join(gate.name for gate in found.gates)
        parts.append(f"its gates are tried on the base: {names}")
    elif judges and not checked:
        parts.append("no gates were found, and it has no checks: nothing judges the work")
    return "; ".join(parts) or None


def _equipped(
    desk: Desk,
    about: tuple[Run, Task, Attempt],
    hold: Hold,
    known: tuple[Found, grounds.Base],
) -> tuple[Attempt, grounds.Base]:
    """The worktree; without a set-up that was only found, and that does not work there."""
    run, task, attempt = about
    found, base = known
    try:
        return work.prepare(desk, grounds.with_setup(run, found.setup), task, attempt, hold), base
    except SetupFailed as failed:
        if config_of(run).setup is not None or work.is_cancelled(desk, run):
            raise
        told = grounds.without_setup(desk, run, base, found, failed)
    desk.database.notice(f"task {task.key}: the set-up that was found fails, and is left out")
    return work.prepare(desk, run, task, attempt, hold), base._replace(known=told)


def begin(desk: Desk, tx: Transaction, run: Run, attempt: Attempt) -> Attempt:
    """Its first visit: the gates are tried on the base, unless that was done or there are none; the
    worker of the first stage is then sent at once."""
    staged = attempts.move(tx, attempt.id, {"stage": SURROUNDINGS}, expected_state=attempt.state)
    assert staged is not None, "the attempt changed under the write lock"
    now = course.read(tx, run, attempt.id)
    start = attempts.details_of(staged).start
    assert start is not None, "its worktree was prepared"
    values = {
        "tree_before": start.tree,
        "tree_after": start.tree,
        "snapshot": start.commit,
        "head": attempt.base_commit,
    }
    number = enter.insert(tx, now, SURROUNDINGS, "gates", values)
    enter.record(desk, tx, now, number, {"stage": SURROUNDINGS})
    if start.prove:
        return staged
    now = course.read(tx, run, attempt.id)
    visit = now.live
    assert visit is not None
    settling.end(desk, tx, now, visit, Outcome("succeeded"), {})
    return _first_stage(desk, tx, run, staged)


def _first_stage(desk: Desk, tx: Transaction, run: Run, attempt: Attempt) -> Attempt:
    now = course.read(tx, run, attempt.id)
    step = now.step()
    offered = enter.offer(desk, tx, now, step) if step.do == "offer" else None
    return attempt if offered is None else offered
