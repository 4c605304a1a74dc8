"""`inbox fail`."""

from inbox_orch.shared.shell.declaring import Context, option, verb

from .base import DELAY, body_options, held, lease_arguments, open_bus, required_body, say


@verb(
    "fail",
    agent=True,
    examples=("inbox fail --body 'no network' --retry-in 60", "inbox fail --body 'no such file'"),
)
@lease_arguments
@body_options
@option(
    "--retry-in",
    type=DELAY,
    metavar="SECONDS",
    help="Hand it back for another try, while deliveries are left.",
)
@option("--fatal", is_flag=True, help="Tell a scheduler not to try again.")
def command(
    context: Context,
    thread: str | None,
    token: str | None,
    body: str | None,
    body_file: str | None,
    retry_in: float | None,
    fatal: bool,
) -> None:
    """Finish the thread badly. The same call again succeeds and changes nothing."""
    written = open_bus(context).fail(
        *held(thread, token),
        body=required_body(context, body, body_file),
        retry_in_seconds=retry_in,
        fatal=fatal,
    )
    say(context, written, "Failed: {thread} is {state}")
