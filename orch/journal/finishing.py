"""Finishing what a process that is gone has begun and written down, whatever it was.

A table of finishers: each knows one kind of intent, and leaves alone what belongs to a process
that lives.
"""

from importlib import import_module

from ..runs.desk import Desk
from ..runs.model import Run
from . import rows

# By the kind of the intent, in this order: an attempt that was not handed out yet is handed out
# before anything else.
_FINISHERS = (
    ("dispatch", "attempts.provision", "finish_dispatches"),
    ("restore", "cleanup.go_back", "finish_restores"),
    ("cleanup", "cleanup.clean", "finish_cleanups"),
    ("integrate", "integration.integrate", "finish_integrations"),
    ("verify", "attempts.judge", "put_back_abandoned"),
)
# Looks for more than intents: for locks that a git which was killed has left.
_ALWAYS = "dispatch"


def finish_intents(desk: Desk, run: Run) -> int:
    """Finish or undo what was left in the middle; returns how much that was.

    What cannot be finished now is left to the next time, and keeps nothing else from it.
    """
    with desk.database.snapshot() as snapshot:
        begun = {intent.kind for intent in rows.open_intents(snapshot, run.id)}
    return sum(
        getattr(import_module(f"inbox_orch.orch.{module}"), finish)(desk, run)
        for kind, module, finish in _FINISHERS
        if kind in begun or kind == _ALWAYS
    )
