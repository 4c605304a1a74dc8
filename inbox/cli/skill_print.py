"""`inbox skill print`."""

from inbox_orch.shared.shell.texts import packaged
from inbox_orch.shared.tools.skills import print_command

command = print_command("inbox", lambda: packaged("inbox_orch.inbox", "SKILL.md"))
