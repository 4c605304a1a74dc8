"""INBOX_THREAD and INBOX_TOKEN as they are found: what they are worth, in words for an agent."""

import os
from typing import TYPE_CHECKING, NamedTuple

from inbox_orch.shared.ids import printable

if TYPE_CHECKING:
    from ..bus import Bus
    from ..services.standing import Standing

_THREAD, _TOKEN = "INBOX_THREAD", "INBOX_TOKEN"


class Given(NamedTuple):
    """What the variables give: whether their thread is held, and why it is not."""

    holds: bool
    why: str
    overdue: bool = False


def is_given() -> bool:
    """Whether one of the variables is set to anything."""
    return bool(os.environ.get(_THREAD) or os.environ.get(_TOKEN))


def given_lease(bus: "Bus | None") -> Given | None:
    """Look at the variables; None when neither is set. `bus` is None without a database."""
    thread, token = os.environ.get(_THREAD), os.environ.get(_TOKEN)
    if not is_given():
        return None
    if not thread or not token:
        there, missing = (_THREAD, _TOKEN) if thread else (_TOKEN, _THREAD)
        return Given(False, f"{there} is set, and {missing} is not")
    if bus is None:
        return Given(False, f"{_THREAD} and {_TOKEN} are set, but here is no database with it")
    return _judged(bus.standing(thread, token), printable(thread, 40))


def _judged(found: "Standing", named: str) -> Given:
    thread = found.thread
    if thread is None:
        return Given(False, f"{_THREAD}: there is no thread {named} here")
    if found.verdict in ("held", "overdue"):
        return Given(True, "", found.verdict == "overdue")
    if found.verdict == "cancelled":
        return Given(False, f"{_THREAD}: thread {thread.id} was cancelled; stop")
    if found.verdict == "ended":
        ended = "is finished" if thread.state in ("done", "failed") else "was handed back"
        return Given(False, f"{_THREAD}: thread {thread.id} {ended} ({found.ended_by})")
    now = f"held by {printable(thread.holder, 64)}" if thread.holder else thread.state
    return Given(False, f"{_TOKEN} is not the token of thread {thread.id}, now {now}")
