"""What is written down when a patch was undone on the branch of the integration."""

from collections.abc import Mapping
from typing import Any

from inbox_orch.shared.store.engine import Transaction

from ..patches import ledger
from ..patches import rows as patches
from ..patches.ledger import Word
from ..runs.desk import Desk
from ..runs.model import Run


def confirm(desk: Desk, tx: Transaction, run: Run, facts: Mapping[str, Any]) -> None:
    """The branch has moved: the patch is undone, and the one that undoes it is accepted. `facts`
    are those of the intent."""
    said = facts["rollback"]
    by, reason = said["by"], said["reason"]
    undone, reverse = patches.get(tx, said["patch"]), patches.get(tx, said["reverse"])
    assert undone is not None and reverse is not None, "patches are never removed"
    if ledger.said_of(tx, reverse) == "validated":
        ledger.say(tx, desk, run, reverse, Word("apply", "applied", by))
        ledger.say(tx, desk, run, reverse, Word("acceptance", "accepted", by))
    if ledger.said_of(tx, undone) == "committed":
        told = {"by": reverse.id, "commit": facts["tip"]}
        ledger.say(tx, desk, run, undone, Word("rollback", "undone", by, reason, told))
