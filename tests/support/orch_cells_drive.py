"""The cells of `orch drive`."""

from inbox_orch.orch.runs.config import Config
from inbox_orch.orch.runs.role import Role
from support.matrix import Cell, Never
from support.orch_matrix import (
    NO_TOKEN,
    Enterprise,
    after,
    branch_in_the_way,
    plain,
    the_run,
    with_tasks,
)
from support.runs import add_task

NO_TERMINAL = Never("it refuses first: what it needs is a terminal, and these calls have none")

WORK = ("--worker", "set -e; echo done > done.txt; git add done.txt; git commit -qm Done")


def with_a_role(project: Enterprise) -> None:
    """A run whose config says what the workers of a role run."""
    roles = {"builder": Role("builders", command=("true",)), "critic": Role("critics")}
    name = project.open_run(config=Config(roles=roles))
    with project.scheduler() as scheduler:
        add_task(scheduler, scheduler.run(name), key_name="a", title="Do a")


def over(project: Enterprise) -> None:
    """The same, and nothing is left to do."""
    with_a_role(project)
    with project.scheduler() as scheduler:
        scheduler.skip(the_run(scheduler), ["a"])


CELLS: dict[str, dict[str, Cell | Never]] = {
    "do": {
        "ok": plain("do", "Fix it", *WORK),
        "usage": plain("do", "Fix it"),
        "not_found": plain("do", "Fix it", "--onto", "nowhere", *WORK),
        "conflict": after(branch_in_the_way, "do", "Fix it", *WORK),
        "busy": plain("do", "Fix it", *WORK),
        "no_database": Never("it makes one"),
        "stale": NO_TOKEN,
        "timeout": plain("do", "Fix it", "--wait", "0", "--worker", "elsewhere=true"),
    },
    "drive": {
        "ok": after(Enterprise.asked, "drive", "--until", "blocked", "--wait", "20"),
        "usage": after(with_tasks("a"), "drive", "--until", "doomsday"),
        "not_found": after(with_tasks("a"), "drive", "--until", "task:b"),
        "conflict": Never("what it finds is exit 11"),
        "busy": after(with_tasks("a"), "drive", "--wait", "0.05"),
        "no_database": plain("drive"),
        "stale": NO_TOKEN,
        "timeout": after(with_tasks("a"), "drive", "--wait", "0.05"),
    },
    "worker": {
        "ok": after(over, "worker"),
        "usage": after(with_a_role, "worker", "--role", "critic"),
        "not_found": after(with_a_role, "worker", "--role", "nobody"),
        "conflict": Never("it changes nothing"),
        "busy": Never("it only looks, and its workers wait"),
        "no_database": plain("worker"),
        "stale": NO_TOKEN,
        "timeout": after(with_a_role, "worker", "--wait", "0.05"),
    },
    "board": {
        **dict.fromkeys(
            ("ok", "not_found", "conflict", "busy", "no_database", "timeout"), NO_TERMINAL
        ),
        "usage": plain("board"),
        "stale": NO_TOKEN,
    },
}
