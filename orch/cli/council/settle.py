"""What `group …` and `apply` have in common: recording, and saying what it came to."""

from collections.abc import Sequence

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.blocks import Sentence, Table
from inbox_orch.shared.shell.commandline import shell_of

from ...council.settling import Settled
from ..parts.council_base import chosen_council


def settle(
    context: click.Context,
    council_name: str | None,
    wanted: Sequence[Settled],
    of_council: str | None = None,
) -> None:
    """Record it, and print the groups that it touched. `of_council` is the id of the council that
    it was decided for; error `usage` when that is another one."""
    scheduler, run = chosen_council(context, council_name)
    if of_council is not None and of_council != run.id:
        raise usage(
            f"the file was made for council {of_council}, not for {run.name}",
            hint="`orch council suggest --json` makes one",
        )
    data = scheduler.settle_groups(run, wanted)
    number = len(data["overrides"])
    text = f"Recorded {number} in {run.name}" if number else f"{run.name} has that already"
    rows = tuple(
        (group["bucket"], group["title"], group["raised_by"], group["id"])
        for group in data["groups"]
    )
    shell_of(context).output.result(
        data,
        Sentence(text, ("recorded", number)),
        Table(("BUCKET", "TITLE", "RAISED BY", "ITEM"), rows, fixed=(0,), folded=(1,)),
    )
