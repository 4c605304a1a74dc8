"""`inbox fail`."""

from inbox_orch.shared.declaring import Context, option, verb

from ..services.holding import Holding
from .base import DELAY, body_options, held, lease_arguments, open_group, required_body, say


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
    written = open_group(context, Holding).fail(
        *held(thread, token),
        body=required_body(body, body_file),
        retry_in_seconds=retry_in,
        fatal=fatal,
    )
    say(context, written, "Failed: {thread} is {state}")
