"""`orch conflicts`."""

import click

from inbox_orch.shared.ids import counted
from inbox_orch.shared.shell.blocks import Block, Sentence, Table
from inbox_orch.shared.shell.commandline import Number, Verb, shell_of

from ..integration.pairs import Conflicts, Pair
from ..runs.limits import DEFAULT_PAIRS, MOST_PAIRS
from .parts.base import one_run, open_scheduler, shown_run


@click.command(
    "conflicts", cls=Verb, agent=True, examples=("orch conflicts", "orch conflicts --json")
)
@one_run
@click.option(
    "--pairs",
    type=Number(1, MOST_PAIRS, whole=True),
    default=DEFAULT_PAIRS,
    show_default=True,
    metavar="N",
    help="Compare at most so many pairs.",
)
@click.pass_context
def command(context: click.Context, run_name: str | None, pairs: int) -> None:
    """Say which attempts will not merge with each other, or with what was integrated, before
    anyone has finished; nothing is changed.

    Live attempts are taken as they have committed. Of what they have not committed only the names
    are seen: files that two have changed are listed.
    """
    scheduler = open_scheduler(context, looks=True)
    found = scheduler.conflicts(shown_run(context, scheduler, run_name), most_pairs=pairs)
    shell_of(context).output.result(found.as_json(), *_blocks(found))


def _blocks(found: Conflicts) -> list[Block]:
    rows = tuple(
        (pair.one.name, "integration" if pair.other is None else pair.other.name, _note(pair))
        for pair in found.items
    )
    left = found.pairs - found.compared
    number = len(found.sides)
    text = f"{counted(number, 'attempt')}, {counted(found.compared, 'pair')} compared"
    if left:
        text += f", {left} not: --pairs N compares more"
    values = ("compared", len(found.sides), found.compared, found.pairs)
    return [
        Sentence(text, values),
        Table(("ONE", "OTHER", "FILES"), rows, "all that is committed merges", (0, 1), (2,)),
    ]


def _note(pair: Pair) -> str:
    parts = []
    if pair.paths:
        parts.append(f"conflict in {', '.join(pair.paths)}")
    if pair.overlap:
        parts.append(f"both have changed, uncommitted: {', '.join(pair.overlap)}")
    return "; ".join(parts)
