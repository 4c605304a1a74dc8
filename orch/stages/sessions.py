"""Which session of an agent a visit goes on with: that of the visit whose work it continues.

Never that of another attempt, role or mailbox, never one whose work was taken back or whose worker
was lost, and never in a review: nobody approves what they wrote.
"""

from typing import Any

from ..attempts.visits import Visit
from .course import Course
from .model import Stage

KEY = "session"
"""Where the result of a visit, and the payload of a thread, have it."""


def to_resume(course: Course, stage: Stage, mailbox: str) -> dict[str, Any] | None:
    """The session for a visit of this stage, as the payload of its thread has it: its `id`, and the
    `agent`, if it is one that is known; None where a new one is to be begun."""
    last = _last_of_a_writer(course)
    if last is None or not _writes(stage) or last.state != "succeeded" or last.mailbox != mailbox:
        return None
    before, session = course.stage_of(last), last.found.get(KEY)
    if before is None or session is None:
        return None
    if (before.role, before.toolset) != (stage.role, stage.toolset):
        return None
    return {name: session[name] for name in ("id", "agent") if session.get(name) is not None}


def _last_of_a_writer(course: Course) -> Visit | None:
    """The last visit of an agent that could change something."""
    for visit in reversed(course.visits):
        stage = course.stage_of(visit)
        if visit.kind == "agent" and stage is not None and _writes(stage):
            return visit
    return None


def _writes(stage: Stage) -> bool:
    return stage.writes and not stage.judges
