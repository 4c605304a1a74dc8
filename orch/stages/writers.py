"""Who may have written what an attempt hands in, and so cannot approve of it."""

from inbox_orch.shared.store.engine import Session

from ..patches import rows as patches
from ..runs.desk import Desk
from .course import Course
from .settle import AUTHORS, authors_of


def writers_of(desk: Desk, tx: Session, course: Course) -> set[str | None]:
    """Who is known to have, who has held a thread on which it was written, and who has handed in
    what it goes on from."""
    found, attempt = authors_of(course), course.attempt
    threads = {attempt.thread_id}
    if course.visits:
        threads = {v.thread_id for v in course.visits if v.kind in AUTHORS}
        threads -= {v.thread_id for v in course.visits if _reviews(course, v.stage)}
    held = desk.bus.holders([each for each in threads if each is not None])
    found.update(name for each in held.values() for name in each.names)
    if attempt.base_source == "attempt":
        before = patches.of_task(tx, attempt.task_id)
        found.update(patch.author for patch in before if patch.rollback_of is None)
    return found


def _reviews(course: Course, name: str) -> bool:
    stage = course.blueprint.by_id.get(name)
    return stage is not None and stage.reviews
