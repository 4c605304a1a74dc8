"""`orch completion`."""

from inbox_orch.shared.shell.completion import completion_command

command = completion_command("orch", "~/.config/fish/completions/orch.fish")
