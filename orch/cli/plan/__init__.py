"""`orch plan`: the commands about whole plans."""

import click

from inbox_orch.shared.shell.commandline import Program

_HERE = "inbox_orch.orch.cli"


@click.command(
    "plan",
    cls=Program,
    commands_in={
        "import": (f"{_HERE}.plan_import", "Add a whole graph of tasks."),
        "export": (f"{_HERE}.plan_export", "Write a run as a plan."),
    },
)
def command() -> None:
    """Take in and write out whole graphs of tasks, as YAML or JSON."""
