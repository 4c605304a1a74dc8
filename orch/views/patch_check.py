"""What would be said of a change that is handed in as text: made, judged, and forgotten."""

from typing import Any, NamedTuple

from ..git.repository import Repository
from ..git.sealed import scratch
from ..patches import hand_in
from ..patches.examine import examine
from ..patches.given import Given
from ..patches.policy import Examined, Policy


class CheckedText(NamedTuple):
    """A change on a commit, and what the policy says of it."""

    way: str
    base: str
    examined: Examined

    def as_json(self) -> dict[str, Any]:
        return {
            "verdict": self.examined.outcome,
            "way": self.way,
            "base": self.base,
            "facts": self.examined.summary.as_json(),
            "objections": [each.as_json() for each in self.examined.objections],
        }


def check(
    repository: Repository, base: str, given: Given, policy: Policy, secrets: tuple[str, ...] = ()
) -> CheckedText:
    """Make the change on a commit, and judge it; nothing of it stays. Raises `NotApplied`. Errors:
    those of git where this machine is the cause."""
    from ..git.commands import output_of

    with scratch(repository) as apart:
        tree = output_of(apart.path, "rev-parse", f"{base}^{{tree}}")
        made = hand_in.made(apart, tree, given)
        examined = examine(apart, tree, made.tree, policy, secrets=secrets)
    summary = examined.summary._replace(notes=made.notes)
    return CheckedText(given.way, base, examined._replace(summary=summary))
