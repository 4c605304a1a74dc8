"""`inbox hook session-start`."""

from .hooking import SESSION_START, hook_command

command = hook_command(
    SESSION_START,
    "Tell a session that begins what waits for its agent: leases that it holds, open questions, "
    "unread messages. No cursor moves.",
)
