"""`orch blueprint`: what happens inside an attempt, stage by stage."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "blueprint",
    cls=Program,
    commands_in={
        "list": (f"{__name__}.list", "The blueprints that can be named here."),
        "show": (f"{__name__}.show", "One blueprint: its stages and its goals."),
        "validate": (f"{__name__}.validate", "Whether a file can be gone by."),
        "graph": (f"{__name__}.graph", "Draw where its stages lead."),
        "explain": (f"{__name__}.explain", "Why an attempt went the way it went."),
    },
)
def command() -> None:
    """Stages of work that is checked, mended and reviewed inside one attempt."""
