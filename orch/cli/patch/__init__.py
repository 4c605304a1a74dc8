"""`orch patch`: the commands about changes that were handed in."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "patch",
    cls=Program,
    commands_in={
        "list": (f"{__name__}.list", "The patches of a run, and how each stands."),
        "rollback": (f"{__name__}.rollback", "Undo an accepted one where work comes together."),
    },
)
def command() -> None:
    """Every change that is handed in, as a patch: judged by the policy, and kept."""
