"""`inbox skill print`."""

from inbox_orch.shared.skills import print_command
from inbox_orch.shared.texts import packaged

command = print_command("inbox", lambda: packaged("inbox_orch.inbox", "SKILL.md"))
