"""`inbox completion`."""

from inbox_orch.shared.shell.completion import completion_command

command = completion_command("inbox", "~/.config/fish/completions/inbox.fish")
