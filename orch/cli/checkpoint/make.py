"""`orch checkpoint make`."""

import click

from inbox_orch.shared.shell.blocks import Sentence
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.base import open_scheduler, run_option


@click.command(
    "make",
    cls=Verb,
    agent=True,
    examples=(
        "orch checkpoint make lexer",
        "orch checkpoint make lexer/1 --note 'before I try it with regular expressions'",
    ),
)
@run_option
@click.argument("attempt", metavar="ATTEMPT")
@click.option("--note", metavar="TEXT", help="What it is, in a line.")
@click.pass_context
def command(context: click.Context, run_name: str | None, attempt: str, note: str | None) -> None:
    """Keep what lies in the worktree of an attempt now, by its id, as KEY/N, or of the newest one
    of a task as KEY: files that are tracked and files that are not, HEAD, and the index.

    Nothing is touched, and a worker may go on meanwhile; ignored files and those of set-up are
    left alone. Where nothing has changed since the last checkpoint, it is that one.
    """
    scheduler = open_scheduler(context)
    run, listed = scheduler.attempt_named(attempt, run_name)
    made = scheduler.checkpoint_make(run, listed, note)
    output = shell_of(context).output
    name = made.checkpoint.name
    text = f"{name} keeps what lies there." if not made.same else f"{name} has the same already."
    output.result(made.as_json(), Sentence(text, (name, made.checkpoint.commit)))
    if made.at_work and not output.as_json:
        output.notice(
            f"{listed.name} is being worked at: a change may have been kept in its middle"
        )
