"""`orch diff`."""

import codecs

import click

from inbox_orch.shared.shell.blocks import harmless
from inbox_orch.shared.shell.commandline import Verb, shell_of
from inbox_orch.shared.shell.output import Output

from ..views.changes import Changes, changes
from .parts.base import open_scheduler, run_option, tell_of_last


@click.command(
    "diff",
    cls=Verb,
    agent=True,
    examples=("orch diff lexer", "orch diff lexer --stat", "orch diff lexer/1 --json"),
)
@run_option
@click.argument("task", metavar="TASK|ATTEMPT")
@click.option("--stat", is_flag=True, help="Only which files, and how much of each.")
@click.pass_context
def command(context: click.Context, run_name: str | None, task: str, stat: bool) -> None:
    """Print what a task's work changes against its base, as git prints it; without a pager.

    Of a task that is its accepted attempt, else the newest; KEY/N or an id names another. What is
    not accepted is shown as it stands in its worktree, committed or not; new files that git does
    not know of are named on stderr. --json has the files with their numbers of lines.
    """
    scheduler = open_scheduler(context, looks=True)
    run, found = changes(scheduler.desk, task, run_name)
    if run_name is None and task.partition("/")[0] == found.listed.key:
        tell_of_last(context, run)
    output = shell_of(context).output
    if output.as_json:
        output.result(found.as_json())
        return
    _print(output, found, stat=stat)


def _print(output: Output, found: Changes, *, stat: bool) -> None:
    """Git's bytes in a pipe; on a terminal without what would drive it."""
    written = 0
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def hand_on(piece: bytes) -> None:
        nonlocal written
        written += len(piece)
        if output.terminal:
            output.text(harmless(decoder.decode(piece), lines=True))
        else:
            output.raw(piece)

    found.write(hand_on, stat=stat)
    for each in found.patches:
        if each.why:
            output.notice(f"patch {each.line}")
    if not written:
        output.notice(f"{found.listed.name} changes nothing that git knows of")
    if found.untracked:
        named = ", ".join(found.untracked[:20])
        more = f", and {len(found.untracked) - 20} more" if len(found.untracked) > 20 else ""
        output.notice(f"not known to git yet, and not shown: {named}{more}")
