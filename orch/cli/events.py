"""`orch events`."""

import contextlib

import click

from inbox_orch.shared.clock import rfc3339
from inbox_orch.shared.errors import InboxOrchError
from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import Verb, shell_of
from inbox_orch.shared.shell.output import Output
from inbox_orch.shared.store.events import Event

from ..leader.follow import events_of, keys_of
from .parts.base import WAIT, one_run, open_scheduler, shown_run


@click.command(
    "events",
    cls=Verb,
    agent=True,
    examples=(
        "orch events",
        "orch events --follow --json",
        "orch events --after 120 --kind task_succeeded --kind task_failed",
    ),
)
@one_run
@click.option("--after", metavar="N", help="After this event id; default: from the first.")
@click.option("--kind", "kinds", multiple=True, metavar="KIND", help="Only these; repeatable.")
@click.option("--follow", is_flag=True, help="Go on with what comes, until the run is closed.")
@click.option(
    "--wait",
    "wait_seconds",
    type=WAIT,
    default="inf",
    metavar="SECONDS",
    help="Follow for so long.  [default: inf]",
)
@click.pass_context
def command(
    context: click.Context,
    run_name: str | None,
    after: str | None,
    kinds: tuple[str, ...],
    follow: bool,
    wait_seconds: float,
) -> None:
    """Print what has happened in a run, an event a line, oldest first. No cursor moves.

    In a pipe: id, time, kind, task, who, why, tab-separated. --json prints JSON Lines; the last has
    the type `outcome` and the cursor to go on from with --after.
    """
    scheduler = open_scheduler(context, looks=True, perhaps_alone=not follow)
    run, desk = shown_run(context, scheduler, run_name), scheduler.desk
    output, keys, cursor = shell_of(context).output, keys_of(desk, run), after or "0"
    seconds = wait_seconds if follow else 0
    try:
        found = events_of(desk, run, after=after, kinds=kinds, seconds=seconds)
        with contextlib.closing(found) as batches:
            for seq, batch in batches:
                if any(event.task_id not in keys for event in batch):
                    keys = keys_of(desk, run)
                for event in batch:
                    _tell(output, event, keys.get(str(event.task_id)))
                cursor = str(seq)
    except InboxOrchError as error:
        if not output.as_json or not output.answered:
            raise
        output.last_line(None, error)
        output.complain(error.message)
        return
    if output.as_json:
        output.last_line({"run": run.as_json(), "next_cursor": cursor, **output.also}, None)


def _tell(output: Output, event: Event, key: str | None) -> None:
    if output.as_json:
        output.line({"type": "event", **event.as_json(), "key": key})
        return
    at, why = str(rfc3339(event.at)), event.data.get("reason")
    words = (at[11:19], event.kind.replace("_", " ", 1), key, why)
    text = "  ".join(str(word) for word in words if word)
    output.show(Sentence(text, (event.seq, at, event.kind, key, event.actor, why)))
