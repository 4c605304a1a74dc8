"""`orch council wait`."""

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...runs import limits
from ..parts.base import WAIT, lead_on
from ..parts.council_base import chosen_council, council_blocks, one_council


@click.command(
    "wait",
    cls=Verb,
    agent=True,
    examples=("orch council wait --json", "orch council wait --wait inf"),
)
@one_council
@click.option(
    "--wait",
    "wait_seconds",
    type=WAIT,
    default=limits.DEFAULT_WAIT_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long to wait; 0 looks once, `inf` blocks.",
)
@click.pass_context
def command(context: click.Context, council_name: str | None, wait_seconds: float) -> None:
    """Block until every seat is final, or the deadline of the round has come.

    A reply that cannot be read is sent back once, with the reasons. Exit 8: not yet, call again.
    Exit 11: the round is closed, and a seat is missing (`degraded`) or too many (`no_quorum`).
    """
    scheduler, run = chosen_council(context, council_name)
    sat = scheduler.wait_for_council(run, wait_seconds=wait_seconds)
    output = shell_of(context).output
    if sat.failure is not None:
        output.outcome(sat.failure, *council_blocks(sat.view))
    else:
        output.result(sat.as_json(), *council_blocks(sat.view))
    lead_on(context, scheduler, run)
