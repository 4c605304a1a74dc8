"""`inbox backup`."""

import click

from inbox_orch.shared.blocks import Sentence
from inbox_orch.shared.commandline import PATH, Verb, shell_of

from .base import open_bus


@click.command(
    "backup",
    cls=Verb,
    examples=("inbox backup ~/bus-monday.db", "inbox backup --artifacts /mnt/backup/project.db"),
)
@click.argument("file", type=PATH)
@click.option(
    "--artifacts",
    is_flag=True,
    help="Copy the attached files, too: to FILE.artifacts, or `artifacts` beside a bus.db.",
)
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@click.pass_context
def command(context: click.Context, file: str, artifacts: bool, force: bool) -> None:
    """Copy the live database into FILE, whole or not at all, while others go on.

    Look into the copy with `--db FILE`. Never use `cp`: the newest changes of a live database
    lie in a file beside it.
    """
    output = shell_of(context).output
    made = open_bus(context, looks=True).backup(file, force=force, artifacts=artifacts)
    text = f"Wrote {made.bytes} bytes to {made.path}, up to event {made.newest_event}"
    if made.artifacts is not None:
        text += f", with {made.artifacts} attached files in {made.artifact_folder}"
    if made.missing:
        output.notice(f"{made.missing} attached files were not there to be copied")
    output.result(
        made.as_json(), Sentence(text, (made.path, made.bytes, made.sha256, made.newest_event))
    )
