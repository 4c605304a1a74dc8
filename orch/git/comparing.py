"""Whether commits would merge, without leaving anything in the repository.

Git writes the trees of a merge in memory as objects; here they go into a folder that is thrown
away, so that looking also works where only reading is allowed.
"""

import contextlib
import os
from collections.abc import Iterator

from .failures import temporary_folder
from .repository import Repository, merged_tree


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
        """The paths in which two commits do not merge, at most 100."""
        return merged_tree(self._repository.path, one, other, self._environment)[1]


@contextlib.contextmanager
def comparison(repository: Repository) -> Iterator[Comparison]:
    """To be used as long as the folder for what git writes is there."""
    with temporary_folder() as scratch:
        yield Comparison(repository, scratch)
