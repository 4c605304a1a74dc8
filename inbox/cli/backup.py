"""`inbox backup`."""

from inbox_orch.shared.blocks import Sentence
from inbox_orch.shared.declaring import PATH, Context, argument, option, shell_of, verb

from .base import open_bus


@verb(
    "backup",
    examples=("inbox backup ~/bus-monday.db", "inbox backup --artifacts /mnt/backup/project.db"),
)
@argument("file", type=PATH)
@option(
    "--artifacts",
    is_flag=True,
    help="Copy the attached files, too: to FILE.artifacts, or `artifacts` beside a bus.db.",
)
@option("--force", is_flag=True, help="Replace FILE if it is there.")
def command(context: Context, file: str, artifacts: bool, force: bool) -> None:
    """Copy the live database into FILE, whole or not at all, while others go on.

    Look into the copy with `--db FILE`. Never use `cp`: the newest changes of a live database
    lie in a file beside it.
    """
    output = shell_of(context).output
    made = open_bus(context).backup(file, force=force, artifacts=artifacts)
    text = f"Wrote {made.bytes} bytes to {made.path}, up to event {made.newest_event}"
    if made.artifacts is not None:
        text += f", with {made.artifacts} attached files in {made.artifact_folder}"
    if made.missing:
        output.notice(f"{made.missing} attached files were not there to be copied")
    output.result(
        made.as_json(), Sentence(text, (made.path, made.bytes, made.sha256, made.newest_event))
    )
