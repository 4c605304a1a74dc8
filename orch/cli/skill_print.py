"""`orch skill print`."""

from inbox_orch.shared.skills import print_command
from inbox_orch.shared.texts import packaged

command = print_command("orch", lambda: packaged("inbox_orch.orch", "SKILL.md"))
