"""How a command ended, as a value and as a sentence. Pure."""

import signal
from typing import NamedTuple

from ..ids import plain_number

CUT_NOTE = "[the last of "
"""How a text begins that is the end of a command's output, and not all of it."""


class Ending(NamedTuple):
    """How a command ended: its exit status, or the number of the signal that killed it.

    `timed_out` is the limit in seconds that it ran into, if it did.
    """

    exit_status: int | None
    signal: int | None = None
    timed_out: float | None = None


def ending_text(ending: Ending, what: str = "The command") -> str:
    """How a command ended, as a sentence."""
    if ending.timed_out is not None:
        return f"{what} was stopped after {plain_number(ending.timed_out)} s, its time limit."
    if ending.signal is not None:
        return f"{what} was killed by signal {ending.signal} ({_name(ending.signal)})."
    return f"{what} ended with exit status {ending.exit_status}."


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "without a name"
