"""Pieces of HTML that the sections of a page are made of; all text in them is harmless."""

from collections.abc import Iterator, Sequence

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.ids import counted
from inbox_orch.shared.shell.blocks import harmless

from ..patches.hiding import hidden
from ..runs.costs import Cost
from ..views.report import Told
from .svg import xml

MOST_TEXT = 4000
_MOST_FILES = 20
"""Of so many files of an attempt the numbers of lines are shown, those first that changed most."""


def task_anchor(key: str) -> str:
    """Where on the page a task is told of; a key has no character that would have to be escaped."""
    return f"task-{key}"


def task_link(key: str) -> str:
    """A link to that place, with the key as its text."""
    return f'<a class="key" href="#{task_anchor(key)}">{xml(key)}</a>'


def state_mark(state: str) -> str:
    """A state in its colour."""
    return f'<span class="state {xml(state)}">{xml(words_of(state))}</span>'


def words_of(state: str) -> str:
    """`base conflict`."""
    return state.replace("_", " ")


def moment(at_ms: int) -> str:
    """A moment of UTC to the second."""
    return str(rfc3339(at_ms))[:19].replace("T", " ")


def cut(text: str) -> str:
    """At most `MOST_TEXT` characters."""
    return text if len(text) <= MOST_TEXT else text[:MOST_TEXT] + " …"


def lines_of_text(text: str | None) -> str:
    """A text that a user wrote, with its lines."""
    if text is None:
        return '<pre class="quiet">(pruned)</pre>'
    lines = harmless(cut(hidden(text)), lines=True).split("\n")
    return f"<pre>{chr(10).join(xml(line.replace(chr(9), '    ')) for line in lines)}</pre>"


def folded(summary: str, content: str) -> str:
    """What is opened by a click on its summary, which is HTML."""
    return f"<details><summary>{summary}</summary>{content}</details>"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows of HTML, without the columns that say nothing in any row."""
    kept = [n for n in range(len(columns)) if any(row[n] for row in rows)]
    heads = "".join(f"<th>{columns[n]}</th>" for n in kept)
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for row in rows:
        cells = (f'<td data-label="{columns[n]}">{row[n]}</td>' for n in kept)
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table>"


def changes(told: Told, *, brief: bool = False) -> str:
    """How much an attempt has changed, and, unless `brief`, in which files."""
    changed, files = told.changed, told.files
    if changed is None or files is None:
        gone = "its commits are gone from the repository"
        return f'<span class="quiet">{gone}</span>' if told.commits_are_gone else ""
    lines = f"+{changed.added_lines:,} −{changed.removed_lines:,}"
    summary = f"{lines} in {counted(changed.files, 'file')}"
    if not files:
        return "nothing"
    if brief:
        return summary
    by_size = sorted(files, key=lambda f: (-(f.added or 0) - (f.removed or 0), f.path))
    rows = [f"{_of_file(f.added, f.removed)} {f.path}" for f in by_size[:_MOST_FILES]]
    more = len(files) - _MOST_FILES
    rows += [f"and {counted(more, 'more file')}"] if more > 0 else []
    return folded(summary, f"<pre>{chr(10).join(map(xml, rows))}</pre>")


def _of_file(added: int | None, removed: int | None) -> str:
    return "binary" if added is None else f"+{added} −{removed}"


def cost_words(cost: Cost | None) -> str:
    """What a worker said that its work has cost."""
    if cost is None:
        return ""
    said = [] if cost.usd is None else [f"${cost.usd:,.4f}"]
    said += [] if cost.input_tokens is None else [f"{cost.input_tokens:,} in"]
    said += [] if cost.output_tokens is None else [f"{cost.output_tokens:,} out"]
    return ", ".join(said)


def message(told: Told, *, brief: bool = False) -> str:
    """What was said last: one line, which, unless `brief`, opens to the whole where there is
    more."""
    work = told.work
    line = None if work is None else work.last_words
    if work is None or line is None or work.message is None:
        return ""
    if brief or work.message.body is None or work.message.body.strip() == line:
        return xml(line)
    return folded(xml(line), lines_of_text(work.message.body))
