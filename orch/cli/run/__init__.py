"""`orch run`: the commands about runs as a whole."""

import click

from inbox_orch.shared.shell.commandline import Program

_HERE = "inbox_orch.orch.cli"


@click.command(
    "run",
    cls=Program,
    commands_in={
        "init": (f"{_HERE}.run_init", "Open a run."),
        "list": (f"{_HERE}.run_list", "The runs that are not closed; all of them with --all."),
        "show": (f"{_HERE}.run_show", "One run."),
        "pause": (f"{_HERE}.run_pause", "Dispatch nothing more."),
        "resume": (f"{_HERE}.run_resume", "Dispatch again."),
        "cancel": (f"{_HERE}.run_cancel", "Cancel all that is not final, and close it."),
        "close": (f"{_HERE}.run_close", "Close a run in which nothing lives."),
        "reopen": (f"{_HERE}.run_reopen", "Go on with a closed run."),
    },
)
def command() -> None:
    """Open runs, look at them, pause, cancel and close them."""
