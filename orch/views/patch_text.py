"""The text of a patch: as it was handed in, or made of its trees."""

from inbox_orch.shared.errors import InboxOrchError

from ..git.facts import whole_diff
from ..patches.model import Patch
from ..runs.desk import Desk
from ..runs.model import Run


def text_of(desk: Desk, run: Run, patch: Patch) -> tuple[bytes, bool]:
    """The bytes, and whether they are those that were handed in. Errors: `not_found` (its commits
    are gone, or the file is), those of git."""
    if patch.text is not None:
        with desk.bus.artifacts.open(patch.text) as file:
            return file.read(), True
    if patch.tree is None:
        raise InboxOrchError(
            "not_found",
            f"patch {patch.id} has no tree: it fitted nothing",
            hint="`orch patch log` tells why",
            details={"patch": patch.id},
        )
    return whole_diff(desk.repository(run), patch.base_tree, patch.tree), False
