"""`orch plan export`."""

import click

from inbox_orch.shared.shell.commandline import Choice, Verb, shell_of

from ..parts.base import one_run, open_scheduler, shown_run
from ..parts.pictures import hand_out, target_option


@click.command(
    "export",
    cls=Verb,
    agent=True,
    examples=("orch plan export > plan.yaml", "orch plan export --format json --output plan.json"),
)
@one_run
@click.option("--format", "form", type=Choice(("yaml", "json")), default="yaml", show_default=True)
@target_option
@click.pass_context
def command(context: click.Context, run_name: str | None, form: str, target: str | None) -> None:
    """Write a run as a plan, which `orch plan import` takes in again.

    The tasks as they were planned, not how they stand. The values of secrets are left out.
    """
    from ...documents.writing import plan_as_json, write_json, write_yaml

    scheduler = open_scheduler(context, looks=True)
    run = shown_run(context, scheduler, run_name)
    plan = scheduler.plan_export(run)
    text = write_yaml(plan) if form == "yaml" else write_json(plan)
    data = {"run": run.as_json(), "plan": plan_as_json(plan)}
    output = shell_of(context).output
    output.bare()  # it is to be taken in again
    hand_out(scheduler, output, text, data, target, form)
