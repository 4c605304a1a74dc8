"""What the line that leads on has to know of a run, read in one snapshot.

Folds nothing, and does not ask git.
"""

import contextlib

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.store.engine import Session

from ..attempts import moving
from ..attempts import rows as attempts
from ..integration import rows as integrations
from ..runs import finding
from ..runs import run_rows as runs
from ..runs.desk import Desk
from ..runs.model import WISHES, Attempt, Run
from ..runs.readiness import Picture, Slots, taken_by
from .next_rules import Facts

_MOVING = ("active", "backing_off", "ready")


def facts_of(desk: Desk, run: Run, default: str | None, just: str | None) -> Facts:
    """How a run stands. `default` is the run that the environment names, if it names one; `just` is
    what the last call has done."""
    with desk.database.snapshot() as snapshot:
        picture = moving.picture(desk, snapshot, run, desk.database.now().wall_ms)
        live = attempts.live_of_run(snapshot, run.id)
        council = runs.kind(snapshot, run.id) == "council"
        facts = Facts(
            None if _is_default(snapshot, run, default) else run.name,
            picture.run.state,
            council,
            unmerged=integrations.waits_for_integration(snapshot, run.id),
            worktrees=bool(attempts.ended_with_worktree(snapshot, run.id)),
            just=just,
            by_do=runs.asked_by_key(snapshot, run, WISHES),
        )
    return _with_tasks(facts, picture, live)


def _with_tasks(facts: Facts, picture: Picture, live: list[Attempt]) -> Facts:
    def keys(*states: str) -> tuple[str, ...]:
        return tuple(s.task.key for s in picture.standings if s.state in states)

    decided_on = {attempt.task_id for attempt in live if attempt.deciding}
    deciding = tuple(s.task.key for s in picture.standings if s.task.id in decided_on)
    slots = Slots(picture.run, taken_by(live))
    ready = [s for s in picture.standings if s.state == "ready" and slots.free(s.task.mailbox)]
    return facts._replace(
        tasks=len(picture.standings),
        asking=tuple(key for key in keys("blocked") if key not in deciding),
        deciding=deciding,
        conflicting=keys("base_conflict"),
        failed=keys("failed") or keys("unreachable"),
        offered=tuple(dict.fromkeys(a.mailbox for a in live if a.state == "offered")),
        ready=len(ready),
        moving=len(keys(*_MOVING)),
    )


def _is_default(snapshot: Session, run: Run, default: str | None) -> bool:
    if default is not None:
        return default in (run.name, run.id)
    with contextlib.suppress(InboxOrchError):
        return finding.only_open(snapshot).id == run.id
    return False
