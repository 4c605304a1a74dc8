"""`orch skill`: the manual for agents."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "skill",
    cls=Program,
    commands_in={
        "print": (f"{__name__}.print", "The manual for agents, as text."),
        "install": (f"{__name__}.install", "The same as a file where agents look."),
    },
    examples=("orch skill print", "orch skill install --dir .claude/skills"),
)
def command() -> None:
    """The manual of `orch` for agents, in the SKILL.md format."""
