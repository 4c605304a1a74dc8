"""`orch plan`: the commands about whole plans."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "plan",
    cls=Program,
    commands_in={
        "import": (f"{__name__}.import_", "Add a whole graph of tasks."),
        "export": (f"{__name__}.export", "Write a run as a plan."),
    },
)
def command() -> None:
    """Take in and write out whole graphs of tasks, as YAML or JSON."""
