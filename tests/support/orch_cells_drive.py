"""The cells of `orch drive`."""

from support.matrix import Cell, Never
from support.orch_matrix import NO_TOKEN, Enterprise, after, plain, with_tasks

NO_TERMINAL = Never("it refuses first: what it needs is a terminal, and these calls have none")

CELLS: dict[str, dict[str, Cell | Never]] = {
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
