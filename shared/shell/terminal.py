"""How blocks look on a terminal; loaded only where a person reads.

Rich lays out and colours. User text is never read as markup, and what would drive the terminal
is escaped. NO_COLOR and FORCE_COLOR are honoured (no-color.org, force-color.org).
"""

import io
import shutil
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from ..clock import rfc3339
from .blocks import Block, Body, Facts, Lines, Page, Sentence, Table, When, harmless
from .escapes import escapes_allowed

_GAP = 2
_NARROW = 6
STATE_STYLES = {
    "pending": "cyan",
    "ready": "cyan",
    "offered": "cyan",
    "backing_off": "cyan",
    "claimed": "yellow",
    "running": "yellow",
    "active": "yellow",
    "submitted": "yellow",
    "verifying": "yellow",
    "ending": "yellow",
    "blocked": "magenta",
    "done": "green",
    "succeeded": "green",
    "failed": "red",
    "lost": "red",
    "rejected": "red",
    "unreachable": "red",
    "timed_out": "red",
    "provision_failed": "red",
    "base_conflict": "magenta",
    "waiting": "dim",
    "ok": "green",
    "warning": "yellow",
    "problem": "red",
    "valid": "green",
    "valid_after_kill": "green",
    "late": "green",
    "leased": "yellow",
    "delivered": "cyan",
    "invalid": "red",
    "empty": "red",
    "declined": "dim",
    "abstained": "dim",
    "cancelled": "dim",
    "skipped": "dim",
}
"""The colours of states, for all that is shown on a terminal."""


def render(blocks: Sequence[Block], columns: int | None = None) -> str:
    """The blocks as text for the present terminal, or for so many columns, with its colours."""
    console = _console(columns)
    previous: Block | None = None
    for block in blocks:
        if previous is not None and not isinstance(previous, Sentence):
            console.print()
        previous = block
        if isinstance(block, Sentence):
            console.print(_text(block.text))
        elif isinstance(block, Facts):
            _print_facts(console, block)
        elif isinstance(block, Table):
            _print_table(console, block)
        elif isinstance(block, Lines):
            _print_lines(console, block)
        elif isinstance(block, Page):
            _print_page(console, block)
        else:
            _print_body(console, block)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def picture(blocks: Sequence[Block]) -> tuple[list[str], list[int]]:
    """The blocks as lines that fit into the present terminal, and how wide each of them is.

    What is too high is cut at its end, and the lowest line of the terminal stays free.
    """
    columns, rows = shutil.get_terminal_size((80, 24))
    lines = _cut_lines(blocks, columns)[: max(1, rows - 1)]
    return _printed(lines, columns), [line.cell_len for line in lines]


def _cut_lines(blocks: Sequence[Block], columns: int) -> list[Text]:
    lines = [Text.from_ansi(line) for line in render(blocks, columns).splitlines()]
    for line in lines:
        line.truncate(max(1, columns))
    return lines


def _printed(lines: Sequence[Text], columns: int) -> list[str]:
    console = _console(columns)
    for line in lines:
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def _console(columns: int | None = None) -> Console:
    plain = not escapes_allowed()
    return Console(
        file=io.StringIO(),
        force_terminal=not plain,
        no_color=plain,
        width=columns or shutil.get_terminal_size((80, 24)).columns,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
    )


def _text(value: object) -> Text:
    if value is None or value == "":
        return Text("–", style="dim")
    if isinstance(value, When):
        return Text(_how_long(value))
    shown = harmless(_flat(value))
    return Text(shown, style=STATE_STYLES.get(shown, ""))


def _flat(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(str, value))
    return str(value)


def _print_lines(console: Console, lines: Lines) -> None:
    for row in lines.rows:
        drawn = Text()
        for text, state in row:
            drawn.append(harmless(text), style=STATE_STYLES.get(state or "", ""))
        drawn.rstrip()
        console.print(drawn, no_wrap=True, overflow="ignore", crop=False)


def _print_facts(console: Console, facts: Facts) -> None:
    grid = RichTable.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in facts.rows:
        shown = Text(_moment(value)) if isinstance(value, When) else _text(value)
        grid.add_row(Text(harmless(label)), shown)
    console.print(grid)


def _moment(when: When) -> str:
    distance = _how_long(when)
    if when.at_ms <= when.now_ms:
        distance += " ago"
    return f"{distance} ({rfc3339(when.at_ms)})"


def _how_long(when: When) -> str:
    """The distance in the largest unit that fits, as people say it."""
    seconds = abs(when.now_ms - when.at_ms) // 1000
    for unit, length, until in (("s", 1, 120), ("min", 60, 120), ("h", 3600, 48)):
        if seconds < length * until:
            distance = f"{seconds // length} {unit}"
            break
    else:
        distance = f"{seconds // 86_400} days"
    return f"in {distance}" if when.at_ms > when.now_ms else distance


def _print_table(console: Console, table: Table) -> None:
    if not table.rows:
        console.print(Text(table.empty, style="dim"))
        return
    table = _without_empty_columns(table)
    cells = [[_text(value) for value in row] for row in table.rows]
    drawn = RichTable(box=None, pad_edge=False, padding=(0, _GAP, 0, 0), header_style="bold")
    widths = _widths(table, cells, console.width)
    for number, width in enumerate(widths):
        folded = number in table.folded
        drawn.add_column(
            table.headings[number],
            no_wrap=not folded,
            overflow="fold" if folded else "ellipsis",
            width=width,
        )
    for row in cells:
        drawn.add_row(
            *(
                _without_its_middle(cell, widths[number]) if number in table.named else cell
                for number, cell in enumerate(row)
            )
        )
    console.print(drawn)


def _without_its_middle(cell: Text, width: int) -> Text:
    """A name in at most so many cells, its end rather than its beginning."""
    if cell.cell_len <= width:
        return cell
    head = (width - 1) // 4
    begun, ended = cell.copy(), cell.copy()
    begun.truncate(head)
    # Cut down to about its end at once; what is left takes a step for each character.
    ended = ended[-8 * width :] if len(ended) > 8 * width else ended
    while ended.cell_len > width - 1 - begun.cell_len:
        ended = ended[1:]
    return begun.append("…").append(ended)


def _without_empty_columns(table: Table) -> Table:
    kept = [
        number
        for number in range(len(table.headings))
        if number not in table.sparse or any(row[number] for row in table.rows)
    ]

    def moved(numbers: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(kept.index(number) for number in numbers if number in kept)

    return table._replace(
        headings=tuple(table.headings[number] for number in kept),
        rows=tuple(tuple(row[number] for number in kept) for row in table.rows),
        fixed=moved(table.fixed),
        folded=moved(table.folded),
        named=moved(table.named),
        sparse=(),
    )


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


def _print_page(console: Console, page: Page) -> None:
    from rich.markdown import Markdown

    # Links are shown as text: a click must not lead where a text of others says.
    console.print(Markdown(harmless(page.text, lines=True), hyperlinks=False))


def _print_body(console: Console, body: Body) -> None:
    heading = " ".join(
        f"{_how_long(part)} ago" if isinstance(part, When) else _text(part).plain
        for part in body.heading
    )
    console.print(Text(heading, style="bold"))
    for line in harmless(body.text, lines=True).split("\n"):
        console.print(Text("  " + line.replace("\t", "    ")), soft_wrap=True)
