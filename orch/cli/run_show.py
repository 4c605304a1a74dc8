"""`orch run show`."""

import click

from inbox_orch.shared.blocks import Facts
from inbox_orch.shared.commandline import Verb, shell_of

from .base import chosen_run, open_scheduler, run_option


@click.command("show", cls=Verb, agent=True, examples=("orch run show --json",))
@run_option
@click.pass_context
def command(context: click.Context, run_name: str | None) -> None:
    """Print one run: its repository, base, policy and limits."""
    run = chosen_run(open_scheduler(context), run_name).as_json()
    facts = tuple((label.replace("_", " "), value) for label, value in run.items())
    shell_of(context).output.result({"run": run}, Facts(facts))
