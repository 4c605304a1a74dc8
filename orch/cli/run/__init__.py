"""`orch run`: the commands about runs as a whole."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "run",
    cls=Program,
    commands_in={
        "init": (f"{__name__}.init", "Open a run."),
        "list": (f"{__name__}.list", "The runs that are not closed; all of them with --all."),
        "show": (f"{__name__}.show", "One run."),
        "pause": (f"{__name__}.pause", "Dispatch nothing more."),
        "resume": (f"{__name__}.resume", "Dispatch again."),
        "cancel": (f"{__name__}.cancel", "Cancel all that is not final, and close it."),
        "close": (f"{__name__}.close", "Close a run in which nothing lives."),
        "reopen": (f"{__name__}.reopen", "Go on with a closed run."),
    },
)
def command() -> None:
    """Open runs, look at them, pause, cancel and close them."""
