"""The actions of deterministic stages: functions with one life each."""

import json
from typing import Any

from ..attempts.visits import Visit
from ..runs.desk import Desk
from .course import Course
from .settle import Outcome


def carried_out(desk: Desk, course: Course, visit: Visit) -> tuple[Outcome, dict[str, Any]]:
    """Carry out the action of a visit; how it ends, and the columns that change with it."""
    stage = course.stage_of(visit)
    assert stage is not None
    return Outcome("succeeded"), {"result": json.dumps({"action": stage.action})}
