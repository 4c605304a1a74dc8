"""The actions that only read: the context pack, the report of a change, what a reviewer is given,
the account of an attempt. Doing one again comes to the same."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from inbox_orch.shared.ids import plain_number

from ..attempts import rows as attempts
from ..git import browsing
from ..git.facts import diff_text, facts
from ..git.failures import shown
from ..runs.config import config_of
from ..runs.desk import Desk
from . import pack, packet, texts
from .course import Course, results_of

MAX_DIFF_BYTES = 4 * 1024 * 1024
"""Of a change, so much is kept."""
_MOST_FILES, _DEPTH = 100, 8


class Report(NamedTuple):
    """What an action has found: a bounded `text` for those who come after it, facts for programs,
    and (name, content) of what is kept as it is."""

    text: str
    facts: dict[str, Any]
    files: tuple[tuple[str, str], ...] = ()


def changed_trees(course: Course) -> tuple[str, str]:
    """The trees between which the work of an attempt lies."""
    start = attempts.details_of(course.attempt).start
    assert start is not None, "its worktree was prepared"
    return start.tree, course.last_tree or start.tree


def change_text(desk: Desk, course: Course, most_bytes: int = texts.MAX_CHANGE_BYTES) -> str:
    """The work of an attempt as a unified diff of at most so many bytes; empty without any.
    Errors: those of git."""
    before, after = changed_trees(course)
    if before == after:
        return ""
    return diff_text(desk.repository(course.run), before, after, most_bytes)


# -- the context ---------------------------------------------------------------------------


def build_context_pack(desk: Desk, course: Course) -> Report:
    """What the repository says of the task, from the tree of the attempt. Links are not followed,
    and what looks like a secret is left out."""
    directory = desk.repository(course.run).path
    tree = str(course.last_tree)
    entries = browsing.entries(directory, tree, _DEPTH, pack.LEFT_OUT)
    files = {path: each for path, each in entries.items() if each.file}
    task = course.task
    named = pack.named_in(task.text, files.keys())
    told = pack.instructions_for(named, files.keys())

    def read(paths: Sequence[str]) -> list[tuple[str, bytes | None]]:
        return [
            (path, None)
            if pack.looks_secret(path)
            else (path, browsing.content(directory, files[path], pack.MAX_FILE_BYTES))
            for path in paths
        ]

    wanted = [path for path in named if path not in told]
    made = pack.packed(_limits(course), read(told), sorted(files), read(wanted))
    objective = f"Task {task.key}: {task.text}\n\n{made.text}\n"
    manifest = [each.as_json() for each in made.manifest]
    return Report(made.text, {"manifest": manifest, "tree": tree}, (("context.md", objective),))


def _limits(course: Course) -> list[str]:
    config, task = config_of(course.run), course.task
    lines = []
    if task.limits.run_seconds is not None:
        lines.append(f"time: {plain_number(task.limits.run_seconds)} s of work over all steps")
    lines += [f"must succeed in the worktree: {command}" for command in task.checks]
    gates = [str(gate["name"]) for gate in config.gates]
    if gates:
        lines.append(f"gates: {', '.join(gates)}")
    documents = [s.id for s in course.blueprint.stages if s.toolset == "docs"]
    if documents:
        lines.append(f"only documents may change in: {', '.join(documents)}")
    return lines


# -- the change ----------------------------------------------------------------------------


def generate_diff_report(desk: Desk, course: Course) -> Report:
    """Which files have changed, by how many lines; the whole change is kept."""
    before, after = changed_trees(course)
    found = facts(desk.repository(course.run), before, after)
    lines = [
        f"{shown(each.path)} ({_KINDS.get(each.status, 'changed')},"
        f" +{each.insertions} -{each.deletions}{', binary' if each.binary else ''})"
        for each in found.files[:_MOST_FILES]
    ]
    if len(found.files) > _MOST_FILES:
        lines.append(f"… and {len(found.files) - _MOST_FILES} more")
    heading = f"Changed so far: {len(found.files)} files, +{found.insertions} -{found.deletions}"
    text = texts.bounded("\n".join([heading, *lines]), texts.MAX_REPORT_BYTES)
    about = {
        "files": [{"path": shown(f.path), "status": f.status} for f in found.files[:_MOST_FILES]],
        "insertions": found.insertions,
        "deletions": found.deletions,
        "tree_before": before,
        "tree_after": after,
    }
    return Report(text, about, (("change.diff", change_text(desk, course, MAX_DIFF_BYTES)),))


_KINDS = {"A": "new", "D": "removed", "T": "of another type"}


# -- for those who review ------------------------------------------------------------------


def prepare_review_bundle(desk: Desk, course: Course) -> Report:
    """What the gates have come to last, and what was asked for before; with the task and the change
    as one document that is kept."""
    lines = ["What the gates say of it:", *_gate_lines(course)]
    asked = [v for v in course.visits if v.verdict == "request_changes"]
    for visit in asked[-2:]:
        lines += ["", f"An earlier review ({visit.stage}, {visit.worker}):"]
        lines += texts.findings(visit.found).split("\n")[1:]
    text = texts.bounded("\n".join(lines), texts.MAX_REPORT_BYTES)
    change = change_text(desk, course, MAX_DIFF_BYTES)
    task = course.task
    whole = f"Task {task.key}: {task.text}\n\n{text}\n\nThe change:\n\n{change}"
    return Report(text, {"judged": _gate_facts(course)}, (("review.md", whole),))


def _last_results(course: Course) -> dict[str, Any]:
    """The newest result of each gate."""
    found: dict[str, Any] = {}
    for visit in course.visits:
        if visit.kind == "gates" and course.stage_of(visit) is not None:
            found |= {result.gate: result for result in results_of(visit)}
    return found


def _gate_lines(course: Course) -> list[str]:
    lines = [
        f"- {name}: {result.state}" + (f", {result.reason}" if result.reason else "")
        for name, result in _last_results(course).items()
    ]
    return lines or ["- no gate has judged it"]


def _gate_facts(course: Course) -> dict[str, str]:
    return {name: result.state for name, result in _last_results(course).items()}


# -- the account ---------------------------------------------------------------------------


def summarize_run(desk: Desk, course: Course) -> Report:
    """A line for each visit that is over."""
    over = [visit for visit in course.visits if not visit.live]
    text = "\n".join(["What has happened:", *(f"- {packet.visit_line(v)}" for v in over)])
    return Report(
        texts.bounded(text, texts.MAX_REPORT_BYTES),
        {"visits": len(over)},
        (("summary.md", text + "\n"),),
    )
