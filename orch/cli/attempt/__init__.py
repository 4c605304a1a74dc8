"""`orch attempt`: the commands about attempts."""

import click

from inbox_orch.shared.shell.commandline import Program

_HERE = "inbox_orch.orch.cli"


@click.command(
    "attempt",
    cls=Program,
    commands_in={
        "list": (f"{_HERE}.attempt_list", "The attempts of a run."),
        "show": (f"{_HERE}.attempt_show", "One attempt, and what there is of it on disk."),
        "restore": (f"{_HERE}.attempt_restore", "Bring back what clean-up has salvaged."),
    },
)
def command() -> None:
    """Look at attempts, and bring back what was left in their worktrees."""
