"""`inbox send`."""

from inbox_orch.shared.shell.declaring import TEXT, Context, Number, option, verb
from inbox_orch.shared.shell.inputs import given_document

from ..domain import limits
from .base import (
    DELAY,
    attach_option,
    body_options,
    body_text,
    key_option,
    open_bus,
    payload_option,
    payload_text,
    say,
    schema_option,
)


@verb(
    "send",
    agent=True,
    examples=(
        "inbox send --agent leader --to workers --subject 'Fix it' --body-file task.md",
        "generate | inbox send --to w1 --subject Data --body-file - --key nightly-7",
        "inbox send --to w1 --subject Review --body-file brief.md --schema verdict.json",
    ),
)
@option(
    "--to", required=True, metavar="MAILBOX", help="Whose mailbox; upper and lower case differ."
)
@option("--subject", type=TEXT, required=True, metavar="TEXT", help="One line.")
@body_options
@payload_option
@schema_option
@attach_option
@option(
    "--priority",
    type=Number(limits.MIN_PRIORITY, limits.MAX_PRIORITY, whole=True),
    default=0,
    show_default=True,
    metavar="N",
    help="Higher is claimed first.",
)
@option("--delay", type=DELAY, default=0, metavar="SECONDS", help="May be claimed only after this.")
@option(
    "--max-deliveries",
    type=Number(1, limits.MOST_DELIVERIES, whole=True),
    default=limits.DEFAULT_MAX_DELIVERIES,
    show_default=True,
    metavar="N",
    help="After this many claims without a result the thread fails.",
)
@option("--sealed", is_flag=True, help="Hide it from everyone else until `unseal`.")
@option("--strict", is_flag=True, help="Refuse a mailbox that has never been read.")
@key_option
def command(
    context: Context,
    to: str,
    subject: str,
    body: str | None,
    body_file: str | None,
    payload_file: str | None,
    schema: str | None,
    attach: tuple[str, ...],
    priority: int,
    delay: float,
    max_deliveries: int,
    sealed: bool,
    strict: bool,
    key: str | None,
) -> None:
    """Open a thread: a unit of work or talk in an agent's mailbox."""
    written = open_bus(context).send(
        to=to,
        subject=subject,
        body=body_text(context, body, body_file),
        payload=payload_text(payload_file),
        schema=given_document(schema, limits.MAX_SCHEMA_BYTES),
        attach=attach,
        priority=priority,
        delay_seconds=delay,
        max_deliveries=max_deliveries,
        sealed=sealed,
        strict=strict,
        key=key,
    )
    known = "" if written.recipient_known else "; that mailbox has not been read yet"
    say(context, written, "Sent {thread} to {mailbox}" + known)
