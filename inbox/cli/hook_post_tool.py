"""`inbox hook post-tool`."""

from .hooking import POST_TOOL, hook_command

command = hook_command(
    POST_TOOL,
    "Tell an agent, after it has used a tool, of messages that no hook has announced yet. "
    "No cursor moves.",
)
