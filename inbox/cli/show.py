"""`inbox show`."""

import os
from typing import TYPE_CHECKING, BinaryIO

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.blocks import Block, Facts, Sentence
from inbox_orch.shared.shell.declaring import PATH, Context, argument, option, shell_of, verb
from inbox_orch.shared.shell.output import Output
from inbox_orch.shared.shell.writing import write_file

from ..domain.model import Artifact
from .base import (
    artifact_table,
    mailbox_option,
    message_block,
    open_bus,
    schema_rows,
    thread_facts,
)

if TYPE_CHECKING:
    from .bodies import Alone

_CHUNK = 1024 * 1024


@verb(
    "show",
    agent=True,
    examples=(
        "inbox show THREAD --full --json",
        "inbox show THREAD --raw > task.md",
        "inbox show THREAD --artifact log --output -",
    ),
)
@argument("thread")
@option("--full", is_flag=True, help="Every message, every body whole.")
@option("--artifact", metavar="NAME", help="The newest artifact of this name instead.")
@option(
    "--output",
    "target",
    type=PATH,
    metavar="FILE|-",
    help="Where to write the artifact; needed on a terminal.",
)
@option("--raw", "raw", is_flag=True, help="One body alone, as it is: that of the task.")
@option("--body-to", type=PATH, metavar="FILE", help="The same, into a file.")
@option("--message", "message_id", metavar="ID", help="The message whose body that is.")
@mailbox_option
def command(
    context: Context,
    thread: str,
    full: bool,
    artifact: str | None,
    target: str | None,
    raw: bool,
    body_to: str | None,
    message_id: str | None,
    mailboxes: tuple[str, ...],
) -> None:
    """Print one thread with its messages, its lease and its artifacts. Changes nothing."""
    output = shell_of(context).output
    if target is not None and artifact is None:
        raise usage("--output goes with --artifact")
    if artifact is not None and target is None and not output.as_json and output.on_terminal:
        raise usage(
            "an artifact is not printed on a terminal: what is in it could drive it",
            hint="--output FILE writes it into a file, --output - prints it as it is",
        )
    alone = _alone(output, raw, body_to, message_id)
    if alone is not None and artifact is not None:
        raise usage("give either --artifact or one of --raw and --body-to")
    bus = open_bus(context, looks=True)
    if artifact is not None:
        found, content = bus.artifact(thread, artifact, mailboxes=mailboxes)
        with content:
            if target not in (None, "-") and bus.database.layout.holds(str(target)):
                raise usage(f"{target} belongs to a database", hint="name another file")
            _hand_out(output, found, content, target)
        return
    if alone is not None:
        alone.hand_out(output, bus, bus.show(thread, full=True, mailboxes=mailboxes))
        return
    shown = bus.show(thread, full=full, mailboxes=mailboxes)
    facts = thread_facts(shown.thread, bus.now_ms).rows
    blocks: list[Block] = [
        Facts((*facts, *schema_rows(shown.result_schema))),
        *(message_block(message, bus.now_ms, full=full) for message in shown.messages),
    ]
    if shown.artifacts:
        blocks.append(artifact_table(shown.artifacts))
    output.result(shown.as_json(), *blocks)


def _alone(
    output: Output, raw: bool, body_to: str | None, message_id: str | None
) -> "Alone | None":
    """The one body that is asked for; error `usage`."""
    if not raw and body_to is None and message_id is None:
        return None
    from .bodies import Alone

    return Alone(raw, body_to, message_id).checked(output)


def _hand_out(output: Output, artifact: Artifact, content: BinaryIO, target: str | None) -> None:
    if target == "-" or (target is None and not output.as_json):
        while chunk := content.read(_CHUNK):
            output.raw(chunk)
        return
    path = None
    if target is not None:
        path = os.path.abspath(target)
        write_file(path, content)
    text = f"Wrote {artifact.bytes} bytes to {path}"
    output.result({"artifact": artifact.as_json(), "path": path}, Sentence(text, (path,)))
