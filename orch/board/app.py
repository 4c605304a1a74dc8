"""The board as an app of textual: where the lines stand, and what the keys do.

Holds what was last read and where the reader is; what is shown is made of these by pure functions.
"""

import os
import time
from collections.abc import Sequence
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input

from ..leader.board import Board
from ..views.detail import Detail
from ..views.status import Row
from . import deeds, view
from .close_up import detail_lines
from .deeds import Deed, Outcome
from .dialogs import AnswerScreen, ConfirmScreen
from .fitting import Line, wrapped
from .panes import Pane
from .readers import Broken, Done, Looked, News, Seen, Source
from .screens import STYLES, BoardScreen, DetailScreen
from .view import Place

_TICK_SECONDS = 1.0
_TICKS = 10
_MOST_FOOT = 3
_WHILE_TYPING = ("step", "find_all", "interrupt", "end", "suspend_process")


class Arrived(Message):
    """A thread has something to tell."""

    def __init__(self, news: News) -> None:
        super().__init__()
        self.news = news


class BoardApp(App[None]):
    """A board of a run. `ended_by` is the signal that Ctrl-C stands for, if that ended it, and
    `broken` why nothing could be read any more."""

    CSS = STYLES
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "interrupt", priority=True),
        Binding("ctrl+d,ctrl+q", "end", priority=True),
        Binding("ctrl+z", "suspend_process", priority=True),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, source: Source, run_id: str) -> None:
        super().__init__(ansi_color=True)
        self.animation_level = "none"
        self.broken: Exception | None = None
        self.interrupted = False
        self.board: Board | None = None
        self.place = Place()
        self._source, self._run_id = source, run_id
        self._detail: Detail | None = None
        self._outcome: Outcome | None = None
        self._looked = (0, 0.0)
        self._ticks = 0
        self._times: tuple[str, ...] = ()
        # All tasks, what was looked for, and what was found.
        self._listed: tuple[Sequence[Row], str, Sequence[Row]] = ((), "", ())
        self._unsent: tuple[str, str] | None = None
        self._doing: list[Deed] = []
        self._leaving = False

    # -- what is read ------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[None]:
        """The list."""
        return BoardScreen(id="board")

    def on_ready(self) -> None:
        """Begin to read; times go on by themselves."""
        self._source.begin(self._run_id, self._hear)
        self.set_interval(_TICK_SECONDS, self.tick)

    def _hear(self, news: News) -> None:
        """May be called from any thread."""
        self.post_message(Arrived(news))

    def on_arrived(self, arrived: Arrived) -> None:
        """Take what a thread tells."""
        news = arrived.news
        if isinstance(news, Looked):
            self._take(news.board)
        elif isinstance(news, Seen):
            self._see(news)
        elif isinstance(news, Done):
            self._done(news)
        elif isinstance(news, Broken):
            self.broken = news.error
            self.exit()
        self.paint()

    def _take(self, board: Board) -> None:
        if board.status.run.id != self._run_id:
            return  # of the run before
        before, was = self.board, self.chosen
        self.board, self._looked = board, (board.status.now_ms, time.monotonic())
        rows = self.rows
        row = view.chosen_row(rows, self.place)
        gone = was is not None and row is not None and row.standing.task.id != self.place.chosen
        if gone and was is not None and before is not None:
            # What is not shown any more leaves the choice where it was in the list.
            row = rows[min(self._number_in(before, was), len(rows) - 1)]
        self._choose(row, again=row != was)

    def _number_in(self, board: Board, row: Row) -> int:
        rows = view.rows_of(board, self.place.wanted)
        return rows.index(row) if row in rows else 0

    def _see(self, seen: Seen) -> None:
        if seen.task_id == self.place.chosen:
            self._detail = seen.detail
            if seen.detail is None:
                self._outcome = Outcome(seen.why, well=False)

    def _done(self, news: Done) -> None:
        if news.deed in self._doing:
            self._doing.remove(news.deed)
        if isinstance(self.screen, ConfirmScreen) and news.deed.name == "looking ahead":
            self.screen.tell(news.outcome.text)
        elif news.deed.name != "looking ahead":
            self._outcome = news.outcome
            self._unsent = None if news.outcome.well else self._unsent
        if self._leaving and not self._doing:
            self.exit()

    # -- what is shown -----------------------------------------------------------------------

    @property
    def rows(self) -> Sequence[Row]:
        """The tasks that are shown, in their order."""
        if self.board is None:
            return ()
        every, wanted, _ = self._listed
        if every is not self.board.status.rows or wanted != self.place.wanted:
            found = view.rows_of(self.board, self.place.wanted)
            self._listed = self.board.status.rows, self.place.wanted, found
        return self._listed[2]

    @property
    def chosen(self) -> Row | None:
        """The row of the chosen task."""
        rows = [row for row in self.rows if row.standing.task.id == self.place.chosen]
        return rows[0] if rows else None

    def _choose(self, row: Row | None, *, again: bool = False) -> None:
        chosen = None if row is None else row.standing.task.id
        if chosen != self.place.chosen:
            self._detail = None
        if row is not None and self.board is not None and (again or chosen != self.place.chosen):
            self._source.look_at(self.board.status.run, row.standing.task.id)
        self.place = self.place._replace(chosen=chosen)

    def tick(self) -> None:
        """Time has passed since the last look."""
        if self.board is not None:
            then_ms, begun = self._looked
            now_ms = then_ms + round((time.monotonic() - begun) * 1000)
            self.board = self.board._replace(status=self.board.status._replace(now_ms=now_ms))
            self._ticks += 1
            times = view.times(self.board)
            # The details beside the list have times of their own.
            if times != self._times or self._ticks % _TICKS == 0:
                self._times = times
                self.paint()

    def on_resize(self) -> None:
        """Make the lines anew."""
        self.call_after_refresh(self.paint)

    def paint(self) -> None:
        """Show everything as it is now; what is as before is not sent to the terminal."""
        for screen in self.screen_stack:
            if not screen.query("#foot"):
                continue  # it is not made yet
            if isinstance(screen, BoardScreen):
                self._paint_board(screen)
            elif isinstance(screen, DetailScreen):
                self._paint_detail(screen)

    def _paint_board(self, screen: Screen[None]) -> None:
        board, width, height = self.board, self.size.width, self.size.height
        if board is None:
            screen.query_one("#head", Pane).show([(("reading the run …", "waiting"),)])
            return
        wide = width >= view.WIDE
        detail = screen.query_one("#detail", Pane)
        detail.display = wide
        beside = width * 40 // 100 if wide else 0
        left, rows = width - beside, self.rows
        head = view.head_lines(board, self.place, width, height)
        self._fixed(screen, "#head", head)
        heading, *lines = view.task_lines(board, rows, left - 1)
        screen.query_one("#heading", Pane).show([heading])
        ids = [row.standing.task.id for row in rows]
        marked = ids.index(self.place.chosen) if self.place.chosen in ids else None
        screen.query_one("#tasks", Pane).show(lines, marked)
        # A quarter at least, and what the tasks leave.
        most = max(3, height // 4, height - len(head) - len(rows) - 3)
        self._fixed(screen, "#happened", view.happened_lines(board, left - 1, most))
        row = self.chosen
        if wide and row is not None:
            detail.show(detail_lines(board, row, self._detail, max(10, beside - 3)))
        elif wide:
            detail.show([])
        self._foot(screen, view.keys(board, row), width)

    def _paint_detail(self, screen: Screen[None]) -> None:
        row = self.chosen
        if self.board is None or row is None:
            return
        width = self.size.width
        lines = detail_lines(self.board, row, self._detail, width - 2)
        screen.query_one("#near", Pane).show(lines)
        asks = view.question_of(self.board, row) is not None
        wanted = ("answer" if asks else "", "retry", "cancel")
        keys = [key for key in view.keys(self.board, row) if key.does in wanted]
        found = [view.Key("esc", "back"), view.Key("↑↓", "scroll"), *keys, view.Key("q", "quit")]
        self._foot(screen, found, width)

    def _foot(self, screen: Screen[None], keys: Sequence[view.Key], width: int) -> None:
        """What is going on or came of the last key, else the keys."""
        lines: list[Line] = []
        if self._doing:
            more = "; it ends with that, Ctrl-C does not wait" if self._leaving else ""
            lines = [((f"{self._doing[-1].name} …{more}", "running"),)]
        elif self._outcome is not None:
            look = "succeeded" if self._outcome.well else "failed"
            parts = wrapped(self._outcome.text, width, most=_MOST_FOOT)
            lines = [((part, look),) for part in parts]
        self._fixed(screen, "#foot", [*lines, view.keys_line(keys, width)])

    @staticmethod
    def _fixed(screen: Screen[None], name: str, lines: list[Line]) -> None:
        """A pane that is as high as what it shows."""
        pane = screen.query_one(name, Pane)
        if pane.styles.height is None or pane.styles.height.value != len(lines):
            pane.styles.height = len(lines)
        pane.show(lines)

    # -- keys: going about -------------------------------------------------------------------

    def action_step(self, lines: int) -> None:
        """Choose another task."""
        rows = list(self.rows)
        if rows:
            here = rows.index(self.chosen) if self.chosen in rows else 0
            self._choose(rows[min(max(0, here + lines), len(rows) - 1)])
        self._quiet()

    def action_page(self, way: int) -> None:
        """Go on by as many tasks as are seen."""
        self.action_step(way * max(1, self.screen.query_one("#tasks", Pane).size.height - 1))

    async def action_near(self) -> None:
        """The chosen task alone."""
        if self.chosen is not None:
            await self.push_screen(DetailScreen())
            self.paint()

    def action_next_question(self) -> None:
        """Choose the next task that asks."""
        if self.board is not None and self.board.questions:
            asking = [q.task.id for q in self.board.questions]
            here = asking.index(self.place.chosen) if self.place.chosen in asking else -1
            wanted = asking[(here + 1) % len(asking)]
            if wanted not in {row.standing.task.id for row in self.rows}:
                self.place = self.place._replace(wanted="")
            self._choose(view.chosen_row(self.rows, Place(wanted)))
        self._quiet()

    def action_turn(self, way: int) -> None:
        """Show another open run."""
        if self.board is None or len(self.board.runs) < 2:
            return
        ids = [run.id for run in self.board.runs]
        here = ids.index(self._run_id) if self._run_id in ids else -1
        self._run_id = ids[(here + way) % len(ids)]
        self.board, self._detail, self.place = None, None, Place()
        self._source.follow(self._run_id)
        self._quiet()

    def _quiet(self) -> None:
        """What was said is read."""
        self._outcome = None
        self.paint()

    # -- keys: looking for something ---------------------------------------------------------

    def action_find(self) -> None:
        """Type what is looked for."""
        line = self.screen.query_one("#wanted", Input)
        line.value, line.display = self.place.wanted, True
        self.screen.set_focus(line)  # at once: the next key may be there already

    def action_find_all(self) -> None:
        """Look for nothing any more."""
        line = self.screen.query_one("#wanted", Input)
        line.display = False
        self._look_for("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """The list follows what is typed."""
        if event.input.id == "wanted" and event.input.display:
            self._look_for(event.value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Go on in what was found."""
        if event.input.id == "wanted":
            event.input.display = False
            self.screen.set_focus(None)

    def _look_for(self, wanted: str) -> None:
        self.place = self.place._replace(wanted=wanted)
        self._choose(view.chosen_row(self.rows, self.place))
        self._quiet()

    # -- keys: doing something ---------------------------------------------------------------
    # A dialog is waited for, so that the keys after that one are for it, however fast they come.

    async def action_answer(self) -> None:
        """Answer the question of the chosen task, else the oldest."""
        if self.board is None or not self.board.questions:
            self._outcome = Outcome("no question is open")
            self.paint()
            return
        question = view.question_of(self.board, self.chosen) or self.board.questions[0]
        run, task_id = self.board.status.run, question.task.id

        def answered(said: str | None) -> None:
            if said is not None:
                self._unsent = task_id, said
                self._do(deeds.answer(run, question, said))

        # What was refused is there again, to be sent or changed.
        begun = self._unsent[1] if self._unsent and self._unsent[0] == task_id else ""
        await self.push_screen(AnswerScreen(question, self.board.status.now_ms, begun), answered)

    async def action_retry(self) -> None:
        """Have the chosen task tried again, once that is confirmed."""
        row = self.chosen
        if self.board is None or row is None or not view.may_retry(row):
            return
        task, run = row.standing.task, self.board.status.run
        force = task.state == "succeeded"
        texts = [f"{task.key}: {task.title}"]
        if force:
            texts.append("It has succeeded. It is done anew, and its present work is put aside.")
        else:
            texts += [task.reason or f"It is {task.state}.", "It gets all of its attempts again."]
        await self._confirm(f"retry {task.key}", texts, deeds.retry(run, task.key, force=force))

    async def action_cancel(self) -> None:
        """Cancel the chosen task, once that is confirmed."""
        row = self.chosen
        if self.board is None or row is None or not view.may_cancel(row):
            return
        task = row.standing.task
        texts = [f"{task.key}: {task.title}"]
        if row.worker:
            texts.append(f"{row.worker} works on it, and learns of it at its next call.")
        texts.append("Nothing is deleted; `r` brings it back.")
        deed = deeds.cancel(self.board.status.run, task.key)
        await self._confirm(f"cancel {task.key}", texts, deed)

    async def action_integrate(self) -> None:
        """Bring the accepted work together, once that is confirmed."""
        if self.board is None or not view.may_integrate(self.board):
            return
        run, within = self.board.status.run, os.getcwd()
        texts = [
            f"Merges the accepted work of {run.name}.",
            "Your checkout is not touched, unless you name its branch.",
            "looking at what comes in …",
        ]

        def confirmed(onto: str | None) -> None:
            if onto is not None:
                self._do(deeds.integrate(run, onto or None, within))

        await self.push_screen(ConfirmScreen("integrate", texts, asks_branch=True), confirmed)
        self._source.do(deeds.look_ahead(run, within))

    async def _confirm(self, title: str, texts: Sequence[str], deed: Deed) -> None:
        def confirmed(sure: str | None) -> None:
            if sure is not None:
                self._do(deed)

        await self.push_screen(ConfirmScreen(title, texts), confirmed)

    def _do(self, deed: Deed) -> None:
        self._outcome = None
        self._doing.append(deed)
        self._source.do(deed)
        self.paint()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While words are typed, keys are letters."""
        return action in _WHILE_TYPING or not isinstance(self.focused, Input)

    # -- the end -----------------------------------------------------------------------------

    def action_leave(self) -> None:
        """End, once nothing is going on."""
        self._leaving = True
        if self._doing:
            self.paint()
        else:
            self.exit()

    def action_end(self) -> None:
        """The same by a key that is no letter."""
        self.action_leave()

    def action_interrupt(self) -> None:
        """End at once."""
        self.interrupted = True
        self.exit()

    def _handle_exception(self, error: Exception) -> None:
        """A fault of ours ends the board, and is told as that of any command is; textual would
        print all that it knows of it."""
        if self.is_headless:
            super()._handle_exception(error)
        elif self.broken is None:
            self.broken = error
            self.exit()
