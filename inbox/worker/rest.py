"""When an agent gets no further work: for a while at a limit of its use, for good without a log-in.

What it answers for one thread it would answer for all that wait, and each would lose its tries.
"""

from inbox_orch.shared.errors import InboxOrchError

from ..domain.working import EX_TEMPFAIL
from .happenings import Happening

EX_NOPERM = 77  # sysexits.h
_FIRST_MS, _MOST_MS, _GROWTH = 5_000, 3_600_000, 4


class Rest:
    """That of one worker; without an `adapter` it never rests."""

    def __init__(self, adapter: str | None) -> None:
        """`adapter` is the name of the agent that the worker runs, if it is one that is known."""
        self._adapter = adapter
        self._limited = 0
        self.until_ms = 0
        self.for_good = False
        self._offered_again = False

    def note(self, happening: Happening, now_ms: int) -> str | None:
        """Take into account how a command has ended; monotonic milliseconds. Returns what a person
        should know."""
        facts = happening.facts
        if self._adapter is None or happening.type != "finished" or facts["by_command"]:
            return None
        status = facts["exit_status"]
        self._limited = self._limited + 1 if status == EX_TEMPFAIL else 0
        if self._limited:
            pause_ms = min(_MOST_MS, _FIRST_MS * _GROWTH ** min(self._limited - 1, 10))
            self.until_ms = now_ms + pause_ms
            seconds = pause_ms // 1000
            return f"{self._adapter} is at a limit of its use; it gets no thread for {seconds} s"
        if status == EX_NOPERM:
            self.for_good, self._offered_again = True, facts.get("outcome") == "handed_back"
        return None

    def error(self) -> InboxOrchError:
        """Why nothing more is taken."""
        from inbox_orch.shared.adapters.commands import agent_named

        agent = agent_named(str(self._adapter))
        became = "is offered again" if self._offered_again else "has failed and says so"
        return InboxOrchError(
            "not_logged_in",
            f"{agent.title} is not logged in; no further thread was taken",
            hint=f"{agent.log_in_by}; the thread that met it {became}",
            details={"agent": agent.name},
        )
