"""`inbox ask`."""

from inbox_orch.shared.shell.declaring import TEXT, Context, Number, option, verb

from ..domain import limits
from .base import body_options, held, key_option, lease_arguments, open_bus, required_body, say


@verb(
    "ask",
    agent=True,
    examples=("inbox ask --body 'Which one?' --option old --option new && inbox wait-reply",),
)
@lease_arguments
@body_options
@option(
    "--option",
    "options",
    type=TEXT,
    multiple=True,
    metavar="TEXT",
    help="An answer to offer; repeatable.",
)
@option(
    "--deadline",
    type=Number(0.001, limits.MAX_DELAY_SECONDS, seconds=True),
    metavar="SECONDS",
    help="Go on unanswered after this.",
)
@key_option
def command(
    context: Context,
    thread: str | None,
    token: str | None,
    body: str | None,
    body_file: str | None,
    options: tuple[str, ...],
    deadline: float | None,
    key: str | None,
) -> None:
    """Ask the sender a question: the thread is blocked until another agent replies.

    `wait-reply` waits for the answer and keeps the lease alive meanwhile.
    """
    written = open_bus(context).ask(
        *held(thread, token),
        body=required_body(context, body, body_file),
        options=options,
        deadline_seconds=deadline,
        key=key,
    )
    say(context, written, "Asked on {thread}")
