"""`inbox done`."""

from inbox_orch.shared.shell.declaring import Context, verb

from .base import (
    attach_option,
    body_options,
    body_text,
    held,
    lease_arguments,
    open_bus,
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
    written = open_bus(context).done(
        *held(thread, token),
        body=body_text(context, body, body_file),
        payload=payload_text(payload_file),
        attach=attach,
    )
    say(context, written, "Done: {thread}")
