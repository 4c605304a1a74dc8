"""`orch patch`: the commands about changes that were handed in."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "patch",
    cls=Program,
    commands_in={
        "check": (f"{__name__}.check", "What would be said of a change; stores nothing."),
        "submit": (f"{__name__}.submit", "Hand in a change for a task, without a worker."),
        "list": (f"{__name__}.list", "The patches of a run, and how each stands."),
        "export": (f"{__name__}.export", "The text of a patch, as it was handed in."),
    },
)
def command() -> None:
    """Every change that is handed in, as a patch: judged by the policy, and kept."""
