"""Whether commits would merge, without leaving anything in the repository.

Git writes the trees of a merge in memory as objects; here they go into a folder that is thrown
away, so that looking also works where only reading is allowed.
"""

import contextlib
import os
from collections.abc import Iterator

from inbox_orch.shared.errors import InboxOrchError

from .failures import temporary_folder
from .joining import is_unrelated, merged_tree
from .repository import Repository


class Comparison:
    """Merges that are tried and forgotten."""

    def __init__(self, repository: Repository, scratch: str) -> None:
        self._repository = repository
        objects = os.path.join(repository.common_directory, "objects")
        quoted = objects.replace("\\", "\\\\").replace('"', '\\"')
        self._environment = {
            "GIT_OBJECT_DIRECTORY": scratch,
            "GIT_ALTERNATE_OBJECT_DIRECTORIES": f'"{quoted}"',
        }

    def conflicts(self, one: str, other: str) -> tuple[str, ...]:
        """The paths in which two commits do not merge, at most 100; all that differ where
        git knows no commit that both build on."""
        there, within = self._repository, self._environment
        try:
            return merged_tree(there.path, there.common_directory, one, other, within)[1]
        except InboxOrchError as error:
            if not is_unrelated(error):
                raise
            return there.changed_paths(one, other)


@contextlib.contextmanager
def comparison(repository: Repository) -> Iterator[Comparison]:
    """To be used as long as the folder for what git writes is there."""
    with temporary_folder() as scratch:
        yield Comparison(repository, scratch)
