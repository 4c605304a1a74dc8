"""`orch policy`: what changes have to satisfy."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "policy",
    cls=Program,
    commands_in={
        "show": (f"{__name__}.show", "What is in force, and where it comes from."),
        "explain": (f"{__name__}.explain", "What it says of one path."),
        "check": (f"{__name__}.check", "Judge a change; nothing is stored."),
        "lint": (f"{__name__}.lint", "What is wrong or odd in a file."),
    },
)
def command() -> None:
    """Look at the policies that changes have to satisfy, and try them."""
