"""`orch task`: the commands about tasks."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "task",
    cls=Program,
    commands_in={
        "add": ("inbox_orch.orch.cli.task.add", "Add a task to a run."),
        "edit": ("inbox_orch.orch.cli.task.edit", "Change a task that waits to be dispatched."),
        "remove": ("inbox_orch.orch.cli.task.remove", "Take such a task out of its run."),
        "list": ("inbox_orch.orch.cli.task.list", "The tasks of a run, in few words."),
        "show": ("inbox_orch.orch.cli.task.show", "One task, with its edges and attempts."),
    },
)
def command() -> None:
    """Add tasks to a run, change those that wait, and look at them."""
