"""`orch timeline`."""

from typing import TYPE_CHECKING

import click

from inbox_orch.shared.shell.blocks import Lines
from inbox_orch.shared.shell.commandline import Choice, Verb, shell_of

from .parts.base import limit_option, one_run, open_scheduler, shown_run
from .parts.pictures import hand_out, rows_of, target_option

if TYPE_CHECKING:
    from ..pictures.timeline import Bar
    from ..views.charts import Timeline


@click.command(
    "timeline",
    cls=Verb,
    agent=True,
    examples=("orch timeline", "orch timeline --format svg --output timeline.svg"),
)
@one_run
@click.option("--format", "form", type=Choice(("text", "svg")), default="text", show_default=True)
@limit_option
@target_option
@click.pass_context
def command(
    context: click.Context, run_name: str | None, form: str, limit: int, target: str | None
) -> None:
    """Draw the attempts of a run over time, with their visits where they go by a blueprint; live
    ones go up to now. Times are UTC.

    Of more attempts than --limit, the newest.
    """
    from ..pictures.timeline import timeline_lines, timeline_svg

    scheduler = open_scheduler(context, looks=True)
    found = scheduler.timeline(shown_run(context, scheduler, run_name), most=limit)
    bars = _bars(found)
    drawn: str | Lines
    if form == "text":
        drawn = Lines(rows_of(timeline_lines(found.heading, bars)))
    else:
        drawn = timeline_svg(found.heading, bars)
    output = shell_of(context).output
    hand_out(scheduler, output, drawn, found.as_json(), target, form)
    if found.left_out and not output.as_json:
        output.notice(f"{found.left_out} older attempts are left out; --limit N shows more")


def _bars(found: "Timeline") -> "list[Bar]":
    """A bar for each attempt, and below it one for each visit of a stage."""
    from ..pictures.timeline import bar_of, bar_of_visit

    bars = []
    for attempt in found.attempts:
        bars.append(bar_of(found.label(attempt), attempt, found.end_ms(attempt)))
        visits = found.visits.get(attempt.id, ())
        bars += [bar_of_visit(visit, found.end_ms(visit)) for visit in visits]
    return bars
