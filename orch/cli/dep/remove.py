"""`orch dep remove`."""

import click

from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.base import chosen_run, lead_on, open_scheduler, run_option


@click.command("remove", cls=Verb, agent=True, examples=("orch dep remove parser --on lexer",))
@run_option
@click.argument("task")
@click.option("--on", "upstream", required=True, metavar="TASK", help="What it waits for.")
@click.pass_context
def command(context: click.Context, run_name: str | None, task: str, upstream: str) -> None:
    """Let a pending TASK wait no more for another."""
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    data = scheduler.remove_dependency(run, task, upstream)
    edge = data["dependency"]
    text = f"{edge['key']} waits no more for {edge['upstream_key']}"
    values = (edge["key"], edge["upstream_key"], edge["condition"])
    shell_of(context).output.result(data, Sentence(text, values))
    lead_on(context, scheduler, run)
