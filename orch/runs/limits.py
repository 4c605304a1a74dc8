"""The ranges of what comes from outside."""

from collections.abc import Sequence

from inbox_orch.shared.errors import usage

DEFAULT_MAX_ATTEMPTS = 3
MOST_ATTEMPTS = 100
MOST_ATTEMPTS_EVER = 1_000_000
"""Of one task, with those that were asked for by hand."""
MOST_GATE_SLOTS = 64
MOST_PARALLEL = 1000
DEFAULT_PAIRS, MOST_PAIRS = 1000, 1_000_000
"""So many pairs of attempts are compared."""
MIN_PRIORITY, MAX_PRIORITY = -1000, 1000
MAX_TITLE_BYTES = 200
MAX_TASK_BODY_BYTES = 1024 * 1024
DEFAULT_WAIT_SECONDS = 90.0
MAX_WAIT_SECONDS = 366 * 24 * 3600.0
CANCEL_GRACE_SECONDS = 60.0
MAX_DELIVERIES = 3
DEFAULT_ROWS, MOST_ROWS = 1000, 1_000_000
MAX_CLOCK_SECONDS = 366 * 24 * 3600.0
DEFAULT_CHECK_SECONDS = 600.0
MOST_CHECKS = 50
MAX_COMMAND_BYTES = 16 * 1024
NO_PLACE_FOR_CHECKS = "a check runs in the worktree, and this task has none"
NO_PLACE_FOR_STAGES = "a task without a worktree has nothing that stages could work on"
NOTHING_TO_JUDGE = "a task without a worktree changes no files, so a policy says nothing"
NOTHING_TO_HARVEST = "what is harvested lies in the worktree, and this task has none"
NO_PLACE_FOR_TEXT = (
    "what is handed in as text comes into a worktree, and stages of a blueprint say so themselves"
)
MOST_MISSING_WORKTREES = 3
"""With more of them missing at once, what holds them has gone away, and no work is lost."""
FOREIGN_SECONDS = 600.0
"""So long a process that cannot be seen from here counts as alive."""


def check_title(title: str) -> str:
    """One line that is not blank; error `usage`."""
    if not title.strip() or len(title.encode("utf-8", "replace")) > MAX_TITLE_BYTES:
        raise usage(f"a title is 1 to {MAX_TITLE_BYTES} bytes of text, not blank")
    # Most titles are printable throughout, and a plan may have 100,000 of them.
    if not title.isprintable() and any(
        ord(c) < 32 or ord(c) == 127 or 0xD800 <= ord(c) < 0xE000 for c in title
    ):
        raise usage("a title is one line of text without control characters")
    return title


def check_commands(commands: Sequence[str], what: str = "check", whose: str = "task") -> None:
    """Shell commands that are not blank, `what` of a `whose`; error `usage`."""
    if len(commands) > MOST_CHECKS:
        raise usage(f"a {whose} has at most {MOST_CHECKS} {what}s, not {len(commands)}")
    for command in commands:
        size = len(command.encode("utf-8", "replace"))
        if not command.strip() or size > MAX_COMMAND_BYTES or "\0" in command:
            raise usage(f"a {what} is a shell command of 1 to {MAX_COMMAND_BYTES} bytes, not blank")
        if any(0xD800 <= ord(c) < 0xE000 for c in command):
            raise usage(f"a {what} is a shell command in UTF-8")


def check_task_body(body: str) -> str:
    """Text of at most 1 MiB, so that what earlier attempts came to fits beside it."""
    try:
        size = len(body.encode())
    except UnicodeEncodeError as error:
        raise usage("the task's body is not valid text") from error
    if size > MAX_TASK_BODY_BYTES:
        raise usage(
            f"the task's body has {size} bytes, more than {MAX_TASK_BODY_BYTES}",
            hint="put it into the repository, and name the file",
        )
    if "\0" in body:
        raise usage(
            "the task's body has a NUL character",
            hint="put the file into the repository, and name it",
        )
    return body
