"""`inbox done`."""

from inbox_orch.shared.shell.declaring import Context, verb

from ..domain.model import Written
from .base import (
    NO_MORE,
    More,
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
    say(context, written, "Done: {thread}", _receipt(written))


def _receipt(written: Written) -> More:
    """What was taken in, so that who has handed it in can compare."""
    result = written.message
    if result is None:
        return NO_MORE
    # Enough to compare; --json has the whole.
    digest = result.body_sha256[:12]
    payload = 0 if result.payload is None else len(result.payload.encode())
    names = ", ".join(each.name for each in result.artifacts)
    parts = [f"a body of {result.body_bytes} bytes (sha256 {digest})"]
    parts += [f"a payload of {payload} bytes"] if payload else []
    parts += [names] if names else []
    values = (result.body_bytes, digest, payload, [a.name for a in result.artifacts])
    return f"; taken in as message {result.id}: {', '.join(parts)}", values
