"""`inbox update`."""

from inbox_orch.shared.shell.declaring import Context, Number, option, verb

from .base import (
    attach_option,
    body_options,
    body_text,
    held,
    key_option,
    lease_arguments,
    lease_words,
    open_bus,
    say,
)


@verb("update", agent=True, examples=("inbox update --progress 40 --body 'tests written'",))
@lease_arguments
@body_options
@option("--progress", type=Number(0, 100, whole=True), metavar="0-100", help="In per cent.")
@attach_option
@key_option
def command(
    context: Context,
    thread: str | None,
    token: str | None,
    body: str | None,
    body_file: str | None,
    progress: int | None,
    attach: tuple[str, ...],
    key: str | None,
) -> None:
    """Tell the sender how it goes. Also renews the lease."""
    written = open_bus(context).update(
        *held(thread, token),
        body=body_text(context, body, body_file),
        progress=progress,
        attach=attach,
        key=key,
    )
    say(context, written, "Updated {thread}", lease_words(written))
