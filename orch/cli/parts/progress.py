"""How a drive is shown: lines that grow, on a terminal above a picture of what moves, in a pipe
tab-separated; or JSON Lines.

Must not decide anything: it shows what the scheduler says.
"""

import shutil
from collections.abc import Sequence
from itertools import zip_longest

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Block, Sentence, Table
from inbox_orch.shared.shell.output import Output

from ...leader.drive import Driven, Line, Step
from ...leader.scheduler import Scheduler
from ...runs.model import DECISION, Run
from ...runs.states import TASK_FINAL
from ...views.happened import is_told_by_next, one_line, sentence
from ...views.status import Status
from .standings import blocks as status_blocks
from .standings import row_of

_ORDER = ("blocked", "active", "base_conflict", "backing_off", "ready", "waiting")
_AROUND = 5
"""Lines of the terminal that are not for tasks."""


class Progress:
    """The output of one drive."""

    def __init__(self, output: Output, scheduler: Scheduler, run: Run) -> None:
        self.output, self.scheduler, self.run = output, scheduler, run
        self._status: Status | None = None

    # -- steps -------------------------------------------------------------------------------

    def tell(self, step: Step) -> None:
        """What has happened, and how it has ended."""
        if self.output.as_json:
            for line in step.lines:
                self.output.line(line.as_json())
        else:
            self._say(step.lines)
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
        if not self.output.as_json or not self.output.answered:
            raise error
        self.output.last_line(None, error)

    def _end(self, ending: Driven) -> None:
        if self.output.as_json:
            self.output.last_line(ending.as_json(), ending.failure)
            return
        if self.output.terminal:
            self.output.show(*status_blocks(self.scheduler.status(self.run)))
        else:
            counts = ", ".join(f"{n} {state}" for state, n in ending.counts.items())
            text = f"{ending.run.name}: {ending.outcome}. {counts or 'no tasks'}"
            self._sentence(self._now(), None, "outcome", text)
        if ending.failure is not None:
            self.output.error(ending.failure)
            self.output.exit_code = ending.failure.exit_code

    # -- for people --------------------------------------------------------------------------

    def _say(self, lines: Sequence[Line]) -> None:
        """A line for each thing that has happened."""
        asked = {line.facts["key"] for line in lines if "decision" in line.facts}
        lines = [line for line in lines if not (_asks(line) and line.facts["key"] in asked)]
        for line, following in zip_longest(lines, lines[1:]):
            if line.type == "notice":
                hint = line.facts["hint"]
                self.output.notice(line.facts["message"] + (f" ({hint})" if hint else ""))
            elif line.type == "base_conflict":
                text = sentence("base_conflict_found", line.facts)
                self._sentence(self._now(), line.facts["key"], line.type, text)
            elif following is None or not _is_told_by(line, following):
                self._sentence(*_said(line))

    def _sentence(self, at: str, key: str | None, kind: str, text: str | None) -> None:
        if text is not None:
            shown = "  ".join(word for word in (at[11:19], key, text) if word)
            self.output.show(Sentence(shown, (at, key, kind, text)))

    def _now(self) -> str:
        return str(rfc3339(self.scheduler.database.now().wall_ms))

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


def _said(line: Line) -> tuple[str, str, str, str | None]:
    """When, on which task, what kind of thing has happened, and the sentence that says it."""
    facts, key = line.facts, line.facts["key"]
    if line.type == "dispatched":
        text = f"attempt {facts['number']} is with `{facts['mailbox']}`"
        return facts["created_at"], key, line.type, text
    if line.type == "question" and "decision" in facts:
        decision = facts["decision"]
        text = f"asks for a decision ({' | '.join(decision['answers'])}): {decision['sentence']}"
        return facts["message"]["created_at"], key, "decision", one_line(text)
    if line.type == "question":
        message = facts["message"]
        options = f" ({' | '.join(message['options'])})" if message["options"] else ""
        text = f"{facts['asked_by']} asks{options}: {one_line(message['body'] or '')}"
        return message["created_at"], key, line.type, text
    return facts["at"], key, facts["kind"], sentence(facts["kind"], facts["data"])


def _asks(line: Line) -> bool:
    """Whether it tells that a decision is asked for: while it is open, its question tells more."""
    is_visit = line.type == "change" and line.facts["kind"] == "visit_begun"
    return is_visit and line.facts["data"].get("stage") == DECISION


def _is_told_by(line: Line, following: Line) -> bool:
    if (line.type, following.type) != ("change", "change"):
        return False
    mine, its = line.facts, following.facts
    return is_told_by_next(mine["kind"], mine["attempt"], its["kind"], its["attempt"])
