"""How a drive is shown: lines that grow, above a picture of what moves; or JSON Lines.

Must not decide anything: it shows what the scheduler says.
"""

import shutil

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Block, Sentence, Table
from inbox_orch.shared.shell.output import Output

from ...leader.drive import Driven, Line, Step
from ...leader.scheduler import Scheduler
from ...runs.model import Run
from ...runs.states import TASK_FINAL
from ...views.status import Status
from .base import base_conflict
from .standings import blocks as status_blocks
from .standings import row_of

_ORDER = ("blocked", "active", "base_conflict", "backing_off", "ready", "waiting")
_AROUND = 5
"""Lines of the terminal that are not for tasks."""


class Progress:
    """The output of one drive."""

    def __init__(
        self, output: Output, scheduler: Scheduler, run: Run, *, for_people: bool = False
    ) -> None:
        """`for_people`: no JSON Lines, also where there is no terminal."""
        self.output, self.scheduler, self.run = output, scheduler, run
        self._lines = not for_people and (output.as_json or not output.terminal)
        self._status: Status | None = None

    # -- steps -------------------------------------------------------------------------------

    def tell(self, step: Step) -> None:
        """What has happened, and how it has ended."""
        for line in step.lines:
            if self._lines:
                self.output.line(line.as_json())
            else:
                self._say(line)
        if step.ending is not None:
            self._end(step.ending)

    def mark(self, step: Step) -> None:
        """Note in the caller's cursor that it has been told."""
        try:
            self.scheduler.mark_told(step)
        except InboxOrchError as error:
            # It has been told; being told again is all that can follow.
            self.output.notice(f"the cursor was not moved: {error.message}")

    def fail(self, error: InboxOrchError) -> None:
        """The drive has ended without an outcome."""
        if not self._lines or not self.output.answered:
            raise error
        self.output.last_line(None, error)
        self._complain(error)

    def _end(self, ending: Driven) -> None:
        if self._lines:
            self.output.last_line(ending.as_json(), ending.failure)
            if ending.failure is not None:
                self._complain(ending.failure)
            return
        self.output.show(*status_blocks(self.scheduler.status(self.run)))
        if ending.failure is not None:
            self.output.error(ending.failure)
            self.output.exit_code = ending.failure.exit_code

    def _complain(self, error: InboxOrchError) -> None:
        if not self.output.as_json:
            self.output.error(error)

    # -- for people --------------------------------------------------------------------------

    def _say(self, line: Line) -> None:
        facts = line.facts
        if line.type == "notice":
            self.output.notice(facts["message"] + (f" ({facts['hint']})" if facts["hint"] else ""))
        elif line.type == "dispatched":
            where = f"attempt {facts['number']} is with `{facts['mailbox']}`"
            self._sentence(facts["created_at"], facts["key"], where)
        elif line.type == "question":
            message = facts["message"]
            options = f" ({' | '.join(message['options'])})" if message["options"] else ""
            asked = f"{facts['asked_by']} asks{options}: {_one_line(message['body'])}"
            self._sentence(message["created_at"], facts["key"], asked)
        elif line.type == "base_conflict":
            self.output.show(base_conflict(facts["key"], facts["paths"]))
        elif facts["kind"] not in ("attempt_succeeded", "attempt_blocked"):
            what = facts["kind"].replace("_", " ", 1)
            reason = facts["data"].get("reason")
            self._sentence(facts["at"], facts["key"], what + (f": {reason}" if reason else ""))

    def _sentence(self, at: str, key: str, text: str) -> None:
        self.output.show(Sentence(f"{at[11:19]}  {key}  {text}"))

    # -- the picture -------------------------------------------------------------------------

    def looked(self) -> None:
        """The run may stand differently now."""
        if self.output.paints:
            self._status = self.scheduler.status(self.run)
            self.pulse()

    def pulse(self) -> None:
        """Time has passed."""
        if self._status is None:
            return
        now_ms = self.scheduler.database.now().wall_ms
        self._status = self._status._replace(now_ms=now_ms)
        self.output.picture(*picture(self._status, shutil.get_terminal_size((80, 24)).lines))


def picture(status: Status, height: int) -> list[Block]:
    """What moves, what waits, and how much is done; as many tasks as there is room for."""
    pending = [row for row in status.rows if row.standing.state in _ORDER]
    pending.sort(key=lambda row: _ORDER.index(row.standing.state))
    room = max(1, height - _AROUND)
    shown, more = pending[:room], len(pending) - room
    rows = tuple(row_of(row, status.now_ms) for row in shown)
    blocks: list[Block] = [Sentence(_headline(status))]
    if rows:
        headings = ("TASK", "STATE", "TRY", "WHO", "SINCE", "NOTE")
        blocks.append(Table(headings, rows, fixed=(0, 1, 2)))
    if more > 0:
        blocks.append(Sentence(f"… and {more} more"))
    return blocks


def _headline(status: Status) -> str:
    counts = status.counts
    over = sum(counts.get(state, 0) for state in (*TASK_FINAL, "unreachable"))
    others = ", ".join(f"{n} {state}" for state, n in counts.items() if state not in TASK_FINAL)
    state = status.outcome if status.run.state == "open" else status.run.state
    text = f"{status.run.name}: {state}, {over} of {len(status.rows)} finished"
    return text + (f" ({others})" if others else "")


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())[:300]
