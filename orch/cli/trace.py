"""`orch trace`."""

import click

from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import Number, Verb, shell_of

from ..leader import trace
from ..leader.tracing import is_switched_off
from ..runs import limits
from .parts.base import one_run, open_scheduler, shown_run


@click.command(
    "trace",
    cls=Verb,
    agent=True,
    examples=("orch trace", "orch trace fix-the-parser --again"),
)
@one_run
@click.option("--again", is_flag=True, help="All of it, also what was exported before.")
@click.option(
    "--wait",
    "wait_seconds",
    type=Number(0, limits.MAX_WAIT_SECONDS, seconds=True),
    default="10",
    show_default=True,
    metavar="SECONDS",
    help="For the collector, at most so long.",
)
@click.pass_context
def command(context: click.Context, run_name: str | None, again: bool, wait_seconds: float) -> None:
    """Export a run to an OpenTelemetry collector: a trace, with a span for each attempt, check and
    wait, and counters.

    What has ended since the last export is sent, over OTLP/HTTP, to where the variables of
    OpenTelemetry say (OTEL_EXPORTER_OTLP_ENDPOINT, by default port 4318 of this machine). The ids
    are made from those of the run and its attempts, so that whatever is sent twice is the same.
    Exit 6 (`collector_failed`): the rest is sent the next time. `orch drive` and `orch do` do this
    by themselves where that variable is set or the config has `otel: true`. Needs the optional
    part `otel`; where that is missing, it says how to install it.
    """
    from ..leader import otlp

    output = shell_of(context).output
    scheduler = open_scheduler(context)
    run, desk = shown_run(context, scheduler, run_name), scheduler.desk
    lock, sent = trace.exporting(desk), 0
    lock.acquire(wait_seconds)
    try:
        found = trace.trace(desk, run, again=again)
        if is_switched_off():
            output.notice("OTEL_SDK_DISABLED is true: nothing is exported")
        elif found.spans:
            for position in otlp.export(found, wait_seconds):
                trace.mark_exported(desk, run, position)
            sent = len(found.spans)
    finally:
        lock.release()
    data = {"run": found.run.as_json(), "trace": found.id, "spans": sent}
    text = f"Exported {sent} spans of trace {found.id}"
    if not sent:
        text = f"Nothing of trace {found.id} is new; --again exports all of it"
    output.result(data, Sentence(text, (found.id, sent)))
