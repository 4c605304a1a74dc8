"""The screens of a board, and which key calls which of its actions."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Input

from .panes import Pane

STYLES = """
Screen { background: ansi_default; color: ansi_default; }
#head, #heading, #foot, #keys { height: 1; }
#body { height: 1fr; }
#left { width: 1fr; }
#tasks { height: 1fr; }
#detail { width: 40%; border-left: vkey ansi_bright_black; padding: 0 0 0 1; display: none; }
#wanted, #branch { height: 1; border: none; padding: 0; background: ansi_default; }
#wanted { display: none; }
#near { height: 1fr; }
AnswerScreen, ConfirmScreen { align: center middle; background: transparent; }
.box {
    width: 100%; max-width: 100; height: auto; max-height: 100%;
    border: round ansi_cyan; padding: 0 1; background: ansi_default; color: ansi_default;
}
#text {
    height: auto; min-height: 3; max-height: 8;
    border: round ansi_bright_black; padding: 0 1; background: ansi_default;
}
"""


class BoardScreen(Screen[None]):
    """The list of tasks, with what is above, beside and below it."""

    AUTO_FOCUS = ""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.leave"),
        Binding("up,k", "app.step(-1)"),
        Binding("down,j", "app.step(1)"),
        Binding("pageup", "app.page(-1)"),
        Binding("pagedown", "app.page(1)"),
        Binding("home", "app.step(-1000000)"),
        Binding("end", "app.step(1000000)"),
        Binding("enter", "app.near"),
        Binding("slash", "app.find"),
        Binding("escape", "app.find_all"),
        Binding("tab", "app.next_question"),
        Binding("left", "app.turn(-1)"),
        Binding("right", "app.turn(1)"),
        Binding("a", "app.answer"),
        Binding("r", "app.retry"),
        Binding("c", "app.cancel"),
        Binding("i", "app.integrate"),
    ]

    def compose(self) -> ComposeResult:
        """Everything; what is not needed takes no room."""
        yield Pane(id="head")
        with Horizontal(id="body"):
            with Vertical(id="left"):
                yield Pane(id="heading")
                yield Pane(id="tasks")
                yield Pane(id="happened")
            yield Pane(id="detail")
        yield Input(id="wanted", placeholder="words of a key, title, state or worker")
        yield Pane(id="foot")


class DetailScreen(Screen[None]):
    """The chosen task alone, where there is no room beside the list, or too little."""

    AUTO_FOCUS = ""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "app.leave"),
        Binding("escape,enter,left", "app.pop_screen"),
        Binding("up,k", "scroll(-1)"),
        Binding("down,j", "scroll(1)"),
        Binding("pageup", "scroll(-10)"),
        Binding("pagedown,space", "scroll(10)"),
        Binding("home", "scroll(-1000000)"),
        Binding("end", "scroll(1000000)"),
        Binding("a", "app.answer"),
        Binding("r", "app.retry"),
        Binding("c", "app.cancel"),
    ]

    def compose(self) -> ComposeResult:
        """The task, and the keys."""
        yield Pane(id="near")
        yield Pane(id="foot")

    def action_scroll(self, lines: int) -> None:
        """See more of it."""
        self.query_one("#near", Pane).scroll_relative(y=lines, animate=False)
