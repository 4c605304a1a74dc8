"""`orch attempt`: the commands about attempts."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "attempt",
    cls=Program,
    commands_in={
        "list": (f"{__name__}.list", "The attempts of a run."),
        "show": (f"{__name__}.show", "One attempt, and what there is of it on disk."),
        "restore": (f"{__name__}.restore", "Bring back what clean-up has salvaged."),
    },
)
def command() -> None:
    """Look at attempts, and bring back what was left in their worktrees."""
