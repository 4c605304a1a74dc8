"""Tasks that a dispatch names: each has to be able to start, or the whole call is refused."""

from collections.abc import Sequence

from inbox_orch.shared.errors import InboxOrchError

from ..runs.model import Task
from ..runs.readiness import Picture, Slots, Standing


def require_ready(picture: Picture, named: Sequence[Task], *, base_given: bool) -> None:
    """Each task that was named must be able to start."""
    for task in named:
        standing = picture.of(task.id)
        if not standing.may_start(base_given=base_given):
            raise _not_ready(standing)


def require_slots(named: Sequence[Task], mailbox: str | None, slots: Slots) -> None:
    """There must be room for all of them at once; takes none of it."""
    trial = slots.copy()
    for number, task in enumerate(named):
        wanted = mailbox or task.mailbox
        if not trial.take(wanted):
            raise InboxOrchError(
                "invalid_state",
                f"task {task.key} finds no slot: {trial.limit_of(wanted)}",
                hint="wait for one to end: `orch wait`; `orch run show` prints the limits",
                details={"free": number, "wanted": len(named), "mailbox": wanted},
            )


def _not_ready(standing: Standing) -> InboxOrchError:
    reasons = standing.because or standing.conflict_paths
    because = f" ({', '.join(reasons)})" if reasons else ""
    return InboxOrchError(
        "base_conflict" if standing.state == "base_conflict" else "invalid_state",
        f"task {standing.task.key} is {standing.state}{because}, not ready",
        hint=_HINTS.get(standing.state, "`orch status` shows why").format(key=standing.task.key),
        details={"task": standing.task.key, "standing": standing.state},
    )


_HINTS = {
    "base_conflict": "merge what it depends on by hand, then: orch dispatch {key} --base COMMIT",
    "backing_off": "`orch status` shows how long; `orch cancel {key}`, then `orch retry {key}`, and"
    " it is ready at once",
    "failed": "`orch retry {key}` has it tried again",
    "cancelled": "`orch retry {key}` has it tried again",
    "succeeded": "`orch retry {key} --force` has it done all over again",
}
