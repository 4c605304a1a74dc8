"""What a board asks before it does something: an answer, or whether it is meant."""

from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.events import Key, Paste, Resize
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, TextArea

from inbox_orch.shared.shell.blocks import harmless

from ..views.status import Question
from .close_up import question_lines
from .deeds import next_decision
from .fitting import Line, wrapped
from .panes import Pane
from .screens import bindings
from .view import Key as KeyShown
from .view import keys_line

_WIDEST, _AROUND = 100, 4
"""Cells of a box, and those of them that are not for text."""
_MOST_LETTERS = 1_000_000


class AnswerText(TextArea):
    """Where an answer is written. What is pasted keeps its lines, and drives no terminal.

    Keys that change or end it are taken here. As bindings, which the app looks up, they would come
    out of their order with letters that are typed fast.
    """

    class Pressed(Message):
        """One of these keys."""

        def __init__(self, key: str) -> None:
            super().__init__()
            self.key = key

    def on_key(self, event: Key) -> None:
        """Take the keys that are no text."""
        if event.key in ("ctrl+j", "shift+enter"):
            self.insert("\n")
        elif event.key == "backspace":
            self.action_delete_left()
        elif event.key in ("enter", "tab"):
            self.post_message(self.Pressed(event.key))
        else:
            return
        event.prevent_default()
        event.stop()

    def on_paste(self, event: Paste) -> None:
        """Take it as text."""
        event.prevent_default()
        event.stop()
        text = event.text.replace("\r\n", "\n").replace("\r", "\n")
        self.insert(harmless(text, lines=True))


class AnswerScreen(ModalScreen[str | None]):
    """A question as a whole, and the answer that is written to it; None without one."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(
        escape="leave", pageup="scroll(-1)", pagedown="scroll(1)"
    )

    def __init__(self, question: Question, now_ms: int, text: str = "") -> None:
        super().__init__()
        self.question = question
        self._now_ms, self._begun = now_ms, text

    def compose(self) -> ComposeResult:
        """The question, the text, the keys."""
        with Vertical(classes="box") as box:
            key = self.question.task.key
            decides = self.question.decision is not None
            box.border_title = f"decide {key}: ANSWER HINT" if decides else f"answer to {key}"
            yield Pane(id="asked")
            yield AnswerText(self._begun, id="text", soft_wrap=True, show_line_numbers=False)
            yield Pane(id="keys")

    def on_mount(self) -> None:
        """Write at the end of what was begun."""
        area = self.query_one(AnswerText)
        # At once: the next key may be there already.
        self.set_focus(area)
        area.move_cursor(area.document.end)

    def on_resize(self, event: Resize) -> None:
        """Fit the question to the room."""
        width, height = _room(event)
        lines = question_lines(self.question, self._now_ms, width, _MOST_LETTERS)
        asked = self.query_one("#asked", Pane)
        asked.styles.height = max(1, min(len(lines), height - 6))
        asked.show(lines)
        found = [KeyShown("enter", "send"), KeyShown("esc", "back")]
        found += [KeyShown("tab", "offered answers")] if self.question.options else []
        found.append(KeyShown("ctrl+j", "new line"))
        self.query_one("#keys", Pane).show([keys_line(found, width)])

    def on_answer_text_pressed(self, pressed: AnswerText.Pressed) -> None:
        """Hand over what was written, or write the next of the answers that are offered."""
        area, options = self.query_one(AnswerText), self.question.options
        if pressed.key == "enter":
            self.dismiss(area.text)
        elif options:
            decides = self.question.decision is not None
            area.text = (next_decision if decides else _next)(options, area.text)
            area.move_cursor(area.document.end)

    def action_leave(self) -> None:
        """Answer nothing."""
        self.dismiss(None)

    def action_scroll(self, way: int) -> None:
        """See the rest of a long question."""
        asked = self.query_one("#asked", Pane)
        asked.scroll_relative(y=way * max(1, asked.size.height - 1), animate=False)


class ConfirmScreen(ModalScreen[str | None]):
    """Whether something is meant: the branch that is named, if one is asked for, or an empty text;
    None when it is not."""

    BINDINGS: ClassVar[list[BindingType]] = bindings(enter="sure", escape="leave", y="yes", n="no")

    def __init__(self, title: str, texts: Sequence[str], *, asks_branch: bool = False) -> None:
        super().__init__()
        self._title, self._texts, self._asks = title, list(texts), asks_branch

    def compose(self) -> ComposeResult:
        """What would be done, the branch if one is asked for, the keys."""
        with Vertical(classes="box") as box:
            box.border_title = self._title
            yield Pane(id="asked")
            if self._asks:
                yield Input(placeholder="branch to bring forward to it; empty: none", id="branch")
            yield Pane(id="keys")

    def on_mount(self) -> None:
        """Where a branch may be named, keys are letters at once."""
        if self._asks:
            self.set_focus(self.query_one(Input))

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """It is meant, with the branch that is named."""
        event.stop()
        self.dismiss(event.value.strip())

    def on_resize(self, event: Resize) -> None:
        """Fit the text to the room."""
        self._fit(*_room(event))

    def tell(self, text: str) -> None:
        """Something more is known of what would be done: it takes the place of the last line."""
        self._texts[-1] = text
        self._fit(min(_WIDEST, self.size.width) - _AROUND, self.size.height)

    def action_sure(self) -> None:
        """It is meant."""
        self.dismiss("")

    def action_leave(self) -> None:
        """It is not."""
        self.dismiss(None)

    def action_yes(self) -> None:
        """The same by a letter, where none is typed."""
        self.action_sure()

    def action_no(self) -> None:
        """The same by a letter, where none is typed."""
        self.action_leave()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a branch is typed, keys are letters, and Enter comes after them."""
        return not (self._asks and action in ("sure", "yes", "no"))

    def _fit(self, width: int, height: int) -> None:
        lines: list[Line] = []
        for text in self._texts:
            lines += [((part, None),) for part in wrapped(text, width)]
        asked = self.query_one("#asked", Pane)
        asked.styles.height = max(1, min(len(lines), height - 6))
        asked.show(lines)
        sure = "enter" if self._asks else "y"
        found = [KeyShown(sure, self._title.split()[0]), KeyShown("esc", "back")]
        self.query_one("#keys", Pane).show([keys_line(found, width)])


def _next(options: Sequence[str], text: str) -> str:
    at = options.index(text) + 1 if text in options else 0
    return options[at % len(options)]


def _room(event: Resize) -> tuple[int, int]:
    """Cells and lines for what stands in a box."""
    return min(_WIDEST, event.size.width) - _AROUND, event.size.height
