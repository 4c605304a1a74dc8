"""`inbox release`."""

from inbox_orch.shared.declaring import Context, option, verb

from ..services.holding import Holding
from .base import DELAY, body_options, body_text, held, lease_arguments, open_group, say


@verb("release", agent=True, examples=("inbox release --delay 30",))
@lease_arguments
@body_options
@option("--delay", type=DELAY, default=0, metavar="SECONDS", help="May be claimed only after this.")
def command(
    context: Context,
    thread: str | None,
    token: str | None,
    body: str | None,
    body_file: str | None,
    delay: float,
) -> None:
    """Hand the thread back untouched; the delivery is given back, too."""
    written = open_group(context, Holding).release(
        *held(thread, token), delay_seconds=delay, body=body_text(body, body_file)
    )
    say(context, written, "Released {thread}")
