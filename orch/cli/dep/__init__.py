"""`orch dep`: the commands about dependencies."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "dep",
    cls=Program,
    commands_in={
        "add": ("inbox_orch.orch.cli.dep.add", "Let one task wait for another."),
        "remove": ("inbox_orch.orch.cli.dep.remove", "Let it wait no more."),
    },
)
def command() -> None:
    """Let one task wait for another, or wait no more."""
