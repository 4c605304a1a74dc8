"""`inbox claim`."""

import json
import os
from typing import Any

from inbox_orch.shared.errors import InboxOrchError, usage
from inbox_orch.shared.ids import plain_number
from inbox_orch.shared.shell.blocks import Block, Facts, harmless
from inbox_orch.shared.shell.declaring import PATH, Context, argument, option, shell_of, verb

from ..domain import limits
from ..services.claiming import Claimed
from .base import (
    LEASE,
    artifact_table,
    mailbox_option,
    message_block,
    open_bus,
    schema_rows,
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
@option("--body-to", type=PATH, metavar="FILE", help="Write the body into a file, as it is.")
def command(
    context: Context,
    thread: str | None,
    mailboxes: tuple[str, ...],
    lease: float,
    wait_seconds: float | None,
    export: bool,
    body_to: str | None,
) -> None:
    """Take a lease: on THREAD, or on the next one by priority, then age.

    The token that it prints goes with every later command on the thread. Nothing to claim is
    exit 8; held by another agent is exit 4.
    """
    output = shell_of(context).output
    if export and output.as_json:
        raise usage("--export and --json exclude each other")
    bus = open_bus(context)
    if body_to is not None:
        from .bodies import check_body_target

        check_body_target(bus, body_to)
    claimed = bus.claim(
        thread, mailboxes=mailboxes, lease_seconds=lease, wait_seconds=wait_seconds or 0
    )
    failure = None if body_to is None else _body_failure(claimed, body_to)
    if export:
        lines = _export_lines(claimed, bus.database.address, bus.database.id)
        if output.on_terminal:
            output.text(harmless(lines, lines=True))
        else:
            # The bytes of the path, whatever the locale.
            output.raw(os.fsencode(lines))
    elif failure is None:
        output.result(claimed.as_json(), *_blocks(claimed, bus.now_ms, body_to))
    else:
        output.outcome(failure, *_blocks(claimed, bus.now_ms, None))


def _body_failure(claimed: Claimed, path: str) -> InboxOrchError | None:
    """Why the body is not in the file: the lease is held, and its token must be told all the
    same."""
    from .bodies import write_body

    try:
        write_body(claimed.messages[0], path)
    except InboxOrchError as error:
        error.data = claimed.as_json()
        error.hint = "the thread is yours, and its body stands above"
        return error
    return None


def _blocks(claimed: Claimed, now_ms: int, body_to: str | None) -> list[Block]:
    first, *rest = claimed.messages
    facts = thread_facts(claimed.thread, now_ms).rows
    asked = (*_terms(first.payload), *schema_rows(claimed.result_schema))
    blocks: list[Block] = [Facts((*facts, ("token", claimed.lease.token), *asked))]
    if body_to is None:
        blocks.append(message_block(first, now_ms, full=True))
    else:
        blocks.append(Facts((("body", body_to), ("body bytes", first.body_bytes))))
    blocks += [message_block(message, now_ms) for message in rest]
    if claimed.artifacts:
        blocks.append(artifact_table(claimed.artifacts))
    return blocks


def _terms(payload: str | None) -> list[tuple[str, object]]:
    """Where the task is to be done, from what on, and until when, as far as its payload says.

    The lease is taken: nothing that a sender wrote may keep its token from being told.
    """
    try:
        asked: dict[str, Any] = {} if payload is None else json.loads(payload)
    except ValueError:
        return []  # a number with more digits than this process reads
    texts = {
        "worktree": asked.get("worktree"),
        "base": asked.get("base_commit"),
        "deadline": asked.get("deadline"),
    }
    terms: list[tuple[str, object]] = [
        (label, text) for label, text in texts.items() if isinstance(text, str)
    ]
    seconds = asked.get("timeout_seconds", asked.get("time_limit_seconds"))
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        return terms
    if 0 < seconds <= limits.MAX_DELAY_SECONDS:
        terms.append(("time limit", f"{plain_number(seconds)} s"))
    return terms


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
