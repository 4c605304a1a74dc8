"""`inbox skill install`."""

from inbox_orch.shared.skills import install_command
from inbox_orch.shared.texts import packaged

command = install_command("inbox", lambda: packaged("inbox_orch.inbox", "SKILL.md"))
