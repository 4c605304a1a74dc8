"""`orch timeline`."""

import click

from inbox_orch.shared.shell.blocks import Lines
from inbox_orch.shared.shell.commandline import Choice, Verb, shell_of

from .parts.base import limit_option, one_run, open_scheduler, shown_run
from .parts.pictures import hand_out, rows_of, target_option


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
    """Draw the attempts of a run over time; live ones go up to now. Times are UTC.

    Of more attempts than --limit, the newest.
    """
    from ..pictures.timeline import bar_of, timeline_lines, timeline_svg

    scheduler = open_scheduler(context, looks=True)
    found = scheduler.timeline(shown_run(context, scheduler, run_name), most=limit)
    bars = [bar_of(found.label(a), a, found.end_ms(a)) for a in found.attempts]
    drawn: str | Lines
    if form == "text":
        drawn = Lines(rows_of(timeline_lines(found.heading, bars)))
    else:
        drawn = timeline_svg(found.heading, bars)
    output = shell_of(context).output
    hand_out(scheduler, output, drawn, found.as_json(), target, form)
    if found.left_out and not output.as_json:
        output.notice(f"{found.left_out} older attempts are left out; --limit N shows more")
