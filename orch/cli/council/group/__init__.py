"""`orch council group`: settling what the tally could not know."""

import click

from inbox_orch.shared.shell.commandline import Program

_HERE = "inbox_orch.orch.cli"


@click.command(
    "group",
    cls=Program,
    commands_in={
        "merge": (f"{_HERE}.council_group_merge", "Two items are one recommendation."),
        "split": (f"{_HERE}.council_group_split", "Two items are not one."),
        "dismiss": (f"{_HERE}.council_group_dismiss", "Mark a group as dismissed."),
        "note": (f"{_HERE}.council_group_note", "Add a note to a group."),
    },
)
def command() -> None:
    """Settle what the tally could not know. Only ever added to, and replayed by every tally.

    Moves items between groups; it never adds a vote, and hides nothing.
    """
