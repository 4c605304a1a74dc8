"""`orch patch export`."""

import click

from inbox_orch.shared.shell.commandline import Verb, shell_of

from ...patches.hiding import stretches
from ...views import patches as views
from ...views.patch_text import text_of
from ..parts.base import open_scheduler, run_option


@click.command(
    "export",
    cls=Verb,
    agent=True,
    examples=("orch patch export parser/1/2 > fix.diff",),
)
@run_option
@click.argument("patch", metavar="PATCH")
@click.pass_context
def command(context: click.Context, run_name: str | None, patch: str) -> None:
    """Write out a patch: the bytes that were handed in where it came as text, else as a diff that
    `git apply` and `orch patch submit` take, binary files and all. Nothing is masked: a key
    that is in it is printed.
    """
    scheduler = open_scheduler(context, looks=True)
    run, found = views.named(scheduler.desk, patch, run_name, shows=True)
    content, raw = text_of(scheduler.desk, run, found.patch)
    output = shell_of(context).output
    output.bare()  # it is to be handed in again
    if output.as_json:
        text = content.decode("utf-8", "surrogateescape")
        output.result({"patch": found.as_json(), "raw": raw, "text": text})
        return
    if stretches(content):
        output.notice("what looks like a key is in it, as it was handed in: keep it to yourself")
    output.raw(content)
