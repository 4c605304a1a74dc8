"""`orch help`."""

from inbox_orch.shared.shell.topics import help_command

command = help_command("orch")
