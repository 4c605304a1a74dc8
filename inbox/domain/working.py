"""What becomes of a thread when the command of a worker ends: the table of `inbox work`.

Pure: the worker brings what it has seen, and does what it is told here.
"""

from enum import Enum
from typing import NamedTuple

from inbox_orch.shared.processes.endings import CUT_NOTE, Ending

from .model import Thread

EX_TEMPFAIL = 75  # sysexits.h: try again later
RESULT_NOTE = "$INBOX_RESULT "
"""How a note begins that says why the file of a result is not the body of a message."""
STAND_INS = (RESULT_NOTE, CUT_NOTE)
"""How bodies begin that a worker writes itself, since its command has left none: with a note on the
file of its result, or with the end of a long output."""


class Hold(Enum):
    """How a worker's lease stands."""

    LIVE = "live"
    ENDED = "ended"  # by a call with its own token: done, fail or release
    LOST = "lost"
    CANCELLED = "cancelled"


class Standing(NamedTuple):
    """One look at a worker's lease and at what happened on its thread.

    `ended_by` is set when the lease was ended by a call with its token. `taken_over`: another agent
    has claimed the thread since. `answer_unread`: a question was answered, or its deadline has
    passed, after what the holder has read. `renew_at` and `expires_at` are on the monotonic
    clock, in milliseconds.
    """

    thread: Thread
    hold: Hold
    ended_by: str | None = None
    taken_over: bool = False
    question_open: bool = False
    answer_unread: bool = False
    renew_at: int = 0
    expires_at: int = 0


class Verdict(Enum):
    """What the worker does about the thread."""

    WRITE_NOTHING = "write_nothing"  # the lease is lost, or the thread was cancelled
    LEAVE = "leave"  # the command itself has finished it; only its output is attached
    RELEASE = "release"  # the worker itself is being stopped
    WAIT = "wait"  # for the answer, then run the command again
    DONE = "done"
    BACK_OFF = "back_off"
    FAIL = "fail"


def verdict(ending: Ending, standing: Standing, *, stopping: bool) -> Verdict:
    """The row of the table that applies; `stopping`: the worker has been told to end."""
    if standing.hold in (Hold.LOST, Hold.CANCELLED):
        return Verdict.WRITE_NOTHING
    if standing.hold is Hold.ENDED:
        return Verdict.LEAVE
    if stopping:
        return Verdict.RELEASE
    if standing.question_open or standing.answer_unread:
        return Verdict.WAIT
    if ending.timed_out is not None:
        return Verdict.FAIL
    if ending.exit_status == 0:
        return Verdict.DONE
    if ending.exit_status == EX_TEMPFAIL:
        return Verdict.BACK_OFF
    return Verdict.FAIL
