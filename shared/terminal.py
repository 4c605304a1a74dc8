"""How blocks look on a terminal; loaded only where a person reads.

Rich lays out and colours. User text is never read as markup, and what would drive the terminal
is escaped. NO_COLOR and FORCE_COLOR are honoured (no-color.org, force-color.org).
"""

import io
import os
import shutil
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from .output import Block, Body, Facts, Sentence, Table, harmless

_GAP = 2
_NARROW = 6
_STATE_STYLES = {
    "pending": "cyan",
    "ready": "cyan",
    "claimed": "yellow",
    "running": "yellow",
    "active": "yellow",
    "blocked": "magenta",
    "done": "green",
    "succeeded": "green",
    "failed": "red",
    "lost": "red",
    "rejected": "red",
    "unreachable": "red",
    "cancelled": "dim",
    "skipped": "dim",
}


def render(blocks: Sequence[Block]) -> str:
    """The blocks as text for the present terminal, with its colours."""
    console = _console()
    for block in blocks:
        if isinstance(block, Sentence):
            console.print(_text(block.text))
        elif isinstance(block, Facts):
            _print_facts(console, block)
        elif isinstance(block, Table):
            _print_table(console, block)
        else:
            _print_body(console, block)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def _console() -> Console:
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") == "dumb"
    return Console(
        file=io.StringIO(),
        force_terminal=not plain,
        no_color=plain,
        width=shutil.get_terminal_size((80, 24)).columns,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )


def _text(value: object) -> Text:
    if value is None or value == "":
        return Text("–", style="dim")
    shown = harmless(_flat(value))
    return Text(shown, style=_STATE_STYLES.get(shown, ""))


def _flat(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)


def _print_facts(console: Console, facts: Facts) -> None:
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in facts.rows:
        grid.add_row(Text(harmless(label)), _text(value))
    console.print(grid)


def _print_table(console: Console, table: Table) -> None:
    if not table.rows:
        console.print(Text(table.empty, style="dim"))
        return
    cells = [[_text(value) for value in row] for row in table.rows]
    drawn = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    for number, width in enumerate(_widths(table, cells, console.width)):
        folded = number in table.folded
        drawn.add_column(
            table.headings[number],
            no_wrap=not folded,
            overflow="fold" if folded else "ellipsis",
            width=width,
        )
    for row in cells:
        drawn.add_row(*row)
    console.print(drawn)


def _widths(table: Table, cells: Sequence[Sequence[Text]], available: int) -> list[int]:
    """How wide each column is: as its content if there is room; otherwise the widest that may
    be cut give way first, never below what their heading needs."""
    headings = [len(heading) for heading in table.headings]
    widths = [
        max([heading, *(row[number].cell_len for row in cells)])
        for number, heading in enumerate(headings)
    ]
    excess = sum(widths) + _GAP * (len(widths) - 1) - available
    for may_be_cut in (
        [n for n in range(len(widths)) if n not in table.fixed],
        list(table.folded),
        list(table.fixed),
    ):
        while excess > 0:
            wide = [n for n in may_be_cut if widths[n] > max(headings[n], _NARROW)]
            if not wide:
                break
            widths[max(wide, key=lambda n: widths[n])] -= 1
            excess -= 1
    return widths


def _print_body(console: Console, body: Body) -> None:
    console.print(Text(harmless(body.heading), style="bold"))
    for line in harmless(body.text, lines=True).split("\n"):
        console.print(Text("  " + line.replace("\t", "    ")), soft_wrap=True)
