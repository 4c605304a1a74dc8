"""`orch skill install`."""

from inbox_orch.shared.shell.texts import packaged
from inbox_orch.shared.tools.skills import install_command

command = install_command("orch", lambda: packaged("inbox_orch.orch", "SKILL.md"))
