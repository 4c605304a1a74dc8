"""What the end of an attempt means for its task."""

from typing import NamedTuple

from .model import Task
from .states import COUNTED_AS_INFRASTRUCTURE, COUNTED_AS_WORK

FIRST_SECONDS, MOST_SECONDS = 2.0, 120.0


class Consequence(NamedTuple):
    """The task's next state, its budgets, and the seconds before the next try."""

    state: str
    work_failures: int
    infra_failures: int
    delay_seconds: float | None


def consequence(
    task: Task, ended_as: str, *, fatal: bool, jitter: float, goes_back: bool = False
) -> Consequence:
    """After an attempt ended badly: another try while its budget lasts, else the task failed.

    Work that failed, was rejected or ran out of time counts against `max_attempts`; a lost
    worker or worktree against `max_infra_attempts`. What was cancelled so that another worker
    gets it (`goes_back`) counts against nothing. `jitter` is a number from 0 to 1.
    """
    work, infra = task.work_failures, task.infra_failures
    if ended_as == "cancelled" and goes_back:
        return Consequence("pending", work, infra, None)
    if ended_as == "cancelled":
        return Consequence("cancelled", work, infra, None)
    if ended_as in COUNTED_AS_WORK:
        work += 1
    else:
        assert ended_as in COUNTED_AS_INFRASTRUCTURE
        infra += 1
    if fatal or work >= task.max_attempts or infra >= task.max_infra_attempts:
        return Consequence("failed", work, infra, None)
    return Consequence("pending", work, infra, backoff_seconds(work + infra, jitter))


def backoff_seconds(failures: int, jitter: float) -> float:
    """Doubling from 2 s, at most 120 s, the upper half of it by chance."""
    whole = min(MOST_SECONDS, FIRST_SECONDS * 2.0 ** min(failures - 1, 16))
    return whole * (0.5 + jitter / 2)
