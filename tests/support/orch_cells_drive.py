"""The cells of `orch drive`."""

from support.matrix import Cell, Never
from support.orch_matrix import NO_TOKEN, Enterprise, after, branch_in_the_way, plain, with_tasks

NO_TERMINAL = Never("it refuses first: what it needs is a terminal, and these calls have none")

WORK = ("--worker", "set -e; echo done > done.txt; git add done.txt; git commit -qm Done")

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
    "board": {
        **dict.fromkeys(
            ("ok", "not_found", "conflict", "busy", "no_database", "timeout"), NO_TERMINAL
        ),
        "usage": plain("board"),
        "stale": NO_TOKEN,
    },
}
