"""Texts and pictures that a command hands out: to standard output, or into a file."""

import io
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import click

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.blocks import Lines, Sentence, plain
from inbox_orch.shared.shell.commandline import PATH
from inbox_orch.shared.shell.output import Output
from inbox_orch.shared.shell.writing import write_file

from ...leader.scheduler import Scheduler
from .base import Command


def target_option(command: Command) -> Command:
    """`--output FILE|-`."""
    return click.option(
        "--output",
        "target",
        type=PATH,
        metavar="FILE|-",
        help="Where to write it; a file that is there is replaced.",
    )(command)


def rows_of(
    lines: Iterable[Sequence[tuple[str, str | None]]],
) -> tuple[tuple[tuple[str, str | None], ...], ...]:
    """Lines of pieces as `Lines` takes them."""
    return tuple(tuple(line) for line in lines)


def hand_out(
    scheduler: Scheduler,
    output: Output,
    content: str | Lines,
    data: Mapping[str, Any],
    target: str | None,
    form: str,
) -> None:
    """Write a text or drawn lines into the file `target`, replacing one that is there; to standard
    output for `-` and without a target, where --json gives `data` with the text in it instead.

    Errors: `usage` (a file that cannot be written, or of a database), `disk_full`.
    """
    text = content if isinstance(content, str) else plain(content)
    if target == "-":
        output.text(text)
    elif target is None and not output.as_json:
        if isinstance(content, str):
            output.text(content)
        else:
            output.result({}, content)
    elif target is None:
        output.result({**data, "format": form, "text": text, "path": None})
    else:
        path = os.path.abspath(target)
        if scheduler.database.layout.holds(path):
            raise usage(f"{target} belongs to a database", hint="name another file")
        shown = output.as_shown(text)
        write_file(path, io.BytesIO(shown.encode("utf-8", "backslashreplace")))
        whole = {**data, "format": form, "text": None, "path": path}
        output.result(whole, Sentence(f"Wrote {path}", (path,)))
