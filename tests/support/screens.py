"""A board in tests: driven by keys without a terminal, and what is to be seen on its screen; and a
small terminal, for what is painted on a real one."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

from textual.app import App
from textual.pilot import Pilot

from inbox_orch.orch.board.app import BoardApp
from inbox_orch.orch.board.deeds import Deed, done
from inbox_orch.orch.board.readers import Done, Looked, Say, Seen
from inbox_orch.orch.leader.scheduler import Scheduler
from inbox_orch.orch.runs.model import Run
from inbox_orch.orch.views.detail import detail
from support.terminals import width

Playing = Callable[[BoardApp, Pilot[None]], Awaitable[None]]


class Here:
    """What a board shows is read, and what its keys do is done, in the thread of the test."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.deeds: list[str] = []
        self._say: Say = lambda news: None
        self._run_id = ""

    def begin(self, run_id: str, say: Say) -> None:
        self._run_id, self._say = run_id, say
        self.look()

    def follow(self, run_id: str) -> None:
        self._run_id = run_id
        self.look()

    def look(self) -> None:
        """Something may have happened."""
        self._say(Looked(self.scheduler.board(self.scheduler.run(self._run_id))))

    def look_at(self, run: Run, task_id: str) -> None:
        self._say(Seen(task_id, detail(self.scheduler.desk, run, task_id)))

    def do(self, deed: Deed) -> None:
        self.deeds.append(deed.name)
        self._say(Done(deed, done(deed, self.scheduler)))
        self.look()

    def end(self) -> bool:
        return True


def play(here: Here, run: Run, playing: Playing, size: tuple[int, int] = (80, 24)) -> BoardApp:
    """Play a board of a run; the app as it ended."""
    app = BoardApp(here, run.id)

    async def played() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await playing(app, pilot)

    asyncio.run(played())
    return app


async def press(pilot: Pilot[None], *keys: str) -> None:
    """Press keys, and wait for what comes of each."""
    for key in keys:
        await pilot.press(key)
        await pilot.pause()


def seen(app: App[Any]) -> list[str]:
    """The screen, line by line, without blanks at their ends."""
    strips = app.screen._compositor.render_strips()
    return ["".join(segment.text for segment in strip).rstrip() for strip in strips]


# -- a small terminal ------------------------------------------------------------------------

# A sequence that moves or erases (CSI), one that carries a text (OSC, DCS), a short one, a control.
_PART = re.compile(
    r"\x1b\[(?P<how>[0-9;?<=>$]*)[ !-/]*(?P<end>[@-~])"
    r"|\x1b[\]P](?:(?!\x1b\\|\x07).)*(?:\x1b\\|\x07)"
    r"|\x1b[@-Z\\^_`-~=>]|(?P<control>[\x00-\x1f])|(?P<text>[^\x00-\x1f]+)",
    re.DOTALL,
)


def painted(sent: str, rows: int, columns: int) -> list[str]:
    """What a terminal shows that was sent this, as far as textual's sequences go (ECMA-48): it
    places the cursor, writes, and erases all."""
    cells = [[" "] * columns for _ in range(rows)]
    at = [0, 0]
    for part in _PART.finditer(sent):
        if part["text"] is not None:
            _write(cells, at, part["text"])
        elif part["control"] == "\r":
            at[1] = 0
        elif part["control"] == "\n":
            at[0] = min(rows - 1, at[0] + 1)
        elif part["end"] == "H":
            row, _, column = (part["how"] or "1;1").partition(";")
            at[:] = min(rows, int(row)) - 1, min(columns, int(column or 1)) - 1
        elif part["end"] == "h" and part["how"] == "?1049":
            cells[:] = [[" "] * columns for _ in range(rows)]
    return ["".join(line).rstrip() for line in cells]


def _write(cells: list[list[str]], at: list[int], text: str) -> None:
    for character in text:
        taken = width(character)
        if taken and at[1] + taken <= len(cells[0]):
            cells[at[0]][at[1] : at[1] + taken] = [character, *[""] * (taken - 1)]
            at[1] += taken
