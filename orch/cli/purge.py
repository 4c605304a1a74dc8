"""`orch purge`."""

import os
import sys

import click

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import counted
from inbox_orch.shared.shell.blocks import Block, Sentence, Table
from inbox_orch.shared.shell.commandline import PATH, Verb, shell_of
from inbox_orch.shared.shell.inputs import read_input

from ..purge.found import FOUND, NOT_REACHED, Place, Purged
from .parts.base import open_scheduler

_MOST_BYTES = 1024 * 1024


@click.command(
    "purge",
    cls=Verb,
    agent=True,
    examples=(
        "orch purge --from ../leaked.txt",
        "orch purge --env LEAKED_TOKEN --yes --reason 'printed by a test'",
        "pass show old-token | orch purge --from - --yes --json",
    ),
)
@click.option(
    "--from",
    "files",
    type=PATH,
    multiple=True,
    metavar="FILE|-",
    help="A file, or standard input, with one value on each line; repeatable.",
)
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME",
    help="An environment variable whose whole value is one, lines and all; repeatable.",
)
@click.option("--yes", is_flag=True, help="Take it out; without, it is only looked for.")
@click.option("--reason", metavar="TEXT", help="Why; it stands in the event.")
@click.pass_context
def command(
    context: click.Context,
    files: tuple[str, ...],
    variables: tuple[str, ...],
    yes: bool,
    reason: str | None,
) -> None:
    """Take a secret that got in out of all that is stored. Revoke it first: whoever has seen it
    has it still.

    Without --yes nothing is changed: it tells where the value stands, and what would become of it.
    With --yes ***REMOVED*** stands in its place in the rows of the database, in artifacts and kept
    files, and in the commits at refs of ours and branches of ended attempts; the database file and
    its log are written anew. No branch, tag or worktree of yours is touched.

    The value is never an argument, where shells and process lists keep it. It has at least 8 bytes,
    and is found as it is and as JSON writes it. It cannot be undone; doing it again is safe.
    Exit 11: all that could be was taken out, and some of it stands where a purge does not reach.
    """
    values = _values(files, variables)
    scheduler = open_scheduler(context, looks=not yes)
    done = scheduler.purge(values, yes=yes, reason=reason)
    output = shell_of(context).output
    if done.done and done.left:
        output.outcome(_left(done), *_blocks(done))
    else:
        output.result(done.as_json(), *_blocks(done))


def _values(files: tuple[str, ...], variables: tuple[str, ...]) -> list[str]:
    if not files and not variables:
        raise usage(
            "no value was given",
            hint="--from FILE has one on each line, --from - reads them, --env NAME names one",
        )
    found: list[str] = []
    for path in files:
        found += _lines(path)
    for name in variables:
        if name not in os.environ:
            # Without the name, which may be the value by mistake.
            raise usage("--env names no variable that is set", hint="--env NAME, without the `$`")
        found.append(os.fsencode(os.environ[name]).decode("utf-8", "surrogateescape"))
    return found


def _lines(path: str) -> list[str]:
    """What stands in a file, line by line; never in an error."""
    if path == "-" and sys.stdin is not None and sys.stdin.isatty():
        raise usage("a value that is typed is shown", hint="`read -rs VALUE; export VALUE`, --env")
    content = read_input(path, _MOST_BYTES)
    if len(content) > _MOST_BYTES:
        raise usage(f"{path} has more than {_MOST_BYTES} bytes", hint="give the values alone")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise usage(f"{path} is not UTF-8: byte {error.start}") from error
    lines = (line.removesuffix("\r") for line in text.split("\n"))
    return [line for line in lines if line.strip()]


def _left(done: Purged) -> InboxOrchError:
    kinds = ", ".join(dict.fromkeys(place.kind.replace("_", " ") for place in done.left))
    return InboxOrchError(
        "degraded",
        f"the value stands still where a purge does not reach: {kinds}",
        hint=" && ".join(done.commands) or done.left[0].reason,
        data=done.as_json(),
    )


def _blocks(done: Purged) -> list[Block]:
    rows = tuple((_kind(p), p.name, p.number, p.action, p.reason or "") for p in done.places)
    headings = ("WHAT", "WHERE", "COUNT", "ACTION", "WHY")
    blocks: list[Block] = [Table(headings, rows, "found nowhere", (0, 2, 3), (4,), named=(1,))]
    for place in done.places:
        blocks += [Sentence(f"{_kind(place)}: {i}", (place.kind, "item", i)) for i in place.items]
    if not done.done and any(place.action == FOUND for place in done.places):
        text = "Nothing was changed: --yes takes it out. Revoke it first."
        blocks.append(Sentence(text, ("changed", 0)))
    for words in done.commands:
        text = f"Git keeps what nothing leads to, until it is told to collect it: {words}"
        blocks.append(Sentence(text, ("command", words)))
    if done.done:
        told = counted(done.values, "value")
        text = f"No purge reaches, for {told}: {'; '.join(NOT_REACHED.values())}."
        blocks.append(Sentence(text, ("not_reached", *NOT_REACHED)))
    return blocks


def _kind(place: Place) -> str:
    return place.kind.replace("_", " ")
