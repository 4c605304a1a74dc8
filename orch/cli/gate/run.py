"""`orch gate run`."""

import os
from collections.abc import Sequence
from typing import Any

import click

from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Block, Sentence
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...gates.at_hand import at_hand, chosen, run_gates
from ...gates.results import GateResult
from ...gates.telling import summary, told
from ..parts.base import open_scheduler


@click.command(
    "run", cls=Verb, agent=True, examples=("orch gate run", "orch gate run lint tests --json")
)
@click.argument("names", nargs=-1, metavar="[GATE]...")
@click.pass_context
def command(context: click.Context, names: tuple[str, ...]) -> None:
    """Run the gates of the attempt in whose worktree you are, on what lies there now, committed or
    not: all of them, then the checks of the task (check-1, …); or those that are named.

    Prints how each stands, and only the failures that count: not those that the base has, too.
    What has failed is run once more. Needs no lease, and changes nothing but what the gates
    themselves write. Exit 11 when something has to be mended.
    """
    scheduler = open_scheduler(context, looks=True)
    here = chosen(at_hand(scheduler.desk, os.getcwd()), names)
    results = run_gates(scheduler.desk, here)
    data = {
        "run": here.run.name,
        "task": here.task.key,
        "attempt": here.name,
        "gates": [result.as_json() for result in results],
    }
    blocks: list[Block] = [Sentence(line) for line in told(results)]
    output = shell_of(context).output
    stops = summary(results)
    if stops is None:
        output.result(data, *blocks)
        return
    output.outcome(_failed(results, stops, data), *blocks)


def _failed(results: Sequence[GateResult], stops: str, data: dict[str, Any]) -> InboxOrchError:
    mended = any(result.stops and result.state == "failed" for result in results)
    return InboxOrchError(
        "gates_failed",
        stops,
        hint="mend what is named above, and run it again"
        if mended
        else "this is not for you to mend: say so in what you hand in",
        data=data,
    )
