"""`orch patch release`."""

import click

from inbox_orch.shared.shell.commandline import TEXT, Verb

from ...leader.patches import release
from ..parts.patches import patch_argument, say


@click.command(
    "release",
    cls=Verb,
    agent=True,
    examples=("orch patch release parser/1/2 --rule max_lines --reason 'generated code'",),
)
@patch_argument
@click.option("--rule", required=True, metavar="RULE", help="The rule that is not to count.")
@click.option(
    "--reason", required=True, type=TEXT, metavar="TEXT", help="Why; it is kept with the patch."
)
@click.pass_context
def command(
    context: click.Context, run_name: str | None, patch: str, rule: str, reason: str
) -> None:
    """Let a refused patch be handed in once more though it breaks a rule.

    It counts for this rule, these paths and this very tree, and is used up by one patch, which
    then stands instead of the refused one: `orch adopt TASK` takes that in where the attempt has
    ended. Once for each rule that denies it. Nothing releases what holds without any policy.
    """
    say(
        context,
        (run_name, patch),
        "Released",
        lambda desk, run, found: release(desk, run, found, rule, reason),
    )
