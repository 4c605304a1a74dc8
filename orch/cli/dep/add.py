"""`orch dep add`."""

import click

from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import Choice, Verb, shell_of

from ...runs.readiness import CONDITIONS
from ..parts.base import chosen_run, lead_on, open_scheduler, run_option


@click.command("add", cls=Verb, agent=True, examples=("orch dep add parser --on lexer",))
@run_option
@click.argument("task")
@click.option("--on", "upstream", required=True, metavar="TASK", help="What it waits for.")
@click.option(
    "--when",
    "condition",
    type=Choice(CONDITIONS),
    default="success",
    show_default=True,
    help="`success` (or skipped), `finished` (in whatever way), `failed`.",
)
@click.pass_context
def command(
    context: click.Context, run_name: str | None, task: str, upstream: str, condition: str
) -> None:
    """Let TASK wait for another. A cycle is refused, with the path."""
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    data = scheduler.add_dependency(run, task, upstream, condition)
    edge = data["dependency"]
    text = f"{edge['key']} waits for {edge['upstream_key']} ({condition})"
    values = (edge["key"], edge["upstream_key"], condition)
    shell_of(context).output.result(data, Sentence(text, values))
    lead_on(context, scheduler, run)
