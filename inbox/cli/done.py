"""`inbox done`."""

from inbox_orch.shared.declaring import Context, verb

from ..services.holding import Holding
from .base import (
    attach_option,
    body_options,
    body_text,
    held,
    lease_arguments,
    open_group,
    payload_option,
    payload_text,
    say,
)


@verb(
    "done",
    agent=True,
    examples=("inbox done --body-file result.md --attach report.html",),
)
@lease_arguments
@body_options
@payload_option
@attach_option
def command(
    context: Context,
    thread: str | None,
    token: str | None,
    body: str | None,
    body_file: str | None,
    payload_file: str | None,
    attach: tuple[str, ...],
) -> None:
    """Finish the thread with a result. The same call again succeeds and changes nothing."""
    written = open_group(context, Holding).done(
        *held(thread, token),
        body=body_text(body, body_file),
        payload=payload_text(payload_file),
        attach=attach,
    )
    say(context, written, "Done: {thread}")
