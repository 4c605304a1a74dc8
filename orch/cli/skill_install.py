"""`orch skill install`."""

from inbox_orch.shared.skills import install_command
from inbox_orch.shared.texts import packaged

command = install_command("orch", lambda: packaged("inbox_orch.orch", "SKILL.md"))
