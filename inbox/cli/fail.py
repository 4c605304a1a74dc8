"""`inbox fail`."""

import click

from inbox_orch.shared.commandline import Verb

from ..services.holding import Holding
from .base import DELAY, body_options, held, lease_arguments, open_group, required_body, say


@click.command(
    "fail",
    cls=Verb,
    agent=True,
    examples=("inbox fail --body 'no network' --retry-in 60", "inbox fail --body 'no such file'"),
)
@lease_arguments
@body_options
@click.option(
    "--retry-in",
    type=DELAY,
    metavar="SECONDS",
    help="Hand it back for another try, while deliveries are left.",
)
@click.option("--fatal", is_flag=True, help="Tell a scheduler not to try again.")
@click.pass_context
def command(
    context: click.Context,
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
