"""`orch attempt restore`."""

import click

from inbox_orch.shared.shell.blocks import Block, Sentence
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.base import open_scheduler, run_option


@click.command(
    "restore",
    cls=Verb,
    agent=True,
    examples=("orch attempt restore lexer/1", "orch attempt restore lexer/1 --into /tmp/lexer"),
)
@run_option
@click.argument("attempt", metavar="ATTEMPT")
@click.option("--into", metavar="DIR", help="A folder that is new or empty.")
@click.pass_context
def command(context: click.Context, run_name: str | None, attempt: str, into: str | None) -> None:
    """Bring back what clean-up has salvaged of an attempt, by its id, as KEY/N, or of the newest
    one of a task as KEY: every file byte for byte, executable bits and links.

    It goes into a plain folder, by default beside the run's worktrees; nothing is ever written
    over. To go on in git, `git worktree add DIR refs/orch/salvage/ID` checks the same out.
    """
    scheduler = open_scheduler(context)
    run, listed = scheduler.attempt_named(attempt, run_name)
    back = scheduler.attempt_restore(run, listed, into=into)
    text = f"{back.restored.files} files are in {back.folder}, {back.restored.changed} of them as"
    values = (listed.name, back.folder, back.restored.files, back.restored.changed)
    blocks: list[Block] = [Sentence(f"{text} they were salvaged.", values)]
    if back.restored.unfiltered is not None:
        blocks.append(
            Sentence(
                f"Filters failed, and the other files are without them: {back.restored.unfiltered}",
                ("unfiltered", back.restored.unfiltered),
            )
        )
    shell_of(context).output.result(back.as_json(), *blocks)
