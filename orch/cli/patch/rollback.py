"""`orch patch rollback`."""

import click

from inbox_orch.shared.shell.blocks import Block, Sentence
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ..parts.base import chosen_run, open_scheduler, run_option
from ..parts.patches import tell_next


@click.command(
    "rollback",
    cls=Verb,
    agent=True,
    examples=(
        "orch patch rollback lexer/1/1",
        "orch patch rollback lexer/1/1 --reason 'it breaks the nightly build'",
    ),
)
@run_option
@click.argument("patch", metavar="PATCH")
@click.option("--reason", metavar="TEXT", help="Why; it stands in the commit and in the ledger.")
@click.pass_context
def command(context: click.Context, run_name: str | None, patch: str, reason: str | None) -> None:
    """Undo an accepted patch on the branch orch/RUN/integration, in memory: what it changed is
    taken out, and what came after it stays. Your checkout is not touched.

    That is a patch of its own, judged by the policy; it can be rolled back in its turn. Exit 4 when
    later work changed the same places, which are named, or when the patch is in no integration yet:
    `orch retry TASK --force` gives up what was only accepted.
    """
    scheduler = open_scheduler(context)
    run = chosen_run(scheduler, run_name)
    done = scheduler.patch_rollback(run, patch, reason=reason)
    text = f"{done.name} is undone on {done.branch} by {done.reverse_name}."
    values = (done.name, done.reverse_name, done.branch, done.tip, done.next)
    blocks: list[Block] = [Sentence(text, values)]
    if done.builds_on:
        names = ", ".join(done.builds_on)
        words = f"Built on it, and not integrated yet: {names}. Look at them before they come in."
        blocks.append(Sentence(words, ("builds_on", *done.builds_on)))
    shell_of(context).output.result(done.as_json(), *blocks)
    tell_next(context, scheduler, run, done.next)
