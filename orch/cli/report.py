"""`orch report`."""

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.ids import counted
from inbox_orch.shared.shell.blocks import Block, Facts, Sentence, Table, When
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..views.needs import told_counts
from ..views.report import Exchange, Need, Report, Told
from ..views.stage_words import entry
from ..views.stages import why_of
from .parts.base import (
    harvested_words,
    limit_option,
    obstacle_block,
    one_run,
    open_scheduler,
    shown_run,
)
from .parts.patches import patch_table
from .parts.pictures import hand_out, target_option

_MOST_HARVESTED = 5
"""Work that was left uncommitted is told of in a line each, of at most so many attempts."""


@click.command(
    "report",
    cls=Verb,
    agent=True,
    examples=("orch report", "orch report --html --output report.html", "orch report --json"),
)
@one_run
@click.option("--html", is_flag=True, help="One self-contained page.")
@limit_option
@target_option
@click.pass_context
def command(
    context: click.Context, run_name: str | None, html: bool, limit: int, target: str | None
) -> None:
    """Tell what became of a run: what needs somebody first, then patches that wait, were
    refused or taken back, the results with who did them, what they changed and what was
    said, the other attempts, the visits of what goes by a blueprint, questions, and reported
    costs.

    The page has no script and loads nothing. Of more attempts than --limit, the
    newest.
    """
    if target is not None and not html:
        raise usage("--output goes with --html")
    scheduler = open_scheduler(context, looks=True)
    report = scheduler.report(shown_run(context, scheduler, run_name), most=limit)
    output = shell_of(context).output
    if html:
        from ..pictures.page import page

        hand_out(scheduler, output, page(report), report.as_json(), target, "html")
    else:
        data = {**report.as_json(), "format": "text", "text": None, "path": None}
        output.result(data, *(_for_people if output.terminal else _for_a_pipe)(report))
    if report.left_out and not output.as_json:
        left_out = counted(report.left_out, "older attempt is", "older attempts are")
        output.notice(f"{left_out} left out; --limit N shows more")


# -- for people ------------------------------------------------------------------------------


def _for_people(report: Report) -> list[Block]:
    """What there is nothing of is left out."""
    blocks: list[Block] = [Sentence(report.heading), Sentence(_summary(report))]
    if report.obstacle is not None:
        blocks.append(obstacle_block(report.obstacle))
    told = (_results(report), _others(report), _visits(report))
    tables = (_needs(report), _held_up(report), *told, _answered(report))
    blocks += [table for table in tables if table.rows]
    return blocks + _harvested(report) + _unverified(report)


def _unverified(report: Report) -> list[Block]:
    """What was accepted and not judged as it should have been, or not with what it was judged."""
    lines = [f"{told.name}: not verified: {told.unverified}" for told in _not_verified(report)]
    lines += [f"{told.name}: {told.ignored}" for told in report.told if told.ignored]
    return [Sentence(line) for line in lines]


def _not_verified(report: Report) -> list[Told]:
    return [told for told in report.told if told.unverified is not None]


def _visits(report: Report) -> Table:
    """Every visit of the attempts that go by a blueprint."""
    from ..pictures.timeline import spoken

    rows = []
    for told in report.told:
        for visit in told.visits:
            end_ms = visit.ended_at or report.now_ms
            came_to = (visit.verdict or visit.state).replace("_", " ")
            took = spoken(max(0, end_ms - visit.created_at) / 1000)
            named = (told.name, entry(visit.stage, visit.nth), came_to, visit.worker, took)
            rows.append((*named, _line(why_of(visit))))
    heads = ("ATTEMPT", "VISIT", "CAME TO", "WHO", "TOOK", "WHY")
    return Table(heads, tuple(rows), fixed=(0, 1, 2), folded=(5,), sparse=(3, 5))


def _harvested(report: Report) -> list[Block]:
    lines = [
        f"{told.name}: harvested {harvested_words(told.harvested)}"
        for told in report.told
        if told.harvested is not None
    ]
    more = len(lines) - _MOST_HARVESTED
    lines[_MOST_HARVESTED:] = [f"and {more:,} more harvested"] if more > 0 else []
    return [Sentence(line) for line in lines]


def _summary(report: Report) -> str:
    from ..pictures.timeline import spoken

    counts = told_counts(report.counts, report.run.state)
    parts = [f"{number} {state}" for state, number in counts.items()] or ["no tasks"]
    number = len(report.told) + report.left_out
    parts += [counted(number, "attempt")] if number else []
    parts += [counted(len(report.exchanges), "question")] if report.exchanges else []
    parts += [counted(len(report.asked), "decision")] if report.asked else []
    if report.told:
        began = min(told.attempt.created_at for told in report.told)
        parts.append(f"took {spoken((max(t.end_ms for t in report.told) - began) / 1000)}")
    cost = report.cost
    parts += [] if cost.usd is None else [f"${cost.usd:,.2f} reported"]
    tokens = [n for n in (cost.input_tokens, cost.output_tokens) if n is not None]
    parts += [f"{sum(tokens):,} tokens reported"] if tokens else []
    return ", ".join(parts)


def _needs(report: Report) -> Table:
    rows = tuple(
        (need.standing.task.key, need.standing.state, _why(need), need.way_out)
        for need in report.needs
    )
    heading = "NEEDS YOU" if report.run.state != "closed" else "WITHOUT SUCCESS"
    headings = (heading, "STATE", "WHY", "WHAT TO DO")
    return Table(headings, rows, fixed=(0, 1), folded=(2, 3), sparse=(3,))


def _held_up(report: Report) -> Table:
    """The patches that wait, are refused, or were taken back."""
    table = patch_table(report.patches)
    told = zip(table.rows, report.patches, strict=True)
    return table._replace(rows=tuple((*row[:-1], _line(each.why)) for row, each in told))


def _why(need: Need) -> str:
    return need.why if need.exchange is None else _asked(need.exchange)


def _asked(exchange: Exchange) -> str:
    question = exchange.question
    offered = f" ({' | '.join(question.options)})" if question.options else ""
    return f"{question.sender} asks: {_line(question.body)}{offered}"


def _results(report: Report) -> Table:
    rows = []
    for standing, told in report.results:
        rows.append((standing.task.key, *(_told(told) if told is not None else (None,) * 5)))
    headings = ("RESULT", "WHO", "CHANGES", "TOOK", "COST", "MESSAGE")
    return Table(headings, tuple(rows), fixed=(0, 3), folded=(5,), sparse=(2, 4, 5))


def _others(report: Report) -> Table:
    rows = []
    for told in report.others:
        who, changes, took, cost, said = _told(told)
        reason = told.attempt.reason
        said = None if said == _line(reason) else said
        rows.append((told.name, told.attempt.state, who, changes, took, cost, reason, said))
    heads = ("OTHER ATTEMPT", "STATE", "WHO", "CHANGES", "TOOK", "COST", "WHY", "MESSAGE")
    return Table(heads, tuple(rows), fixed=(0, 1, 4), folded=(6, 7), sparse=(2, 3, 5, 6, 7))


def _told(told: Told) -> tuple[str | None, ...]:
    from ..pictures.timeline import spoken

    work, cost, changed = told.work, told.cost, told.changed
    changes = "commits are gone" if told.commits_are_gone else None
    if changed is not None:
        lines = f"+{changed.added_lines} -{changed.removed_lines}"
        changes = f"{lines} in {counted(changed.files, 'file')}" if changed.files else "nothing"
    return (
        None if work is None else work.words,
        changes,
        spoken(told.seconds),
        None if cost is None or cost.usd is None else f"${cost.usd:,.4f}",
        None if work is None else work.last_words,
    )


def _answered(report: Report) -> Table:
    rows = tuple(
        (exchange.name, _asked(exchange), _line(exchange.answer.body))
        for exchange in report.exchanges
        if exchange.answer is not None
    )
    return Table(("QUESTION", "ASKED", "ANSWER"), rows, folded=(1, 2))


def _line(text: str | None) -> str:
    """On one line, of which enough to know what it is about."""
    line = " ".join((text or "")[:1000].split())
    return line if len(line) <= 200 else line[:199] + "…"


# -- for a pipe ------------------------------------------------------------------------------


def _for_a_pipe(report: Report) -> list[Block]:
    cost = report.cost
    facts: list[tuple[str, object]] = [
        ("run", report.run.name),
        ("title", report.run.title),
        ("outcome", report.picture.outcome),
        ("begun", When(report.run.created_at, report.now_ms)),
        *((f"tasks {state}", number) for state, number in report.counts.items()),
        ("attempts", len(report.told) + report.left_out),
        ("questions", len(report.exchanges)),
    ]
    facts += [("decisions", len(report.asked))] if report.staged else []
    facts += [
        (f"harvested {told.name}", harvested_words(told.harvested))
        for told in report.told
        if told.harvested is not None
    ]
    facts += [(f"not verified {told.name}", told.unverified) for told in _not_verified(report)]
    facts += [(f"ignored {told.name}", told.ignored) for told in report.told if told.ignored]
    facts += [(f"reported {name}", _rounded(n)) for name, n in cost._asdict().items() if n]
    rows = tuple(_row(report, number) for number in range(len(report.told)))
    headings = ("ATTEMPT", "STATE", "SECONDS", "FILES", "+", "-", "USD", "REASON", "WHO", "SAID")
    return [
        Facts(tuple(facts)),
        Table(
            headings,
            rows,
            "no attempts yet",
            fixed=(0, 1),
            folded=(7, 9),
            sparse=(3, 4, 5, 6, 8, 9),
        ),
        *_visits_in_a_pipe(report),
        *_patches_in_a_pipe(report),
    ]


def _visits_in_a_pipe(report: Report) -> list[Block]:
    """A line for each visit, with `visit` before it: attempt, number, stage, which entry of it,
    kind, what it came to, who, seconds, why."""
    rows = []
    for told in report.told:
        for visit in told.visits:
            seconds = round(max(0, (visit.ended_at or report.now_ms) - visit.created_at) / 1000)
            facts = (visit.number, visit.stage, visit.nth, visit.kind)
            came_to = (visit.verdict or visit.state, visit.worker, seconds, why_of(visit))
            rows.append(("visit", told.name, *facts, *came_to))
    return [Table(("",) * 10, tuple(rows))] if rows else []


def _patches_in_a_pipe(report: Report) -> list[Block]:
    """A line for each patch that waits, is refused or was taken back, with `patch` before it: its
    name, state, size, who wrote it, why."""
    table = patch_table(report.patches)
    rows = tuple(("patch", *row) for row in table.rows)
    return [Table(("", *table.headings), rows)] if rows else []


def _rounded(number: float | None) -> float | None:
    """A sum of decimal fractions has digits that nobody reported."""
    return None if number is None else round(number, 6)


def _row(report: Report, number: int) -> tuple[object, ...]:
    told = report.told[number]
    changed = (None, None, None) if told.changed is None else told.changed
    seconds = round((told.end_ms - told.attempt.created_at) / 1000)
    usd = None if told.cost is None else _rounded(told.cost.usd)
    work = told.work
    who = (None, None) if work is None else (work.words, work.last_words)
    return (told.name, told.attempt.state, seconds, *changed, usd, told.attempt.reason, *who)
