"""Which mailbox a stage goes to, and whether there is one for it at all."""

from collections.abc import Sequence

from ..attempts.visits import Visit
from ..runs.config import config_of
from ..runs.model import Run, Task
from .model import Stage


def mailbox_of(run: Run, task: Task, stage: Stage, visits: Sequence[Visit]) -> str:
    """The mailbox of a stage: the one that a decision has named for it, that of its role in the
    run's config, or that of the task."""
    for visit in reversed(visits):
        if visit.kind != "decision" or visit.verdict != "change_role":
            continue
        if visit.found.get("resume") == stage.id and visit.found.get("mailbox"):
            return str(visit.found["mailbox"])
    return config_of(run).roles.get(stage.role or "", task.mailbox)


def has_reviewer(run: Run, task: Task, stage: Stage, visits: Sequence[Visit]) -> bool:
    """Whether somebody else than the task's workers can do a stage that reviews."""
    return mailbox_of(run, task, stage, visits) != task.mailbox
