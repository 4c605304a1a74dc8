"""Texts that a command hands out as they are: to standard output, or into a file."""

import io
import os
from collections.abc import Mapping
from typing import Any

import click

from inbox_orch.shared.blocks import Sentence
from inbox_orch.shared.commandline import PATH
from inbox_orch.shared.errors import usage
from inbox_orch.shared.output import Output
from inbox_orch.shared.writing import write_file

from ..services.scheduler import Scheduler
from .base import Command


def target_option(command: Command) -> Command:
    """`--output FILE|-`."""
    return click.option(
        "--output", "target", type=PATH, metavar="FILE|-", help="Where to write it."
    )(command)


def hand_out(
    scheduler: Scheduler,
    output: Output,
    text: str,
    data: Mapping[str, Any],
    target: str | None,
) -> None:
    """Write `text` into the file `target`, replacing one that is there; to standard output for
    `-`, and without a target, where --json gives `data` instead.

    Errors: `usage` (a file that cannot be written, or of a database), `disk_full`.
    """
    if target == "-" or (target is None and not output.as_json):
        output.text(text)
        return
    path = None
    if target is not None:
        path = os.path.abspath(target)
        if scheduler.database.layout.holds(path):
            raise usage(f"{target} belongs to a database", hint="name another file")
        write_file(path, io.BytesIO(text.encode("utf-8", "backslashreplace")))
    said = Sentence(f"Wrote {path}", (path,))
    output.result({**data, "path": path}, said)
