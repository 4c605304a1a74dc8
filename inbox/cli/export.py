"""`inbox export`."""

from inbox_orch.shared.declaring import Context, shell_of, verb

from .base import open_bus


@verb(
    "export",
    examples=("inbox export > bus.jsonl", "inbox export | jq 'select(.type == \"message\")'"),
)
def command(context: Context) -> None:
    """Print everything as JSON Lines, as of one commit, sealed threads included.

    Types: meta, thread, message (with its whole body), artifact (without its content), lease
    (without its token), cursor, event; the last line has the type `end` and the counts.
    """
    shell_of(context).output.lines(open_bus(context).export())
