"""`orch help`."""

from inbox_orch.shared.topics import help_command

command = help_command("orch")
