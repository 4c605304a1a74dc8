"""The cells of the commands by which a change is handed in as text."""

from typing import Any

from support.matrix import NO_STATE, NO_WAIT, Cell, Never, plain, read_while_busy
from support.orch_matrix import NO_TOKEN, Enterprise, after, the_run, with_tasks

DIFF = """\
--- a/README.md
+++ b/README.md
@@ -1 +1 @@
-A project.
+A better project.
"""


def with_diff(*keys: str, text: str = DIFF) -> Any:
    """A run with these tasks, and a diff beside it."""

    def arranged(project: Enterprise) -> None:
        project.tasks(*keys)
        (project.folder.parent / "fix.diff").write_text(text)

    return arranged


def handed_in(project: Enterprise) -> None:
    """A diff that was handed in for a task, and accepted."""
    with_diff("a")(project)
    project.orch("patch", "submit", "../fix.diff", "--task", "a")


def dispatched(project: Enterprise) -> None:
    """A diff for a task that has a worker."""
    with_diff("a")(project)
    with project.scheduler() as scheduler:
        scheduler.dispatch(the_run(scheduler))


CHECK = ("patch", "check", "../fix.diff", "--task", "a")
SUBMIT = ("patch", "submit", "../fix.diff", "--task", "a")
MISFIT = with_diff("a", text=DIFF.replace("A project", "No project"))
CELLS: dict[str, dict[str, Cell | Never]] = {
    "patch check": {
        "ok": after(with_diff("a"), *CHECK),
        "usage": plain("patch", "check"),
        "not_found": after(with_diff("a"), "patch", "check", "../fix.diff", "--task", "b"),
        "conflict": after(MISFIT, *CHECK),
        "busy": read_while_busy(after(with_diff("a"), *CHECK)),
        "no_database": after(
            lambda project: (project.folder.parent / "fix.diff").write_text(DIFF), *CHECK
        ),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "patch submit": {
        "ok": after(with_diff("a"), *SUBMIT, "--key", "k"),
        "usage": after(with_tasks("a"), *SUBMIT),
        "not_found": after(with_diff("a"), "patch", "submit", "../fix.diff", "--task", "b"),
        "conflict": after(MISFIT, *SUBMIT),
        "busy": after(with_diff("a"), *SUBMIT),
        "no_database": after(
            lambda project: (project.folder.parent / "fix.diff").write_text(DIFF), *SUBMIT
        ),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
    "patch export": {
        "ok": after(handed_in, "patch", "export", "a/1/1"),
        "usage": plain("patch", "export"),
        "not_found": after(with_tasks("a"), "patch", "export", "a/1/1"),
        "conflict": NO_STATE,
        "busy": read_while_busy(after(handed_in, "patch", "export", "a/1/1")),
        "no_database": plain("patch", "export", "a/1/1"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    },
}
