"""`inbox claim`."""

import os

from inbox_orch.shared.errors import usage
from inbox_orch.shared.shell.blocks import Block, Facts, harmless
from inbox_orch.shared.shell.declaring import Context, argument, option, shell_of, verb

from ..domain import limits
from ..services.claiming import Claimed
from .base import (
    LEASE,
    artifact_table,
    mailbox_option,
    message_block,
    open_bus,
    thread_facts,
    wait_option,
)


@verb(
    "claim",
    agent=True,
    examples=(
        "inbox claim --agent w1 --mailbox workers --wait 90 --json",
        'lease=$(inbox claim --agent w1 --mailbox workers --export) && eval "$lease"',
    ),
)
@argument("thread", required=False, metavar="[THREAD]")
@mailbox_option
@option(
    "--lease",
    type=LEASE,
    default=limits.DEFAULT_LEASE_SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="How long the lease lasts without a renewal.",
)
@wait_option
@option("--export", "export", is_flag=True, help="Print shell `export` lines.")
def command(
    context: Context,
    thread: str | None,
    mailboxes: tuple[str, ...],
    lease: float,
    wait_seconds: float | None,
    export: bool,
) -> None:
    """Take a lease: on THREAD, or on the next one by priority, then age.

    The token that it prints goes with every later command on the thread. Nothing to claim is
    exit 8; held by another agent is exit 4.
    """
    output = shell_of(context).output
    if export and output.as_json:
        raise usage("--export and --json exclude each other")
    bus = open_bus(context)
    claimed = bus.claim(
        thread, mailboxes=mailboxes, lease_seconds=lease, wait_seconds=wait_seconds or 0
    )
    if export:
        lines = _export_lines(claimed, bus.database.address, bus.database.id)
        if output.on_terminal:
            output.text(harmless(lines, lines=True))
        else:
            # The bytes of the path, whatever the locale.
            output.raw(os.fsencode(lines))
    else:
        output.result(claimed.as_json(), *_blocks(claimed, bus.now_ms))


def _blocks(claimed: Claimed, now_ms: int) -> list[Block]:
    blocks: list[Block] = [
        Facts((*thread_facts(claimed.thread, now_ms).rows, ("token", claimed.lease.token)))
    ]
    first, *rest = claimed.messages
    blocks.append(message_block(first, now_ms, full=True))
    blocks += [message_block(message, now_ms) for message in rest]
    if claimed.artifacts:
        blocks.append(artifact_table(claimed.artifacts))
    return blocks


def _export_lines(claimed: Claimed, database: str, database_id: str) -> str:
    values = {
        "INBOX_DB": database,
        "INBOX_DB_ID": database_id,
        "INBOX_AGENT": claimed.lease.holder,
        "INBOX_THREAD": claimed.thread.id,
        "INBOX_TOKEN": claimed.lease.token or "",
    }
    return "".join(f"export {name}={_quoted(value)}\n" for name, value in values.items())


def _quoted(value: str) -> str:
    """For a POSIX shell: nothing inside single quotes has a meaning but the quote itself."""
    return "'" + value.replace("'", "'\"'\"'") + "'"
