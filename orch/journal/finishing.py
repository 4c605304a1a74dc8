"""Finishing what a process that is gone has begun and written down, whatever it was.

A table of finishers: each knows one kind of intent, and leaves alone what belongs to a process
that lives.
"""

from importlib import import_module

from ..runs.desk import Desk
from ..runs.model import Run

# In this order: an attempt that was not handed out yet is handed out before anything else.
_FINISHERS = (
    ("attempts.provision", "finish_dispatches"),
    ("cleanup.clean", "finish_cleanups"),
    ("integration.integrate", "finish_integrations"),
    ("attempts.judge", "put_back_abandoned"),
)


def finish_intents(desk: Desk, run: Run) -> int:
    """Finish or undo what was left in the middle; returns how much that was.

    What cannot be finished now is left to the next time, and keeps nothing else from it.
    """
    return sum(
        getattr(import_module(f"inbox_orch.orch.{module}"), finish)(desk, run)
        for module, finish in _FINISHERS
    )
