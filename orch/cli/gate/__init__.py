"""`orch gate`: the commands about gates."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "gate",
    cls=Program,
    commands_in={
        "list": (f"{__name__}.list", "The gates of a run."),
        "run": (f"{__name__}.run", "Run them on the worktree where you are."),
    },
)
def command() -> None:
    """Look at the gates that work has to pass, and run them before it is handed in."""
