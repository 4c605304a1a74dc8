"""`orch checkpoint show`."""

import click

from inbox_orch.shared.shell.blocks import Block, Facts, Table, harmless
from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...cleanup.checkpoints import MOST_FILES, Shown
from ..parts.base import open_scheduler, run_option, tell_of_last


@click.command(
    "show",
    cls=Verb,
    agent=True,
    examples=("orch checkpoint show lexer/1/2", "orch checkpoint show lexer/1/2 --diff"),
)
@run_option
@click.argument("checkpoint", metavar="ATTEMPT/N")
@click.option("--diff", is_flag=True, help="Print what it changed as a diff, and nothing else.")
@click.pass_context
def command(context: click.Context, run_name: str | None, checkpoint: str, diff: bool) -> None:
    """Show one checkpoint, and what it changed against the one before it; the first one against
    the base of the attempt."""
    scheduler = open_scheduler(context, looks=True)
    run, found = scheduler.checkpoint_named(checkpoint, run_name, shows=True)
    if run_name is None:
        tell_of_last(context, run)
    shown = scheduler.checkpoint_show(run, found, diff=diff)
    output = shell_of(context).output
    if shown.diff is None or output.as_json:
        output.result(shown.as_json(), *_blocks(shown))
        return
    output.text(harmless(shown.diff, lines=True))
    if not shown.diff:
        output.notice(f"{found.name} changes nothing against {_since(shown)}")


def _since(shown: Shown) -> str:
    return "the base of the attempt" if shown.since is None else shown.since.name


def _blocks(shown: Shown) -> list[Block]:
    found = shown.checkpoint.as_json()
    rows = (
        ("checkpoint", shown.checkpoint.name),
        ("made", found["made_at"]),
        ("what", found["title"]),
        ("commit", found["commit"]),
        ("head", found["head"]),
        ("branch", found["branch"]),
        ("in progress", found["doing"]),
        ("changed since", _since(shown)),
    )
    files = tuple(
        (each["status"], each["path"], each["added"], each["removed"])
        for each in shown.as_json()["items"]
    )
    headings = ("", "FILE", "ADDED", "REMOVED")
    blocks: list[Block] = [Facts(tuple(row for row in rows if row[1] is not None))]
    blocks.append(Table(headings, files, "no file changed", (0, 2, 3), named=(1,)))
    if len(shown.files) > MOST_FILES:
        blocks.append(Facts((("files", len(shown.files)),)))
    return blocks
