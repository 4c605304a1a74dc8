"""`orch task remove`."""

import click

from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...attempts.rework import remove_task
from ..parts.base import chosen_run, key_option, open_scheduler, run_option


@click.command("remove", cls=Verb, agent=True, examples=("orch task remove notes",))
@run_option
@click.argument("task")
@key_option
@click.pass_context
def command(context: click.Context, run_name: str | None, task: str, key: str | None) -> None:
    """Take a task out of its run that was never dispatched, and that no other waits for.

    One that was dispatched stays, with what its attempts left: `orch cancel` and `orch skip` do
    without it. The answer has the whole task, so that it can be added again.
    """
    scheduler = open_scheduler(context)
    answer = remove_task(scheduler.desk, chosen_run(scheduler, run_name), task, key=key)
    name = answer.data["task"]["key"]
    shell_of(context).output.result(answer.as_json(), Sentence(f"Removed task {name}", (name,)))
