"""`orch council group`: settling what the tally could not know."""

import click

from inbox_orch.shared.shell.commandline import Program


@click.command(
    "group",
    cls=Program,
    commands_in={
        "merge": (f"{__name__}.merge", "Two items are one recommendation."),
        "split": (f"{__name__}.split", "Two items are not one."),
        "dismiss": (f"{__name__}.dismiss", "Mark a group as dismissed."),
        "note": (f"{__name__}.note", "Add a note to a group."),
    },
)
def command() -> None:
    """Settle what the tally could not know. Only ever added to, and replayed by every tally.

    Moves items between groups; it never adds a vote, and hides nothing.
    """
