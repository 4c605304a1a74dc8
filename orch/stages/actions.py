"""The actions of deterministic stages, each with one life: carried out, what it found stored with
the visit, what is large beside the database.

Those that only read may be done again; those that write come to the same when they are.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from ..attempts.visits import Visit
from ..git.snapshots import Unfit
from ..patches.hiding import covered, hidden
from ..runs.config import config_of
from ..runs.desk import Desk
from ..runs.secrets import secrets_of
from . import applying, reports, taking
from .course import Course
from .settle import Outcome

_READING: Mapping[str, Callable[[Desk, Course], reports.Report]] = {
    "build_context_pack": reports.build_context_pack,
    "generate_diff_report": reports.generate_diff_report,
    "prepare_review_bundle": reports.prepare_review_bundle,
    "summarize_run": reports.summarize_run,
}
_WRITING: Mapping[str, Callable[[Desk, Course], applying.Applied]] = {
    "apply_patch": applying.apply_patch,
    "commit_changes": applying.commit_changes,
}


def carried_out(desk: Desk, course: Course, visit: Visit) -> tuple[Outcome, dict[str, Any]]:
    """Carry out the action of a visit; how it ends, and the columns that change with it. Errors:
    `busy` (something is at work in the worktree), those of git and of storing a file."""
    stage = course.stage_of(visit)
    assert stage is not None
    if stage.type == "agent":
        return _taken(desk, course)
    assert stage.action is not None
    if stage.action in _READING:
        report = _READING[stage.action](desk, course)
        return Outcome("succeeded"), {"result": _stored(desk, course, stage.action, report)}
    return _written(desk, course, stage.action, (_WRITING[stage.action], None))


def _taken(desk: Desk, course: Course) -> tuple[Outcome, dict[str, Any]]:
    """Of the stage of an agent, whose refused work was let in."""
    return _written(desk, course, "take", (taking.take, taking.REASON))


def _written(
    desk: Desk,
    course: Course,
    action: str,
    how: tuple[Callable[[Desk, Course], applying.Applied], str | None],
) -> tuple[Outcome, dict[str, Any]]:
    """Do what writes, and what is said of it when that has succeeded."""
    write, said = how
    try:
        done = write(desk, course)
    except Unfit as unfit:
        return Outcome("error", reason=f"what lies in its worktree cannot be kept: {unfit}"), {}
    facts = json.dumps({"action": action, **done.facts}, ensure_ascii=False)
    if done.obstacle is not None:
        return Outcome("failed", reason=done.obstacle[:1000]), {"result": facts}
    return Outcome("succeeded", reason=said), {"result": facts, **done.columns}


def _stored(desk: Desk, course: Course, action: str, report: reports.Report) -> str:
    """The result of a visit: secrets and keys masked, and the names of what is kept beside the
    database, which is attached to the next worker's text."""
    secrets = secrets_of(config_of(course.run))
    kept = []
    for name, content in report.files:
        data = hidden(content, secrets).encode("utf-8", "surrogateescape")
        kept.append(desk.bus.artifacts.add_bytes(name, data)._asdict())
    text = hidden(report.text, secrets)
    facts = {"action": action, "text": text, "artifacts": kept, **covered(report.facts)}
    return json.dumps(facts, ensure_ascii=True)
