"""The cells of the commands about plans and pictures of the graph."""

from typing import Any

from support.matrix import NO_WAIT, Cell, given, plain
from support.orch_matrix import NO_TOKEN, Enterprise, after, reader

PLAN = """\
run: {title: From a plan}
tasks:
  - {task: a, title: First}
  - {task: b, title: Second, depends_on: [a]}
"""


def with_plan(text: str, *arguments: str) -> Cell:
    """`plan import` of this plan into a run that has a task `old`."""

    def arranged(project: Enterprise) -> tuple[str, ...]:
        project.tasks("old")
        (project.folder / "plan.yaml").write_text(text)
        return ("plan", "import", "plan.yaml", *arguments)

    return given(arranged)


CELLS: dict[str, dict[str, Any]] = {
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
