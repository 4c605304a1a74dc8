"""The screens of a board, and which key calls which of its actions."""

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import Screen
from textual.widgets import Input

from .panes import Pane


def bindings(**keys: str) -> list[BindingType]:
    """Which key calls which action. Before anything else sees the key: what a key opens has the
    next one, however fast that comes."""
    return [Binding(key, action, priority=True) for key, action in keys.items()]


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

    BINDINGS: ClassVar[list[BindingType]] = bindings(
        q="app.leave",
        up="app.step(-1)",
        down="app.step(1)",
        pageup="app.page(-1)",
        pagedown="app.page(1)",
        home="app.page(-1000000)",
        end="app.page(1000000)",
        enter="app.near",
        slash="app.find",
        escape="app.find_all",
        tab="app.next_question",
        left="app.turn(-1)",
        right="app.turn(1)",
        a="app.answer",
        r="app.retry",
        c="app.cancel",
        i="app.integrate",
    )

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

    BINDINGS: ClassVar[list[BindingType]] = bindings(
        q="app.leave",
        escape="app.pop_screen",
        enter="app.pop_screen",
        left="app.pop_screen",
        up="scroll(-1)",
        down="scroll(1)",
        pageup="scroll(-10)",
        pagedown="scroll(10)",
        home="scroll(-1000000)",
        end="scroll(1000000)",
        a="app.answer",
        r="app.retry",
        c="app.cancel",
    )

    def compose(self) -> ComposeResult:
        """The task, and the keys."""
        yield Pane(id="near")
        yield Pane(id="foot")

    def action_scroll(self, lines: int) -> None:
        """See more of it."""
        self.query_one("#near", Pane).scroll_relative(y=lines, animate=False)
