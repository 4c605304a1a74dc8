"""`orch gate list`."""

import shlex

import click

from inbox_orch.shared.shell.blocks import Table
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...gates.listed import Listed, gate_list
from ..parts.base import one_run, open_scheduler, shown_run


@click.command("list", cls=Verb, agent=True, examples=("orch gate list", "orch gate list --json"))
@one_run
@click.pass_context
def command(context: click.Context, run_name: str | None) -> None:
    """List the gates of a run in their order: those of its config, and those that were found in
    its repository, with how each stood when it was tried last on a base."""
    scheduler = open_scheduler(context, looks=True)
    run = shown_run(context, scheduler, run_name)
    found = gate_list(scheduler.desk, run)
    data = {
        "run": run.name,
        "items": [each.as_json() for each in found],
        "truncated": False,
        "next_cursor": None,
    }
    rows = tuple(
        (each.gate.name, each.gate.reads, _what(each), _when(each), each.sentence) for each in found
    )
    headings = ("GATE", "READS", "COMMAND", "IF CHANGED", "AT THE BASE")
    empty = "no gates; `gates:` in the config of a run says which"
    table = Table(headings, rows, empty, (0, 1), (2, 4), (3, 4))
    shell_of(context).output.result(data, table)


def _what(each: Listed) -> str:
    run = each.gate.run
    if not run:
        return "(judged without a command)"
    return run if isinstance(run, str) else shlex.join(run)


def _when(each: Listed) -> str | None:
    return " ".join(each.gate.paths) or None
