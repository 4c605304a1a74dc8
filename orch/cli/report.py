"""`orch report`."""

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.blocks import Block, Facts, Table, When
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..views.report import Report
from .parts.base import harvested_words, limit_option, one_run, open_scheduler, shown_run
from .parts.pictures import hand_out, target_option


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
    """Tell what became of a run: tasks, attempts, changes, questions, reported costs.

    The page has no script and loads nothing. Of more attempts than --limit, the newest.
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
        output.result(data, *_blocks(report))
    if report.left_out and not output.as_json:
        output.notice(f"{report.left_out} older attempts are left out; --limit N shows more")


def _blocks(report: Report) -> list[Block]:
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
    facts += [
        (f"harvested {told.name}", harvested_words(told.harvested))
        for told in report.told
        if told.harvested is not None
    ]
    facts += [(f"reported {name}", value) for name, value in cost._asdict().items() if value]
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
    ]


def _row(report: Report, number: int) -> tuple[object, ...]:
    told = report.told[number]
    changed = (None, None, None) if told.changed is None else told.changed
    seconds = round((told.end_ms - told.attempt.created_at) / 1000)
    usd = None if told.cost is None else told.cost.usd
    work = told.work
    who = (None, None) if work is None else (work.words, work.last_words)
    return (told.name, told.attempt.state, seconds, *changed, usd, told.attempt.reason, *who)
