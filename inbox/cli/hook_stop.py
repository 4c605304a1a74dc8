"""`inbox hook stop`."""

from .hooking import STOP, hook_command

command = hook_command(
    STOP,
    "Let an agent that would stop go on when messages have come that no hook has announced yet. "
    "Each is announced once, so that no agent is kept for ever. No cursor moves.",
)
