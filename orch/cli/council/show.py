"""`orch council show`."""

import click

from inbox_orch.shared.shell.blocks import Block, Table, When
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...council.sit import Sat
from ..parts.council_base import chosen_council, council_blocks, one_council


@click.command("show", cls=Verb, agent=True, examples=("orch council show --json",))
@one_council
@click.pass_context
def command(context: click.Context, council_name: str | None) -> None:
    """Print how a council stands: seats, rounds, revisions of its tally, stored reports."""
    scheduler, run = chosen_council(context, council_name, shows=True)
    sat = scheduler.show_council(run)
    now_ms = scheduler.database.now().wall_ms
    shell_of(context).output.result(sat.as_json(), *_blocks(sat, now_ms))


def _blocks(sat: Sat, now_ms: int) -> list[Block]:
    blocks = council_blocks(sat.view)
    if sat.revisions:
        rows = tuple((number, When(at, now_ms), cause) for number, cause, at in sat.revisions)
        blocks.append(Table(("REVISION", "SINCE", "CAUSE"), rows))
    if sat.reports:
        kept = tuple((r.name, r.revision, r.bytes, r.thread_id, r.sha256) for r in sat.reports)
        blocks.append(Table(("REPORT", "REVISION", "BYTES", "THREAD", "SHA256"), kept))
    return blocks
