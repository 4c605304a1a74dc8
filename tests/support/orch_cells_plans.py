"""The cells of the commands about plans and pictures of the graph."""

from typing import Any

from inbox_orch.orch.stages.model import Blueprint, Stage
from support.matrix import NO_BASE, NO_STATE, NO_WAIT, Cell, Never, given, plain, read_while_busy
from support.orch_cells_cleanup import ended
from support.orch_matrix import NO_TOKEN, Enterprise, after, in_worktree, reader, with_tasks
from support.runs import add_task

PLAN = """\
run: {title: From a plan}
tasks:
  - {task: a, title: First}
  - {task: b, title: Second, depends_on: [a]}
"""


def with_plan(text: str, *arguments: str, verb: tuple[str, ...] = ("plan", "import")) -> Cell:
    """A command that is given this file, where a run has a task `old`."""

    def arranged(project: Enterprise) -> tuple[str, ...]:
        project.tasks("old")
        (project.folder / "plan.yaml").write_text(text)
        return (*verb, "plan.yaml", *arguments)

    return given(arranged)


BLUEPRINT = """\
version: 1
id: mine
stages:
  - {id: a, type: agent, goal: Do it.}
"""


def staged(project: Enterprise) -> None:
    """Task `a` on its way through the stages of a blueprint."""
    name = project.open_run()
    with project.scheduler() as scheduler:
        run = scheduler.run(name)
        drawn = Blueprint("mine", (Stage("write", "agent", goal="Do it."),)).canonical()
        task = {"key_name": "a", "title": "Do a", "blueprint": "mine", "drawn": drawn}
        add_task(scheduler, run, **task)
        scheduler.dispatch(run)


def with_blueprint(text: str, *arguments: str) -> Cell:
    """`blueprint …` where this is one of the repository's own, and a file."""

    def arranged(project: Enterprise) -> tuple[str, ...]:
        folder = project.folder / ".orch" / "blueprints"
        folder.mkdir(parents=True)
        (folder / "mine.yaml").write_text(text)
        return ("blueprint", *arguments)

    return given(arranged)


WITHOUT_A_BASE = {"busy": NO_BASE, "no_database": NO_BASE, "stale": NO_TOKEN, "timeout": NO_WAIT}

CELLS: dict[str, dict[str, Any]] = {
    "blueprint list": {
        "ok": with_blueprint(BLUEPRINT.replace("goal", "gaol"), "list"),
        "usage": plain("blueprint", "list", "surplus"),
        "not_found": Never("it names no blueprint"),
        "conflict": NO_STATE,
        **WITHOUT_A_BASE,
    },
    "blueprint show": {
        "ok": with_blueprint(BLUEPRINT, "show", "mine"),
        "usage": with_blueprint(BLUEPRINT.replace("goal", "gaol"), "show", "mine"),
        "not_found": plain("blueprint", "show", "nothing"),
        "conflict": NO_STATE,
        **WITHOUT_A_BASE,
    },
    "blueprint validate": {
        "ok": with_blueprint(BLUEPRINT, "validate", ".orch/blueprints/mine.yaml"),
        "usage": with_blueprint("stages: [{id: A}, x]", "validate", ".orch/blueprints/mine.yaml"),
        "not_found": Never("a file that is not there is a wrong call"),
        "conflict": NO_STATE,
        **WITHOUT_A_BASE,
    },
    "blueprint graph": {
        "ok": plain("blueprint", "graph", "standard_task", "--format", "mermaid"),
        "usage": plain("blueprint", "graph", "standard_task", "--format", "svg"),
        "not_found": plain("blueprint", "graph", "nothing"),
        "conflict": NO_STATE,
        **WITHOUT_A_BASE,
    },
    "blueprint explain": {
        "ok": after(staged, "blueprint", "explain", "a"),
        "usage": plain("blueprint", "explain"),
        "not_found": after(with_tasks("a"), "blueprint", "explain", "a"),
        "conflict": after(ended, "blueprint", "explain", "a"),
        "busy": read_while_busy(after(staged, "blueprint", "explain", "a")),
        "no_database": plain("blueprint", "explain", "a"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "policy show": reader("policy", "show"),
    "policy explain": {
        **reader("policy", "explain", "a.py"),
        "usage": after(with_tasks("a"), "policy", "explain", "../a.py"),
    },
    "policy check": {
        "ok": after(in_worktree, "policy", "check"),
        "usage": after(in_worktree, "policy", "check", ".."),
        "not_found": after(with_tasks("a"), "policy", "check"),
        "conflict": NO_STATE,
        "busy": read_while_busy(after(in_worktree, "policy", "check")),
        "no_database": plain("policy", "check"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "policy lint": {
        "ok": with_plan("max_lines: 3", verb=("policy", "lint")),
        "usage": with_plan("max_lines: x", verb=("policy", "lint")),
        "not_found": Never("a file that is not there is a wrong call"),
        "conflict": NO_STATE,
        **WITHOUT_A_BASE,
    },
    "plan import": {
        "ok": with_plan(PLAN, "--key", "k"),
        "usage": with_plan("tasks: [{task: A}, {titel: x}]"),
        "not_found": with_plan("tasks: [{task: a, title: A, depends_on: [b]}]"),
        "conflict": with_plan("tasks: [{task: old, title: Again}]"),
        "busy": with_plan(PLAN),
        "no_database": with_plan(PLAN),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "plan export": reader("plan", "export"),
    "graph": {**reader("graph"), "usage": plain("graph", "--format", "png")},
    "critical-path": reader("critical-path"),
    "report": {**reader("report"), "ok": after(Enterprise.asked, "report", "--html")},
    "timeline": {**reader("timeline"), "ok": after(Enterprise.asked, "timeline", "--limit", "1")},
}
