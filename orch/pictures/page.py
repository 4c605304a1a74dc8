"""A run as one HTML page (html.spec.whatwg.org): no script, nothing that is loaded from elsewhere.

All that people and agents wrote goes through `xml`, which escapes it and takes away what drives a
terminal or reorders text; the page's policy forbids everything but its own style, by its hash.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib.metadata import version

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.shell.blocks import harmless
from inbox_orch.shared.shell.texts import packaged

from ..git.repository import Changed
from ..runs.costs import Cost
from ..runs.readiness import Standing
from ..views.report import Exchange, Report, Told
from .drawing import drawing_of
from .svg import graph_svg, xml
from .timeline import bar_of, how_long, timeline_svg

_MOST_TEXT = 4000
_MOST_DRAWN = 400
"""More tasks or attempts than this make a picture too large to read."""
_COLUMNS = (
    *("Attempt", "State", "Mailbox", "Who", "Began", "Took", "Commits", "Harvested", "Changes"),
    *("Cost", "Reason", "Said"),
)


def page(report: Report) -> str:
    """The whole page."""
    return "\n".join(_page(report)) + "\n"


def _page(report: Report) -> Iterator[str]:
    style = "\n" + packaged("inbox_orch.orch", "report.css")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield '<meta name="referrer" content="no-referrer">'
    yield f"<title>{xml(report.heading)}</title>"
    yield f"<style>{style}</style>\n</head>\n<body>"
    yield from _header(report)
    yield from _pictures(report)
    yield from _tasks(report)
    yield from _questions(report.exchanges)
    made = f"Made by orch {version('inbox-orch')} at {_time(report.now_ms)} UTC."
    yield f'<footer class="quiet small">{xml(made)}</footer>'
    yield "</body>\n</html>"


# -- the head --------------------------------------------------------------------------------


def _header(report: Report) -> Iterator[str]:
    run = report.run
    outcome = (
        report.picture.outcome if run.state == "open" else f"{report.picture.outcome}, {run.state}"
    )
    yield f"<header><h1>{xml(run.title)}</h1>"
    yield (
        f'<p class="quiet"><span class="state {xml(report.picture.outcome)}">{xml(outcome)}</span>'
        f' · <span class="key">{xml(run.name)}</span> · led by {xml(run.leader)}'
        f" · begun {_time(run.created_at)} UTC</p>"
    )
    yield '<ul class="tiles">'
    for number, what in _tiles(report):
        yield f'<li><strong>{xml(number)}</strong><span class="quiet small">{xml(what)}</span></li>'
    yield "</ul></header>"


def _tiles(report: Report) -> Iterator[tuple[str, str]]:
    for state, number in report.counts.items():
        yield str(number), f"{_words(state)} task{'s' if number != 1 else ''}"
    number = len(report.told) + report.left_out
    yield str(number), "attempt" if number == 1 else "attempts"
    if report.exchanges:
        number = len(report.exchanges)
        yield str(number), "question" if number == 1 else "questions"
    if report.told:
        ends = [told.end_ms for told in report.told]
        began = min(told.attempt.created_at for told in report.told)
        yield how_long((max(ends) - began) / 1000), "from first to last"
    if report.cost.usd is not None:
        yield f"${report.cost.usd:,.2f}", "cost, as reported"
    tokens = [n for n in (report.cost.input_tokens, report.cost.output_tokens) if n is not None]
    if tokens:
        yield f"{sum(tokens):,}", "tokens, as reported"


def _pictures(report: Report) -> Iterator[str]:
    picture = report.picture
    if 0 < len(picture.standings) <= _MOST_DRAWN:
        heading = f"{len(picture.standings)} tasks, {len(picture.dependencies)} dependencies"
        drawing = drawing_of(heading, picture.standings, picture.dependencies)
        yield f"<h2>What waits for what</h2>\n<figure>{graph_svg(drawing)}</figure>"
    if 0 < len(report.told) <= _MOST_DRAWN:
        bars = [bar_of(told.name, told.attempt, told.end_ms) for told in report.told]
        heading = f"{len(report.told)} attempts"
        yield f"<h2>Attempts over time</h2>\n<figure>{timeline_svg(heading, bars)}</figure>"


# -- tasks and attempts ----------------------------------------------------------------------


def _tasks(report: Report) -> Iterator[str]:
    by_task: dict[str, list[Told]] = {}
    for told in report.told:
        by_task.setdefault(told.attempt.task_id, []).append(told)
    yield "<h2>Tasks</h2>"
    if not report.picture.standings:
        yield '<p class="quiet">There is none.</p>'
    if report.left_out:
        yield f'<p class="quiet">{report.left_out} older attempts are left out.</p>'
    for standing in report.picture.standings:
        yield from _task(report, standing, by_task.get(standing.task.id, []))


def _task(report: Report, standing: Standing, told: Sequence[Told]) -> Iterator[str]:
    task = standing.task
    needs = [d for d in report.picture.dependencies if d.task_id == task.id]
    keys = ", ".join(report.picture.of(d.upstream_id).task.key for d in needs)
    yield (
        f'<article><div class="head"><h3 class="key">{xml(task.key)}</h3>'
        f"<span>{xml(task.title)}</span>{_state(standing.state)}</div>"
    )
    notes = [f"after {keys}"] if keys else []
    notes += [task.reason] if task.reason else []
    if standing.state == "unreachable":
        notes.append(f"because of {', '.join(standing.because)}")
    if notes:
        yield f'<div class="quiet small">{xml(_cut("; ".join(notes)))}</div>'
    if told:
        yield from _table([_cells(one) for one in told])
    yield "</article>"


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Without the columns that say nothing in any row."""
    kept = [n for n, name in enumerate(_COLUMNS) if any(row[n] for row in rows)]
    heads = "".join(f"<th>{_COLUMNS[n]}</th>" for n in kept)
    yield f"<table><thead><tr>{heads}</tr></thead><tbody>"
    for row in rows:
        cells = (f'<td data-label="{_COLUMNS[n]}">{row[n]}</td>' for n in kept)
        yield f"<tr>{''.join(cells)}</tr>"
    yield "</tbody></table>"


def _cells(told: Told) -> tuple[str, ...]:
    """One for each column."""
    attempt = told.attempt
    return (
        f'<span class="key">{xml(told.name)}</span>',
        _state(attempt.state),
        xml(attempt.mailbox),
        xml((told.work and told.work.words) or ""),
        _time(attempt.created_at),
        how_long((told.end_ms - attempt.created_at) / 1000),
        "" if attempt.commits_ahead is None else str(attempt.commits_ahead),
        _harvested(told),
        _changes(told.changed),
        _cost(told.cost),
        xml(_cut(attempt.reason or "")),
        xml((told.work and told.work.last_words) or ""),
    )


def _state(state: str) -> str:
    return f'<span class="state {xml(state)}">{xml(_words(state))}</span>'


def _harvested(told: Told) -> str:
    """How much was committed for the worker."""
    if told.harvested is None:
        return ""
    files = told.harvested.files
    return f"{files} file{'s' if files != 1 else ''}"


def _changes(changed: Changed | None) -> str:
    if changed is None:
        return ""
    files = f"{changed.files} file{'s' if changed.files != 1 else ''}"
    return f"+{changed.added_lines} −{changed.removed_lines} in {files}"


def _cost(cost: Cost | None) -> str:
    if cost is None:
        return ""
    said = [] if cost.usd is None else [f"${cost.usd:,.4f}"]
    said += [] if cost.input_tokens is None else [f"{cost.input_tokens:,} in"]
    said += [] if cost.output_tokens is None else [f"{cost.output_tokens:,} out"]
    return ", ".join(said)


# -- questions -------------------------------------------------------------------------------


def _questions(exchanges: Sequence[Exchange]) -> Iterator[str]:
    if exchanges:
        yield "<h2>Questions</h2>"
    for exchange in exchanges:
        question, answer = exchange.question, exchange.answer
        yield (
            f'<article><div class="head"><h3 class="key">{xml(exchange.name)}</h3>'
            f"<span>{xml(question.sender)} asks</span>"
            f'<span class="quiet small">{_time(question.created_at)} UTC</span></div>'
        )
        yield _text(question.body)
        if question.options:
            offered = _cut(" | ".join(question.options))
            yield f'<div class="quiet small">Offered: {xml(offered)}</div>'
        if answer is None:
            yield '<p class="state blocked">not answered</p>'
        else:
            waited = how_long((answer.created_at - question.created_at) / 1000)
            who = "its deadline passed" if answer.kind == "system" else f"{answer.sender} answers"
            yield f'<p class="small quiet">{xml(who)} after {waited}</p>'
            yield _text(answer.body)
        yield "</article>"


def _text(text: str | None) -> str:
    """A text that a user wrote, with its lines."""
    if text is None:
        return '<pre class="quiet">(pruned)</pre>'
    lines = harmless(_cut(text), lines=True).split("\n")
    return f"<pre>{chr(10).join(xml(line.replace(chr(9), '    ')) for line in lines)}</pre>"


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else text[:_MOST_TEXT] + " …"


def _words(state: str) -> str:
    return state.replace("_", " ")


def _time(at_ms: int) -> str:
    return str(rfc3339(at_ms))[:19].replace("T", " ")
