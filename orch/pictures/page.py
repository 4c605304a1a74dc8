"""A run as one HTML page (html.spec.whatwg.org): no script, nothing that is loaded from elsewhere.

What needs a person comes first, then the results. All that people and agents wrote goes through
`xml`, which escapes it and takes away what drives a terminal or reorders text; the page's policy
forbids everything but its own style, by its hash.
"""

import base64
import hashlib
from collections.abc import Iterator, Sequence
from importlib.metadata import version

from inbox_orch.shared.ids import counted
from inbox_orch.shared.shell.texts import packaged

from ..attempts.visits import Visit
from ..runs.readiness import Standing
from ..views.needs import told_counts
from ..views.report import Exchange, Need, Report, Told
from ..views.stage_words import entry
from ..views.stages import why_of
from . import markup
from .drawing import drawing_of
from .svg import graph_svg, xml
from .timeline import Bar, bar_of, bar_of_visit, spoken, timeline_svg

_MOST_DRAWN = 400
"""More tasks or attempts than this make a picture too large to read."""
_MOST_UNFOLDED = 60
"""A picture of more than these would push everything below it off the screen."""
_OF_RESULTS = ("Task", "Title", "Who", "Changes", "Took", "Cost", "Message")
_OF_PATCHES = ("Patch", "State", "Changes", "Author", "Reason")
_LOOKS = {
    "queued": "blocked",
    "quarantined": "rejected",
    "apply_failed": "failed",
    "rolled_back": "cancelled",
}
"""The states whose colours those of patches have."""
_OF_VISITS = ("Visit", "Came to", "Who", "Took", "Gates", "Why")
_OF_ATTEMPTS = (
    *("Attempt", "State", "Mailbox", "Who", "Began", "Took", "Commits", "Harvested", "Changes"),
    *("Cost", "Reason", "Message"),
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
    yield from _needs(report)
    yield from _patches(report)
    yield from _results(report)
    yield from _questions([e for e in report.exchanges if e.answer is not None])
    yield from _pictures(report)
    yield from _tasks(report)
    made = f"Made by orch {version('inbox-orch')} at {markup.moment(report.now_ms)} UTC."
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
        f" · begun {markup.moment(run.created_at)} UTC</p>"
    )
    yield '<ul class="tiles">'
    for number, what in _tiles(report):
        yield f'<li><strong>{xml(number)}</strong><span class="quiet small">{xml(what)}</span></li>'
    yield "</ul></header>"


def _tiles(report: Report) -> Iterator[tuple[str, str]]:
    for state, number in told_counts(report.counts, report.run.state).items():
        if state == "not done":
            yield str(number), f"task{'s' if number != 1 else ''} not done"
        else:
            yield str(number), f"{markup.words_of(state)} task{'s' if number != 1 else ''}"
    number = len(report.told) + report.left_out
    if number:
        yield str(number), "attempt" if number == 1 else "attempts"
    if report.exchanges:
        number = len(report.exchanges)
        yield str(number), "question" if number == 1 else "questions"
    if report.asked:
        number = len(report.asked)
        yield str(number), "decision" if number == 1 else "decisions"
    if report.told:
        ends = [told.end_ms for told in report.told]
        began = min(told.attempt.created_at for told in report.told)
        yield spoken((max(ends) - began) / 1000), "from first to last"
    if report.cost.usd is not None:
        yield f"${report.cost.usd:,.2f}", "cost, as reported"
    tokens = [n for n in (report.cost.input_tokens, report.cost.output_tokens) if n is not None]
    if tokens:
        yield f"{sum(tokens):,}", "tokens, as reported"


# -- what needs a person ---------------------------------------------------------------------


def _needs(report: Report) -> Iterator[str]:
    if not report.needs and report.obstacle is None:
        return
    yield f"<h2>{'Needs you' if report.run.state != 'closed' else 'Without success'}</h2>"
    if report.obstacle is not None:
        yield f'<p class="state blocked">Submitted work waits: {xml(report.obstacle)}</p>'
    for need in report.needs:
        yield from _need(need)


def _need(need: Need) -> Iterator[str]:
    task = need.standing.task
    yield (
        f'<article><div class="head"><h3>{markup.task_link(task.key)}</h3>'
        f"<span>{xml(task.title)}</span>{markup.state_mark(need.standing.state)}</div>"
    )
    if need.exchange is None:
        yield markup.lines_of_text(need.why)
    else:
        yield from _asked(need.exchange)
    if need.way_out is not None:
        yield f'<div class="quiet small">{xml(need.way_out.replace("`", ""))}</div>'
    yield "</article>"


def _asked(exchange: Exchange) -> Iterator[str]:
    question = exchange.question
    yield (
        f'<p class="small quiet">{xml(question.sender)} asks, '
        f"{markup.moment(question.created_at)} UTC</p>"
    )
    yield markup.lines_of_text(question.body)
    if question.options:
        offered = markup.cut(" | ".join(question.options))
        yield f'<div class="quiet small">Offered: {xml(offered)}</div>'


def _patches(report: Report) -> Iterator[str]:
    """The patches that wait, are refused, or were taken back."""
    if not report.patches:
        return
    yield "<h2>Patches that wait, are refused, or were taken back</h2>"
    rows = [
        (
            f'<span class="key">{xml(each.name)}</span>',
            f'<span class="state {_LOOKS[each.state]}">{xml(markup.words_of(each.state))}</span>',
            xml(each.size),
            xml(each.patch.author or ""),
            xml(markup.cut(each.why or "")),
        )
        for each in report.patches
    ]
    yield from markup.table(_OF_PATCHES, rows)


# -- results ---------------------------------------------------------------------------------


def _results(report: Report) -> Iterator[str]:
    if not report.results:
        return
    yield "<h2>Results</h2>"
    rows = []
    for standing, told in report.results:
        task = (markup.task_link(standing.task.key), xml(standing.task.title))
        rows.append((*task, *(_result_cells(told) if told is not None else ("",) * 5)))
    yield from markup.table(_OF_RESULTS, rows)
    for _, told in report.results:
        if told is not None and told.unverified is not None:
            said = f"{told.name}: not verified: {told.unverified}"
            yield f'<p class="state blocked">{xml(markup.cut(said))}</p>'
        if told is not None and told.ignored is not None:
            yield f'<p class="quiet small">{xml(markup.cut(f"{told.name}: {told.ignored}"))}</p>'


def _result_cells(told: Told) -> tuple[str, ...]:
    return (
        xml((told.work and told.work.words) or ""),
        markup.changes(told),
        spoken(told.seconds),
        markup.cost_words(told.cost),
        markup.message(told),
    )


# -- questions -------------------------------------------------------------------------------


def _questions(exchanges: Sequence[Exchange]) -> Iterator[str]:
    if exchanges:
        yield "<h2>Questions</h2>"
    for exchange in exchanges:
        question, answer = exchange.question, exchange.answer
        yield (
            f'<article><div class="head"><h3 class="key">{xml(exchange.name)}</h3>'
            f"<span>{xml(question.sender)} asks</span></div>"
        )
        yield from _asked(exchange)
        if answer is not None:
            waited = spoken((answer.created_at - question.created_at) / 1000)
            who = "its deadline passed" if answer.kind == "system" else f"{answer.sender} answers"
            yield f'<p class="small quiet">{xml(who)} after {waited}</p>'
            yield markup.lines_of_text(answer.body)
        yield "</article>"


# -- pictures --------------------------------------------------------------------------------


def _pictures(report: Report) -> Iterator[str]:
    picture = report.picture
    number = len(picture.standings)
    if 0 < number <= _MOST_DRAWN:
        edges = counted(len(picture.dependencies), "dependency", "dependencies")
        heading = f"{counted(number, 'task')}, {edges}"
        drawing = drawing_of(heading, picture.standings, picture.dependencies)
        drawn = graph_svg(drawing, link=lambda key: f"#{markup.task_anchor(key)}")
        yield from _picture("What waits for what", drawn, number, heading)
    bars = list(_bars(report))
    number = len(bars)
    if 0 < number <= _MOST_DRAWN:
        heading = counted(len(report.told), "attempt")
        yield from _picture("Attempts over time", timeline_svg(heading, bars), number, heading)


def _bars(report: Report) -> Iterator[Bar]:
    """A bar for each attempt, and below it one for each visit of a stage."""
    for told in report.told:
        yield bar_of(told.name, told.attempt, told.end_ms)
        for visit in told.visits:
            end_ms = report.now_ms if visit.ended_at is None else visit.ended_at
            yield bar_of_visit(visit, max(end_ms, visit.created_at))


def _picture(title: str, drawn: str, number: int, summary: str) -> Iterator[str]:
    """A picture of so many things; folded away where they are many."""
    figure = f"<figure>{drawn}</figure>"
    shown = figure if number <= _MOST_UNFOLDED else markup.folded(xml(summary), figure)
    yield f"<h2>{title}</h2>\n{shown}"


# -- tasks and attempts ----------------------------------------------------------------------


def _tasks(report: Report) -> Iterator[str]:
    if not report.picture.standings:
        return
    by_task: dict[str, list[Told]] = {}
    for told in report.told:
        by_task.setdefault(told.attempt.task_id, []).append(told)
    yield "<h2>Tasks</h2>"
    if report.left_out:
        left_out = counted(report.left_out, "older attempt is", "older attempts are")
        yield f'<p class="quiet">{left_out} left out.</p>'
    for standing in report.picture.standings:
        yield from _task(report, standing, by_task.get(standing.task.id, []))


def _task(report: Report, standing: Standing, told: Sequence[Told]) -> Iterator[str]:
    task = standing.task
    needs = [d for d in report.picture.dependencies if d.task_id == task.id]
    keys = ", ".join(report.picture.of(d.upstream_id).task.key for d in needs)
    yield (
        f'<article id="{markup.task_anchor(task.key)}"><div class="head">'
        f'<h3 class="key">{xml(task.key)}</h3>'
        f"<span>{xml(task.title)}</span>{markup.state_mark(standing.state)}</div>"
    )
    notes = [f"after {keys}"] if keys else []
    notes += [task.reason] if task.reason else []
    if standing.state == "unreachable":
        notes.append(f"because of {', '.join(standing.because)}")
    if notes:
        yield f'<div class="quiet small">{xml(markup.cut("; ".join(notes)))}</div>'
    if told:
        # What was accepted is told of at length among the results.
        rows = [_cells(one, brief=one.attempt.id == task.accepted_attempt) for one in told]
        yield from markup.table(_OF_ATTEMPTS, rows)
    for one in told:
        yield from _visits(one, report.now_ms)
    yield "</article>"


def _visits(told: Told, now_ms: int) -> Iterator[str]:
    """Every visit of an attempt that goes by a blueprint."""
    if not told.visits:
        return
    rows = [
        (
            xml(f"{visit.number}. {entry(visit.stage, visit.nth)}"),
            markup.state_mark(visit.verdict or visit.state),
            xml(visit.worker or ""),
            spoken(max(0, (visit.ended_at or now_ms) - visit.created_at) / 1000),
            xml(_gates(visit)),
            xml(markup.cut(why_of(visit) or "")),
        )
        for visit in told.visits
    ]
    yield f'<p class="quiet small">Visits of {xml(told.name)}</p>'
    yield from markup.table(_OF_VISITS, rows)


def _gates(visit: Visit) -> str:
    """How each gate ended, in words."""
    return ", ".join(f"{each['gate']} {each['state']}" for each in visit.found.get("gates", ()))


def _cells(told: Told, *, brief: bool) -> tuple[str, ...]:
    """One for each column."""
    attempt, harvested = told.attempt, told.harvested
    return (
        f'<span class="key">{xml(told.name)}</span>',
        markup.state_mark(attempt.state),
        xml(attempt.mailbox),
        xml((told.work and told.work.words) or ""),
        markup.moment(attempt.created_at),
        spoken(told.seconds),
        "" if attempt.commits_ahead is None else str(attempt.commits_ahead),
        "" if harvested is None else counted(harvested.files, "file"),
        markup.changes(told, brief=brief),
        markup.cost_words(told.cost),
        xml(markup.cut(attempt.reason or "")),
        markup.message(told, brief=brief),
    )
