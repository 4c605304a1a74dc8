"""Lines on the screen, and one of them marked: all that a board has to paint. Knows no runs."""

from collections.abc import Sequence

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from inbox_orch.shared.shell.terminal import STATE_STYLES

from .fitting import Line

_LOOKS = {
    **STATE_STYLES,
    "provisioned": "cyan",
    "allocating": "cyan",
    "heading": "bold",
    "title": "bold",
    "key": "bold cyan",
}
_NONE = Style()
_MARKED = Style(reverse=True)


class Pane(ScrollView, can_focus=False):
    """Lines; more than there is room for are scrolled."""

    DEFAULT_CSS = """
    Pane {
        scrollbar-size: 0 1;
        scrollbar-color: ansi_bright_black;
        scrollbar-background: ansi_default;
    }
    """

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[Line] = []
        self._marked: int | None = None
        self._styles = {name: Style.parse(style) for name, style in _LOOKS.items()}

    def show(self, lines: Sequence[Line], marked: int | None = None) -> None:
        """Show these lines, the one of that number marked. What is as before is not painted."""
        before, was = self._lines, self._marked
        self._lines, self._marked = list(lines), marked
        self.virtual_size = Size(0, len(self._lines))
        if len(before) != len(self._lines):
            self.refresh()
        else:
            self._refresh_changed(before, was)
        if marked is not None and marked != was:
            self.bring_up(marked)

    def bring_up(self, number: int) -> None:
        """Scroll so far that a line is seen."""
        top, height = round(self.scroll_offset.y), max(1, self.size.height)
        if not top <= number < top + height:
            self.scroll_to(
                y=number if number < top else number - height + 1, animate=False, immediate=True
            )

    def render_line(self, y: int) -> Strip:
        """One line as textual wants it."""
        number = y + self.scroll_offset.y
        base = self.rich_style
        width = self.size.width
        if not 0 <= number < len(self._lines):
            return Strip.blank(width, base)
        style = base + _MARKED if number == self._marked else base
        pieces = [
            Segment(text, style + self._styles.get(look or "", _NONE))
            for text, look in self._lines[number]
        ]
        return Strip(pieces).adjust_cell_length(width, style).simplify()

    def _refresh_changed(self, before: list[Line], was: int | None) -> None:
        top = round(self.scroll_offset.y)
        for number, line in enumerate(self._lines):
            changed = line != before[number] or (number == self._marked) != (number == was)
            if changed and top <= number < top + self.size.height:
                self.refresh_lines(number - top)
