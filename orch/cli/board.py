"""`orch board`."""

import click

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.shell.commandline import Verb, shell_of
from inbox_orch.shared.shell.screen import Key, Screen, require_terminal
from inbox_orch.shared.store import waits

from ..leader.board import Board
from ..leader.scheduler import Scheduler
from ..runs.model import Run
from .parts.base import one_run, open_scheduler, shown_run
from .parts.board_view import Place, Typing, lines, pages

_ELSEWHERE = "`orch status --json` tells how a run stands, `orch drive` goes on telling"


@click.command("board", cls=Verb, agent=True, examples=("orch board", "orch board --run RUN"))
@one_run
@click.pass_context
def command(context: click.Context, run_name: str | None) -> None:
    """Watch a run on the whole terminal: tasks, attempts, leases, questions, events.

    It decides nothing; `a` answers the chosen question. `q` ends it, Ctrl-C too (130). It wakes
    when something happens, and costs next to nothing while nothing does.
    """
    output = shell_of(context).output
    if output.as_json:
        raise usage("--json and a view for a terminal exclude each other", hint=_ELSEWHERE)
    require_terminal(_ELSEWHERE)
    scheduler = open_scheduler(context, looks=True, perhaps_alone=False)
    run = _first_run(context, scheduler, run_name)
    with Screen(output) as screen:
        view = _View(scheduler, screen, run)
        while not view.over:
            waits.wait(
                scheduler.database,
                scheduler.board_topics(view.run),
                view.look,
                wait_seconds=float("inf"),
                pulse=view.paint,
                inputs=screen.descriptors,
            )


def _first_run(context: click.Context, scheduler: Scheduler, name: str | None) -> Run:
    """The run that is named, else the newest open one: the others are a key away; else the last."""
    open_runs = scheduler.runs()
    if name is None and len(open_runs) > 1:
        return open_runs[-1]
    return shown_run(context, scheduler, name)


class _View:
    """What is shown to one reader, and what the keys do."""

    def __init__(self, scheduler: Scheduler, screen: Screen, run: Run) -> None:
        self.run = run
        self.over = False
        self._scheduler, self._screen = scheduler, screen
        self._board: Board | None = None
        self._place = Place()
        self._version: int | None = None

    def look(self) -> waits.Look:
        """Take the keys, look again if something can have changed, and paint."""
        shown = self.run.id
        keys = self._screen.keys()
        for key in keys:
            self._press(key)
        version = waits.version(self._scheduler.database)
        if self._board is None or not keys or version != self._version:
            self._version = version
            self._board = self._scheduler.board(self.run)
        self.paint()
        if self.over or self.run.id != shown:
            return waits.Look(True)
        return self._scheduler.board_due(self.run)

    def paint(self) -> None:
        """Show it as it is now: times go on also when nothing happens."""
        if self._board is None:
            return
        now_ms = self._scheduler.database.now().wall_ms
        board = self._board._replace(status=self._board.status._replace(now_ms=now_ms))
        size = self._screen.size
        self._screen.paint(lines(board, self._place, size.columns, size.lines))

    # -- keys --------------------------------------------------------------------------------

    def _press(self, key: Key) -> None:
        board = self._board
        if key.name == "end" or (key.text == "q" and self._place.typing is None):
            self.over = True
        elif board is not None and self._place.typing is not None:
            self._type(self._place.typing, key)
        elif board is not None:
            self._place = self._place._replace(message="")
            self._move(board, key)

    def _move(self, board: Board, key: Key) -> None:
        place, questions = self._place, board.questions
        step = {"up": -1, "down": 1, "page up": -10, "page down": 10}.get(key.name)
        if step is not None:
            scrolled = min(max(0, place.scrolled + step), pages(board))
            self._place = place._replace(scrolled=scrolled)
        elif key.name == "tab" and questions:
            self._place = place._replace(chosen=(place.chosen + 1) % len(questions))
        elif key.name in ("left", "right") and len(board.runs) > 1:
            self._turn(board, 1 if key.name == "right" else -1)
        elif key.text == "a" and questions:
            chosen = questions[place.chosen % len(questions)]
            self._place = place._replace(typing=Typing(chosen))
        elif key.text == "a":
            self._place = place._replace(message="no question is open")

    def _turn(self, board: Board, step: int) -> None:
        ids = [run.id for run in board.runs]
        here = ids.index(self.run.id) if self.run.id in ids else -1
        self.run = board.runs[(here + step) % len(ids)]
        self._board, self._place = None, Place()

    def _type(self, typing: Typing, key: Key) -> None:
        text, options = typing.text, typing.question.message.options
        if key.name == "escape":
            self._place = self._place._replace(typing=None, message="")
            return
        if key.name == "enter":
            self._answer(typing)
            return
        if key.name == "backspace":
            text = text[:-1]
        elif key.name == "clear":
            text = ""
        elif key.name == "tab" and options:
            at = options.index(text) + 1 if text in options else 0
            text = options[at % len(options)]
        self._place = self._place._replace(typing=typing._replace(text=text + key.text), message="")

    def _answer(self, typing: Typing) -> None:
        """Answer the very question that was shown, if it is still open."""
        task, said = typing.question.task, typing.text.strip()
        try:
            if not said:
                raise usage("an answer is empty")
            still = [q for q in self._scheduler.questions(self.run) if q.task.id == task.id]
            if [q.message.id for q in still] != [typing.question.message.id]:
                raise usage(f"the question of {task.key} is not open any more")
            self._scheduler.answer(self.run, task.key, body=said)
        except InboxOrchError as error:
            self._place = self._place._replace(message=error.message)
            return
        self._board = None
        self._place = self._place._replace(typing=None, message=f"answered {task.key}")
