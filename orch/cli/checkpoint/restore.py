"""`orch checkpoint restore`."""

import click

from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.base import open_scheduler, run_option


@click.command(
    "restore",
    cls=Verb,
    agent=True,
    examples=(
        "orch checkpoint restore lexer/1/2",
        "orch checkpoint restore lexer/1/2 --into /tmp/lexer",
    ),
)
@run_option
@click.argument("checkpoint", metavar="ATTEMPT/N")
@click.option("--into", metavar="DIR", help="Write the files to a folder that is new or empty.")
@click.pass_context
def command(
    context: click.Context, run_name: str | None, checkpoint: str, into: str | None
) -> None:
    """Let the worktree of an attempt be as it was: files byte for byte, index, HEAD, and its
    branch. What lies there now is kept as a checkpoint before, so that nothing is lost.

    Ignored files and those of set-up stay as they are. Refused (exit 9) while a worker or a leader
    may be at it; with --into the files are written elsewhere, and that is always possible. What
    was accepted stays accepted.
    """
    scheduler = open_scheduler(context)
    run, found = scheduler.checkpoint_named(checkpoint, run_name)
    output = shell_of(context).output
    if into is not None:
        there = scheduler.checkpoint_into(run, found, into)
        text = f"{there.files} files of {found.name} are in {there.folder}."
        values = (found.name, there.folder, there.files)
        output.result(there.as_json(), Sentence(text, values))
        return
    done = scheduler.checkpoint_restore(run, found)
    attempt, before = found.listed.name, done.before.name
    text = f"{attempt} is as in {found.name} again; how it was before is {before}."
    output.result(done.as_json(), Sentence(text, (found.name, before)))
