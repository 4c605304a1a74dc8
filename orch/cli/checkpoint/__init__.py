"""`orch checkpoint`: the commands about checkpoints."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "checkpoint",
    cls=Program,
    commands_in={
        "list": (f"{__name__}.list", "The states that were kept."),
        "show": (f"{__name__}.show", "One of them, and what it changed."),
        "make": (f"{__name__}.make", "Keep what lies in a worktree now."),
        "restore": (f"{__name__}.restore", "Go back to one; what is there is kept before."),
    },
)
def command() -> None:
    """Keep states of an attempt's worktree, look at them, and go back to one.

    An attempt that goes by a blueprint has one from its start and from the end of each stage.
    """
