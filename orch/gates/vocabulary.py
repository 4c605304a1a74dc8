"""The error codes and kinds of events of gates. Pure."""

from inbox_orch.shared.errors import Code

ERRORS = {
    "gates_failed": Code(
        11, 45, "a gate has failures that count, or could not be judged; `data` lists them"
    ),
}

EVENTS: tuple[str, ...] = ()
