"""`orch council report`."""

import io
import os

import click

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.shell.blocks import Block, Sentence
from inbox_orch.shared.shell.commandline import PATH, Choice, Verb, shell_of
from inbox_orch.shared.shell.output import Output
from inbox_orch.shared.shell.writing import write_file

from ...council.count import rendered, shortfall
from ...council.stored import FORMATS
from ...patches.hiding import hidden_bytes
from ..parts.council_base import chosen_council, one_council
from ..parts.council_report import kept_report, shown_report, tell_report
from .tally import REVISION


@click.command(
    "report",
    cls=Verb,
    agent=True,
    examples=(
        "orch council report",
        "orch council report --output report.md",
        "orch council report --format madr --output docs/decisions/0007-store.md",
    ),
)
@one_council
@click.option(
    "--format",
    "format_name",
    type=Choice(FORMATS),
    default="md",
    show_default=True,
    help="For people, for programs, or as a decision record (MADR).",
)
@click.option("--output", "target", type=PATH, metavar="FILE|-", help="Write it there.")
@click.option("--revision", type=REVISION, metavar="N", help="An earlier revision of the tally.")
@click.pass_context
def command(
    context: click.Context,
    council_name: str | None,
    format_name: str,
    target: str | None,
    revision: int | None,
) -> None:
    """Print the report, and store it as an artifact of the run once the round is closed.

    The replies stand in it word for word. Exit codes as for `tally`.
    """
    scheduler, run = chosen_council(context, council_name, shows=True)
    if target not in (None, "-") and scheduler.database.layout.holds(str(target)):
        raise usage(f"{target} belongs to a database", hint="name another file")
    counted = scheduler.tally_of(run, revision=revision)
    content = hidden_bytes(rendered(counted, format_name))
    artifact = kept_report(scheduler, counted, format_name, content)
    path = None
    if target not in (None, "-"):
        path = os.path.abspath(str(target))
        write_file(path, io.BytesIO(content))
    data = {
        "council": counted.view.as_json(),
        "format": format_name,
        "text": content.decode(),
        "artifact": artifact,
        "path": path,
        "stale": counted.stale,
    }
    error = shortfall(counted)
    if target == "-":
        _stream(shell_of(context).output, content, error)
        return
    shown: Block = Sentence(f"Wrote {len(content)} bytes to {path}", (path,))
    if path is None:
        shown = shown_report(format_name, content.decode())
    tell_report(shell_of(context).output, data, error, shown)


def _stream(output: Output, content: bytes, error: InboxOrchError | None) -> None:
    output.raw(content)
    if error is not None:
        output.error(error)
        output.exit_code = error.exit_code
