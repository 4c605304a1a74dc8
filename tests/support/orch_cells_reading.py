"""The cells of the commands that read what tasks came to."""

from support.matrix import NO_WAIT, Cell, Never, plain, read_while_busy
from support.orch_cells_cleanup import ended
from support.orch_matrix import NO_TOKEN, after, reader, with_tasks


def of_an_attempt(verb: str) -> dict[str, Cell | Never]:
    """A command that reads an attempt of a task."""
    return {
        "ok": after(ended, verb, "a"),
        "usage": plain(verb),
        "not_found": after(with_tasks("a"), verb, "a"),
        "conflict": Never("it only looks"),
        "busy": read_while_busy(after(ended, verb, "a")),
        "no_database": plain(verb, "a"),
        "stale": NO_TOKEN,
        "timeout": NO_WAIT,
    }


CELLS: dict[str, dict[str, Cell | Never]] = {
    "task list": reader("task", "list"),
    "show": {**of_an_attempt("show"), "not_found": after(with_tasks("a"), "show", "zzz")},
    "events": reader("events"),
    "trace": {
        **reader("trace"),
        "ok": after(with_tasks("a"), "trace"),
        "busy": read_while_busy(after(with_tasks("a"), "trace")),
    },
    "diff": of_an_attempt("diff"),
    "logs": of_an_attempt("logs"),
}
