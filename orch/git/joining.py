"""Two commits merged in memory into a tree. Makes objects, and touches nothing else."""

import os

from inbox_orch.shared.errors import InboxOrchError

from .attributes import with_attributes_of
from .commands import git
from .failures import shown

MOST_PATHS = 100
UNRELATED = "unrelated"
"""The reason in `details` of a merge that git refuses, since it knows no common commit."""
_REFUSED = "refusing to merge unrelated histories"


def merged_tree(
    path: str,
    common_directory: str,
    one: str,
    other: str,
    environment: dict[str, str] | None = None,
) -> tuple[str, tuple[str, ...]]:
    """The tree of a merge, and the paths that conflict in it, at most 100. What is merged by more
    than its text (gitattributes(5)) is so as `one` says.

    `path` is that of the repository, `common_directory` its git directory. Error `git_failed`,
    with the reason `unrelated` in its details when git knows no commit that both build on.
    """
    with with_attributes_of(path, common_directory, one) as (folder, place):
        try:
            status, text = git(
                folder,
                *("merge-tree", "--write-tree", "--name-only", "-z", "--no-messages", one, other),
                # Into objects of a folder of their own: they are thrown away.
                reads=environment is not None,
                accepted=(0, 1),
                environment={**place, **(environment or {})},
            )
        except InboxOrchError as error:
            if error.code != "git_failed" or _REFUSED not in error.message:
                raise
            raise _unrelated(path, common_directory, one, other) from error
    tree, *paths = text.rstrip("\0").split("\0")
    if status == 0:
        return tree.strip(), ()
    return tree.strip(), tuple(map(shown, dict.fromkeys(paths)))[:MOST_PATHS]


def is_unrelated(error: InboxOrchError) -> bool:
    """Whether a merge was refused because git knows no common commit."""
    return bool(error.details.get("reason") == UNRELATED)


def _unrelated(path: str, common_directory: str, one: str, other: str) -> InboxOrchError:
    """Without a common commit git cannot see what one side deleted: it would come back."""
    shallow = os.path.exists(os.path.join(common_directory, "shallow"))
    return InboxOrchError(
        "git_failed",
        f"{one} and {other} have no common history in {shown(path)}, so that they are not merged",
        hint="the clone is shallow: `git fetch --unshallow` there brings the rest; then try again"
        if shallow
        else "`git merge --allow-unrelated-histories` in a checkout of yours joins them by hand",
        details={"reason": UNRELATED, "commits": [one, other], "shallow": shallow},
    )
