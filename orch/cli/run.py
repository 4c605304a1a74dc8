"""`orch run`: the commands about runs as a whole."""

import click

from inbox_orch.shared.commandline import Program

_HERE = "inbox_orch.orch.cli"


@click.command(
    "run",
    cls=Program,
    commands_in={
        "init": (f"{_HERE}.run_init", "Open a run."),
        "list": (f"{_HERE}.run_list", "The runs that are not closed."),
        "show": (f"{_HERE}.run_show", "One run."),
    },
)
def command() -> None:
    """Open and look at runs."""
