"""`orch checkpoint list`."""

import click

from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...cleanup.checkpoints import Checkpoint, none_yet
from ...cleanup.restore import Listed
from ..parts.base import open_scheduler, run_option, shown_run, tell_of_last


@click.command(
    "list",
    cls=Verb,
    agent=True,
    examples=("orch checkpoint list", "orch checkpoint list lexer/1 --json"),
)
@run_option
@click.argument("attempt", required=False, metavar="[ATTEMPT]")
@click.pass_context
def command(context: click.Context, run_name: str | None, attempt: str | None) -> None:
    """List the checkpoints of a run, or of an attempt, oldest first: of an attempt by its id, as
    KEY/N, or of the newest one of a task as KEY.

    Those of a blueprint's attempts are made by themselves, at the start and after each stage; of
    any other attempt there are those that `orch checkpoint make` has kept.
    """
    scheduler = open_scheduler(context, looks=True)
    if attempt is None:
        run, listed = shown_run(context, scheduler, run_name), None
    else:
        run, listed = scheduler.attempt_named(attempt, run_name, shows=True)
        if run_name is None:
            tell_of_last(context, run)
    found = scheduler.checkpoint_list(run, listed)
    data = {"items": [each.as_json() for each in found], "truncated": False, "next_cursor": None}
    shell_of(context).output.result(data, _table(found, listed))


def _table(found: list[Checkpoint], listed: Listed | None) -> Table:
    rows = tuple(
        (each.name, each.as_json()["made_at"], each.kept.title, each.commit[:12]) for each in found
    )
    empty = "no checkpoints yet" if listed is None else f"no checkpoints: {none_yet(listed)}"
    return Table(("CHECKPOINT", "MADE", "WHAT", "COMMIT"), rows, empty, (0, 1), (2,))
